//! Allocation that may fail: a function without memory returns `None` and does not abort.

use alloc::vec::Vec;

/// Returns an empty vector with room for exactly `len` elements, or `None` if there is no memory.
pub fn with_room<A>(len: usize) -> Option<Vec<A>> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(len).ok()?;
    Some(vec)
}
