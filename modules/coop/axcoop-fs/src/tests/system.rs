//! The system of the tests: a disk in memory that records its operations, and stops before one if a test asks for that.

use std::collections::BTreeMap;
use std::string::{String, ToString};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::vec::Vec;
use std::{assert, format};

use axcoop::host::HOST;
use axcoop::{Domain, DomainId, SUMMARY};
use axerrno::{AxError, AxResult};

#[derive(Clone, Copy, Debug)]
pub enum How {
    Read,
    Write,
    New,
}

#[derive(Default)]
pub struct State {
    pub files: BTreeMap<String, Vec<u8>>,
    pub trace: Vec<String>,
    /// Operations stop before they do anything.
    pub is_held: bool,
    /// An operation has stopped.
    pub has_stopped: bool,
    /// An operation is under way.
    is_busy: bool,
}

pub static STATE: Mutex<State> = Mutex::new(State {
    files: BTreeMap::new(),
    trace: Vec::new(),
    is_held: false,
    has_stopped: false,
    is_busy: false,
});
static CHANGED: Condvar = Condvar::new();

pub fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the next operation stop, or lets all go on.
pub fn hold(is_held: bool) {
    let mut state = state();
    state.is_held = is_held;
    state.has_stopped = false;
    CHANGED.notify_all();
}

/// Waits until an operation has stopped.
pub fn wait_until_stopped() {
    wait_until_stopped_or(|| false);
}

/// Waits until an operation has stopped, or a condition is true.
pub fn wait_until_stopped_or(is_over: impl Fn() -> bool) {
    const LOOK: Duration = Duration::from_millis(5);
    let mut state = state();
    while !state.has_stopped && !is_over() {
        state = CHANGED.wait_timeout(state, LOOK).unwrap().0;
    }
}

/// Does an operation, which takes some time.
fn operate<R>(what: &str, run: impl FnOnce(&mut State) -> R) -> R {
    let mut state = state();
    assert!(!state.is_busy, "rule 3: two at a time");
    state.is_busy = true;
    state.trace.push(what.to_string());
    while state.is_held {
        state.has_stopped = true;
        CHANGED.notify_all();
        state = CHANGED.wait(state).unwrap();
    }
    drop(state);
    std::thread::yield_now();
    let mut state = self::state();
    state.is_busy = false;
    run(&mut state)
}

pub struct Disk(String);

impl Disk {
    pub fn open(path: &str, how: How) -> AxResult<Self> {
        operate(&format!("open {path}"), |state| {
            match how {
                How::New => drop(state.files.insert(path.to_string(), Vec::new())),
                _ if state.files.contains_key(path) => {}
                _ => return Err(AxError::NotFound),
            }
            Ok(Self(path.to_string()))
        })
    }

    /// Reads three bytes at most, so that a longer read takes several calls.
    pub fn read_at(&self, at: u64, into: &mut [u8]) -> AxResult<usize> {
        operate(&format!("read {}", self.0), |state| {
            let bytes = state.files.get(&self.0).ok_or(AxError::NotFound)?;
            let rest = bytes.get(at as usize..).unwrap_or(&[]);
            let length = rest.len().min(into.len()).min(3);
            into[..length].copy_from_slice(&rest[..length]);
            Ok(length)
        })
    }

    /// Writes three bytes at most.
    pub fn write_at(&self, at: u64, bytes: &[u8]) -> AxResult<usize> {
        operate(&format!("write {}", self.0), |state| {
            let file = state.files.get_mut(&self.0).ok_or(AxError::NotFound)?;
            let (at, length) = (at as usize, bytes.len().min(3));
            file.resize(file.len().max(at + length), 0);
            file[at..at + length].copy_from_slice(&bytes[..length]);
            Ok(length)
        })
    }

    pub fn length(&self) -> AxResult<u64> {
        operate(&format!("length {}", self.0), |state| {
            let file = state.files.get(&self.0).ok_or(AxError::NotFound)?;
            Ok(file.len() as u64)
        })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        operate(&format!("close {}", self.0), |_| {});
    }
}

pub fn remove_from_disk(path: &str) -> AxResult {
    operate(&format!("remove {path}"), |state| {
        state.files.remove(path).map(drop).ok_or(AxError::NotFound)
    })
}

static POOL: Domain = Domain::new(DomainId::new(5), &SUMMARY, &HOST);

pub fn pool() -> &'static Domain {
    if POOL.open().is_ok() {
        POOL.set_workers(1).unwrap();
    }
    &POOL
}
