//! The parts of ArceOS that this crate uses: `axfs`, and a domain for the pool.

use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};

use axcoop::Domain;
use axcoop_arceos::{OpenError, Options};
use axerrno::AxResult;
use axfs::fops;

/// How a file is opened.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// For reading; it must exist.
    Read,
    /// For reading and writing; it must exist.
    Write,
    /// For reading and writing; it is created or truncated.
    New,
}

/// A file of `axfs`. Dropping it writes its length.
pub struct Disk(fops::File);

impl Disk {
    pub fn open(path: &str, how: How) -> AxResult<Self> {
        let mut options = fops::OpenOptions::new();
        options.read(true);
        match how {
            How::Read => {}
            How::Write => options.write(true),
            How::New => {
                options.write(true);
                options.create(true);
                options.truncate(true);
            }
        }
        fops::File::open(path, &options).map(Self)
    }

    pub fn read_at(&self, at: u64, into: &mut [u8]) -> AxResult<usize> {
        self.0.read_at(at, into)
    }

    pub fn write_at(&self, at: u64, bytes: &[u8]) -> AxResult<usize> {
        self.0.write_at(at, bytes)
    }

    pub fn length(&self) -> AxResult<u64> {
        Ok(self.0.get_attr()?.size())
    }
}

pub fn remove_from_disk(path: &str) -> AxResult {
    axfs::api::remove_file(path)
}

static POOL: AtomicPtr<Domain> = AtomicPtr::new(ptr::null_mut());

/// Why there is no pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPool(pub OpenError);

impl fmt::Display for NoPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the domain for file operations cannot be opened: {}",
            self.0
        )
    }
}

impl core::error::Error for NoPool {}

/// Starts the pool if it does not run. The first operation does so by itself; this call returns the reason of a
/// failure.
///
/// # Errors
/// [`NoPool`].
pub fn start() -> Result<(), NoPool> {
    static IS_UNDER_WAY: AtomicBool = AtomicBool::new(false);
    while POOL.load(Acquire).is_null() {
        if IS_UNDER_WAY.swap(true, Acquire) {
            axtask::yield_now();
            continue;
        }
        if POOL.load(Acquire).is_null() {
            // One worker: rule 3.
            let opened = Options::new("axcoop-fs").workers(1).open();
            if let Ok(pool) = opened {
                POOL.store(ptr::from_ref(pool).cast_mut(), Release);
            }
            IS_UNDER_WAY.store(false, Release);
            opened.map_err(NoPool)?;
        }
        IS_UNDER_WAY.store(false, Release);
    }
    Ok(())
}

/// Returns the domain whose coroutines the operations are.
///
/// # Panics
/// If it cannot be opened.
pub fn pool() -> &'static Domain {
    if let Err(why) = start() {
        panic!("{why}");
    }
    // SAFETY: a domain of `axcoop_arceos`, which is static.
    unsafe { &*POOL.load(Acquire) }
}
