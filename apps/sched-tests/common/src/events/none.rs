//! No events: every call does nothing.

use alloc::vec::Vec;

/// The logs of a phase in an image without `TRACE=events`. They take no room.
#[derive(Clone, Debug, Default)]
pub struct Logs(());

impl Logs {
    /// Returns no logs.
    #[inline(always)]
    pub(crate) fn take(self) -> Vec<sched_tests_results::events::Log> {
        Vec::new()
    }
}

#[cfg(target_os = "none")]
pub(crate) use guest::*;

#[cfg(target_os = "none")]
mod guest {
    use super::Logs;

    /// The number of a task. It takes no room in a meter.
    #[derive(Default)]
    pub(crate) struct Number;

    #[inline(always)]
    pub(crate) fn next_number() -> Number {
        Number
    }

    #[inline(always)]
    pub(crate) fn prepare() {}

    #[inline(always)]
    pub(crate) fn open(_now: u64) {}

    #[inline(always)]
    pub(crate) fn close() {}

    #[inline(always)]
    pub(crate) fn logs(_counter_hz: u64) -> Logs {
        Logs::default()
    }

    #[inline(always)]
    pub(crate) fn booked(_who: u64, _now: u64) {}

    #[inline(always)]
    pub(crate) fn let_in(_number: &Number, _now: u64) {}

    #[inline(always)]
    pub(crate) fn done(_number: &Number, _now: u64) {}

    #[inline(always)]
    pub(crate) fn left(_number: &Number, _now: u64) {}
}
