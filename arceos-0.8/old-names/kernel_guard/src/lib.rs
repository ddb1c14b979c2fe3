//! The guards of [`ax_task::sync`] under their old names.

#![no_std]
#![cfg(target_os = "none")]

pub use ax_task::sync::{PreemptGuard as NoPreempt, PreemptIrqSaveGuard as NoPreemptIrqSave};
