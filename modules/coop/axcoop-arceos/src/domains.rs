//! The domains of the image, and how to open one.

use core::fmt;

use axcoop::{DOMAINS, Domain, DomainError, DomainId, MAX_WORKERS, SUMMARY, WorkerError};

use crate::system::ARCEOS;
use crate::worker_names;

macro_rules! domains {
    ($($number:literal)*) => {
        [$(Domain::new(DomainId::new($number), &SUMMARY, &ARCEOS)),*]
    };
}

static ALL: [Domain; DOMAINS] = domains!(0 1 2 3 4 5 6 7);

/// Opens a domain with a worker on each CPU.
///
/// # Errors
/// [`OpenError`].
pub fn domain(name: &'static str) -> Result<&'static Domain, OpenError> {
    Options::new(name).open()
}

/// The options of a domain that is about to be opened.
#[derive(Clone, Copy, Debug)]
#[must_use = "it is opened by `open`"]
pub struct Options {
    name: &'static str,
    workers: usize,
    stack_bytes: usize,
}

impl Options {
    /// The default stack size of a worker. All polls of its coroutines, and the interrupts that hit them, use that
    /// stack.
    pub const STACK_BYTES: usize = worker_names::STACK_BYTES;

    /// Returns options for a worker on each CPU. With an empty name the workers have no names, which makes each wake
    /// of them cheaper: `axtask` formats the name of the task that it wakes.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            workers: axhal::cpu_num().min(MAX_WORKERS),
            stack_bytes: Self::STACK_BYTES,
        }
    }

    /// Sets the number of workers, 0 to [`MAX_WORKERS`]; [`Domain::set_workers`] changes it later.
    pub fn workers(self, workers: usize) -> Self {
        Self { workers, ..self }
    }

    /// Sets the size of each worker's stack in bytes, which is rounded up to a page, and is 8 KiB at least.
    pub fn stack_bytes(self, stack_bytes: usize) -> Self {
        const LEAST: usize = 8 * 1024;
        Self {
            stack_bytes: stack_bytes.max(LEAST),
            ..self
        }
    }

    /// Opens the domain, with the first free number.
    ///
    /// # Errors
    /// [`OpenError`]; then the domain is closed again.
    pub fn open(self) -> Result<&'static Domain, OpenError> {
        let domain = (ALL.iter())
            .find(|domain| domain.open().is_ok())
            .ok_or(OpenError::AllTaken)?;
        worker_names::set(domain.id(), self.name, self.stack_bytes);
        match domain.set_workers(self.workers) {
            Ok(()) => Ok(domain),
            Err(why) => {
                withdraw(domain).map_err(OpenError::Domain)?;
                Err(OpenError::Workers(why))
            }
        }
    }
}

/// Closes a domain that has not been returned yet.
fn withdraw(domain: &'static Domain) -> Result<(), DomainError> {
    // Workers that have started leave as soon as they run.
    domain.set_workers(0).expect("0 workers are not too many");
    loop {
        match domain.close() {
            Err(DomainError::InUse { .. }) => axtask::yield_now(),
            closed => return closed,
        }
    }
}

/// Why a domain could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// There are [`DOMAINS`] open domains already.
    AllTaken,
    /// It could not have the requested workers.
    Workers(WorkerError),
    /// It could not have the requested workers, and could not be closed again.
    Domain(DomainError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllTaken => write!(f, "all {DOMAINS} domains are open already"),
            Self::Workers(why) => why.fmt(f),
            Self::Domain(why) => why.fmt(f),
        }
    }
}

impl core::error::Error for OpenError {}
