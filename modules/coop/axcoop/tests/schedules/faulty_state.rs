//! The states with the order of steps of the seeds' executors: a waker checks that the coroutine is blocked, and the
//! executor marks it blocked only after the poll. A wake between the two is lost.

use crate::atomics::{AtomicU32, Ordering};

const IDLE: u32 = 0;
const QUEUED: u32 = 1;
const RUNNING: u32 = 2;
const DONE: u32 = 3;

pub(crate) struct State(AtomicU32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    MustBeQueued,
    Already,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "no coroutine is cancelled")]
pub(crate) enum Begun {
    Poll,
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "no coroutine is queued again")]
pub(crate) enum Suspended {
    Idle,
    Queued,
}

impl State {
    pub(crate) fn queued() -> Self {
        Self(AtomicU32::new(QUEUED))
    }

    pub(crate) fn mark_queued(&self) {
        self.0.store(QUEUED, Ordering::Relaxed);
    }

    pub(crate) fn wake(&self) -> Woken {
        let is_idle = self
            .0
            .compare_exchange(IDLE, QUEUED, Ordering::AcqRel, Ordering::Relaxed);
        match is_idle {
            Ok(_) => Woken::MustBeQueued,
            Err(_) => Woken::Already,
        }
    }

    pub(crate) fn cancel(&self) -> Woken {
        self.wake()
    }

    pub(crate) fn wake_running(&self) -> bool {
        false
    }

    pub(crate) fn begin(&self) -> Begun {
        self.0.store(RUNNING, Ordering::Release);
        Begun::Poll
    }

    pub(crate) fn is_woken(&self) -> bool {
        false
    }

    pub(crate) fn suspend(&self) -> Suspended {
        self.0.store(IDLE, Ordering::Release);
        Suspended::Idle
    }

    pub(crate) fn finish(&self) {
        self.0.store(DONE, Ordering::Release);
    }
}
