//! Where a layer finds its recording.

#[cfg(feature = "std")]
use alloc::boxed::Box;

use super::recording::Recording;

/// The recording behind `axsched_ext::syscall`, where there is one.
pub static RECORDING: Recording = Recording::new();

/// Where a layer finds its recording. A type, not a reference: the system's is at a fixed
/// address.
pub trait RecordingSource {
    /// The recording that this layer writes.
    fn recording() -> &'static Recording;
}

/// The source of the system's layers: [`RECORDING`].
pub struct SystemRecording;

impl RecordingSource for SystemRecording {
    #[inline(always)]
    fn recording() -> &'static Recording {
        &RECORDING
    }
}

/// For tests: one recording a thread, which can be renewed.
#[cfg(feature = "std")]
pub struct RecordingPerThread;

#[cfg(feature = "std")]
std::thread_local! {
    static OF_THREAD: core::cell::Cell<Option<&'static Recording>> = const { core::cell::Cell::new(None) };
}

#[cfg(feature = "std")]
impl RecordingPerThread {
    /// A new recording for this thread, for good.
    pub fn renew() -> &'static Recording {
        let recording = Box::leak(Box::default());
        OF_THREAD.set(Some(recording));
        recording
    }
}

#[cfg(feature = "std")]
impl RecordingSource for RecordingPerThread {
    fn recording() -> &'static Recording {
        OF_THREAD.get().unwrap_or_else(Self::renew)
    }
}
