//! Where a scheduler finds its control.

#[cfg(feature = "model")]
use alloc::boxed::Box;

use super::control::Control;

/// The control behind `axsched_ext::syscall`.
pub static CONTROL: Control = Control::new();

/// Where a scheduler finds its control. A type, not a reference: the system's is at
/// a fixed address, which saves a load in every call.
pub trait ControlSource {
    /// The control that this scheduler looks at.
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

/// For tests: one control a thread, which can be renewed.
#[cfg(feature = "model")]
pub struct PerThread;

#[cfg(feature = "model")]
std::thread_local! {
    static OF_THREAD: core::cell::Cell<Option<&'static Control>> = const { core::cell::Cell::new(None) };
}

#[cfg(feature = "model")]
impl PerThread {
    /// Creates a new control for this thread, for good. Schedulers that were used before must not
    /// be used any more: they follow the old control's plan.
    pub fn renew() -> &'static Control {
        let control = Box::leak(Box::default());
        OF_THREAD.set(Some(control));
        control
    }

    /// Frees the memory of this thread's control when its schedulers are gone and no call will use
    /// it: some hundred bytes of it stay for good.
    pub fn retire() {
        if let Some(control) = OF_THREAD.take() {
            control.retire();
        }
    }
}

#[cfg(feature = "model")]
impl ControlSource for PerThread {
    fn control() -> &'static Control {
        OF_THREAD.get().unwrap_or_else(Self::renew)
    }
}
