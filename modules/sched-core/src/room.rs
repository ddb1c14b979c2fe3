//! Memory that may be refused: a call that lacks it answers so, and does not abort.

use alloc::vec::Vec;

/// An empty vector with room for `len`, and for no more; `None` if there is no memory.
pub fn with_room<A>(len: usize) -> Option<Vec<A>> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(len).ok()?;
    Some(vec)
}
