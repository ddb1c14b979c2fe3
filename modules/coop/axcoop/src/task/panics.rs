//! A panic ends only its coroutine where the target can unwind.
//!
//! With feature `std` it is caught. Without it the system handles the panic, which for ArceOS ends the image: its
//! targets abort.

/// The call has panicked, and has printed its message.
pub(crate) struct Panicked;

#[cfg(feature = "std")]
pub(crate) fn catch<R>(on: impl FnOnce() -> R) -> Result<R, Panicked> {
    // A future that has panicked is dropped and never polled again, so its broken state is not seen.
    std::panic::catch_unwind(core::panic::AssertUnwindSafe(on)).map_err(|what| {
        // The destructor of a payload may panic, too: the payload is leaked.
        core::mem::forget(what);
        Panicked
    })
}

#[cfg(not(feature = "std"))]
#[inline]
pub(crate) fn catch<R>(on: impl FnOnce() -> R) -> Result<R, Panicked> {
    Ok(on())
}
