//! No trace: every call does nothing.

use super::Timeline;

/// A recorder that takes no room in a meter.
#[derive(Default)]
pub(crate) struct NoTrace;

impl NoTrace {
    #[inline(always)]
    pub(crate) fn new(_start_ticks: u64, _bin_ticks: u64) -> Self {
        Self
    }

    #[inline(always)]
    pub(crate) fn clear(&self) {}

    #[inline(always)]
    pub(crate) fn stay(&self, _entered: u64, _left: u64) {}

    #[inline(always)]
    pub(crate) fn left(&self, _now: u64, _is_blocked: impl FnOnce() -> bool) {}

    #[inline(always)]
    pub(crate) fn ticked(&self, _now: u64, _is_blocked: impl FnOnce() -> bool) {}

    #[inline(always)]
    pub(crate) fn entered(&self, _now: u64) {}

    #[inline(always)]
    pub(crate) fn close(&self) {}

    #[inline(always)]
    pub(crate) fn timeline(&self, _to_ns: impl Fn(u64) -> u64) -> Option<Timeline> {
        None
    }
}
