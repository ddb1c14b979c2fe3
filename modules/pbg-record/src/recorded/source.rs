//! The source from which a layer gets its recording.

#[cfg(feature = "std")]
use alloc::boxed::Box;

use super::recording::Recording;

/// The recording behind `axsched_ext::syscall`, if the build records its policy.
pub static RECORDING: Recording = Recording::new();

/// The source of a layer's recording. It is a type and not a reference, because the system's recording
/// has a fixed address.
pub trait RecordingSource {
    /// Returns the recording that the layer writes.
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

/// The source of tests. Each thread has one recording, which can be renewed.
#[cfg(feature = "std")]
pub struct RecordingPerThread;

#[cfg(feature = "std")]
std::thread_local! {
    static OF_THREAD: core::cell::Cell<Option<&'static Recording>> = const { core::cell::Cell::new(None) };
}

#[cfg(feature = "std")]
impl RecordingPerThread {
    /// Creates a new recording for this thread, which is never freed.
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
