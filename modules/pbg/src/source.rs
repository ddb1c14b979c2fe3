//! The source from which a scheduler gets its control.

#[cfg(feature = "model")]
use {alloc::boxed::Box, core::cell::Cell, pbg_record::recorder::Recorder};

use super::control::Control;

/// The control behind `axsched_ext::syscall`.
pub static CONTROL: Control = Control::new();

/// The source of a scheduler's control. It is a type and not a reference, because the system's control
/// has a fixed address, which saves a load in every call.
pub trait ControlSource {
    /// Returns the control of the scheduler.
    fn control() -> &'static Control;
}

/// The source of the system's schedulers: [`CONTROL`].
pub struct SystemControl;

impl ControlSource for SystemControl {
    #[inline(always)]
    fn control() -> &'static Control {
        &CONTROL
    }
}

/// The source of tests. Each thread has one control, which can be renewed.
#[cfg(feature = "model")]
pub struct PerThread;

#[cfg(feature = "model")]
std::thread_local! {
    static OF_THREAD: Cell<Option<&'static Control>> = const { Cell::new(None) };
    /// The recorder of a control that was retired, for the next one. It is never freed.
    static SPARE: Cell<Option<&'static Recorder>> = const { Cell::new(None) };
}

#[cfg(feature = "model")]
impl PerThread {
    /// Creates a new control for this thread, which is never freed. Schedulers that were used before
    /// must not be used any more, because they follow the old control's plan.
    pub fn renew() -> &'static Control {
        let control: &'static Control = Box::leak(Box::default());
        control.take_recorder(SPARE.take());
        OF_THREAD.set(Some(control));
        control
    }

    /// Frees the memory of this thread's control. Its schedulers must be gone, and no call may use it
    /// any more. Some hundred bytes of it are never freed.
    pub fn retire() {
        if let Some(control) = OF_THREAD.take() {
            SPARE.set(control.retire());
        }
    }
}

#[cfg(feature = "model")]
impl ControlSource for PerThread {
    fn control() -> &'static Control {
        OF_THREAD.get().unwrap_or_else(Self::renew)
    }
}
