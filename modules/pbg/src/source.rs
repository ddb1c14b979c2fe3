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
    /// A new control for this thread, for good. Schedulers that were used before must not be
    /// used any more: their plan is the old one's.
    pub fn renew() -> &'static Control {
        let control = Box::leak(Box::default());
        OF_THREAD.set(Some(control));
        control
    }

    /// Lets go of what this thread's control holds, when its schedulers are gone and nobody will
    /// ask it any more: some hundred bytes of it stay for good.
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
