//! The errors, each with a message of one line.

use core::error::Error;
use core::fmt;

use axcoop_summary::DomainId;

use crate::run::platform::MAX_WORKERS;
use crate::task::id::CoroutineId;

/// The coroutine of this [`CoroutineId`] has ended. The name is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale(pub CoroutineId);

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: no such coroutine any more", self.0)
    }
}

/// Why a coroutine could not be spawned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnError {
    /// There is no memory for it.
    OutOfMemory {
        /// The bytes that it would have taken.
        bytes: usize,
    },
    /// There are [`MAX_COROUTINES`](crate::MAX_COROUTINES) already.
    TooMany,
    /// The domain is not open.
    NotOpen(DomainId),
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory { bytes } => {
                write!(f, "no memory for a coroutine: {bytes} bytes are needed")
            }
            Self::TooMany => write!(
                f,
                "too many coroutines: a domain has at most {}",
                crate::MAX_COROUTINES
            ),
            &Self::NotOpen(id) => DomainError::NotOpen(id).fmt(f),
        }
    }
}

/// How a coroutine without an output has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was cancelled.
    Cancelled,
    /// It panicked, and the target can unwind.
    Panicked,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cancelled => "the coroutine was cancelled",
            Self::Panicked => "the coroutine panicked",
        })
    }
}

/// Why a domain cannot be opened or closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainError {
    /// Another domain of this number is open.
    Taken(DomainId),
    /// The domain is not open.
    NotOpen(DomainId),
    /// A coroutine, a handle or a waker of one, a timer or a worker is left.
    InUse {
        /// The number of coroutines that have a block, or of timers if that is larger.
        coroutines: usize,
        /// The number of workers that have not left.
        workers: usize,
    },
}

impl fmt::Display for DomainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken(id) => write!(f, "domain {} is open already", id.index()),
            Self::NotOpen(id) => write!(f, "domain {} is not open", id.index()),
            Self::InUse {
                coroutines,
                workers,
            } => write!(
                f,
                "the domain is in use: {coroutines} coroutines, {workers} workers"
            ),
        }
    }
}

/// Why a domain has not got the workers that were requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerError {
    /// More than [`MAX_WORKERS`] were requested.
    TooMany(usize),
    /// The system could not start all of them.
    OutOfMemory {
        /// The number requested.
        wanted: usize,
        /// The number that serve the domain.
        serving: usize,
    },
    /// The domain is not open.
    NotOpen(DomainId),
}

impl fmt::Display for WorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany(n) => write!(f, "{n} workers: allowed is 0 to {MAX_WORKERS}"),
            Self::OutOfMemory { wanted, serving } => {
                write!(f, "no memory for {wanted} workers: {serving} serve")
            }
            &Self::NotOpen(id) => DomainError::NotOpen(id).fmt(f),
        }
    }
}

impl Error for Stale {}
impl Error for SpawnError {}
impl Error for Ended {}
impl Error for DomainError {}
impl Error for WorkerError {}
