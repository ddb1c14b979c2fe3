//! The guards of [`ax_task::sync`] under their old names.

#![no_std]
#![cfg(target_os = "none")]

use ax_task::sync::{GuardState, PreemptIrqSaveGuard, PreemptIrqSaveState};

pub use ax_task::sync::PreemptGuard as NoPreempt;

/// A state that is entered and left.
pub trait BaseGuard {
    /// The state to restore.
    type State: Copy;

    /// Enters the state.
    fn acquire() -> Self::State;

    /// Leaves the state.
    fn release(state: Self::State);
}

/// Turns preemption and the interrupts of this CPU off while it lives.
pub struct NoPreemptIrqSave(
    #[expect(dead_code, reason = "its drop is what matters")] PreemptIrqSaveGuard,
);

impl NoPreemptIrqSave {
    /// Turns them off.
    #[expect(clippy::new_without_default, reason = "no caller needs it")]
    pub fn new() -> Self {
        Self(PreemptIrqSaveGuard::new())
    }
}

impl BaseGuard for NoPreemptIrqSave {
    type State = usize;

    fn acquire() -> usize {
        PreemptIrqSaveState::acquire()
    }

    fn release(state: usize) {
        PreemptIrqSaveState::release(state);
    }
}
