//! A panic ends the coroutine alone where the target can unwind.
//!
//! With feature `std` it is caught. Without it a panic is the system's, which for ArceOS is the end of
//! the image: its targets abort.

/// What was called has panicked, and has said so.
pub(crate) struct Panicked;

#[cfg(feature = "std")]
pub(crate) fn caught<R>(on: impl FnOnce() -> R) -> Result<R, Panicked> {
    // A future that has panicked is dropped and never polled again, so nobody sees it half done.
    std::panic::catch_unwind(core::panic::AssertUnwindSafe(on)).map_err(|what| {
        // A payload whose destructor panics, too, is more than anybody asks for.
        core::mem::forget(what);
        Panicked
    })
}

#[cfg(not(feature = "std"))]
#[inline]
pub(crate) fn caught<R>(on: impl FnOnce() -> R) -> Result<R, Panicked> {
    Ok(on())
}
