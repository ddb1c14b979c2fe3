//! The memory in use, and whether there is some for a thread.

use core::alloc::Layout;

/// The stack size of a thread: that of the report.
pub const STACK_BYTES: usize = 16 * 1024;
/// The bytes that must be left after that, in pieces. The first run of the threads already started needs them, and
/// `axtask` allocates in each wake.
const LEFT_BYTES: usize = 64 * 1024;
const LEFT_PIECES: usize = 16;

/// There is no memory for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

/// Returns the bytes that the allocator has given out.
pub fn used_bytes() -> usize {
    axalloc::global_allocator().used_bytes()
}

/// Checks that there is enough memory for one more thread.
///
/// `axtask` asks the global allocator, which panics when there is none. So this asks the same allocator first, in a
/// way that may fail, and frees what it got.
///
/// # Errors
/// [`OutOfMemory`] if there is not.
pub fn room_for_a_thread() -> Result<(), OutOfMemory> {
    let allocator = axalloc::global_allocator();
    let layout = |bytes| Layout::from_size_align(bytes, 16).expect("a power of two");
    let pieces = [STACK_BYTES].into_iter().chain([LEFT_BYTES; LEFT_PIECES]);
    let mut given = [None; 1 + LEFT_PIECES];
    for (place, bytes) in given.iter_mut().zip(pieces) {
        *place = allocator
            .alloc(layout(bytes))
            .ok()
            .map(|piece| (piece, bytes));
    }
    let is_enough = given.iter().all(Option::is_some);
    for (piece, bytes) in given.into_iter().flatten() {
        allocator.dealloc(piece, layout(bytes));
    }
    is_enough.then_some(()).ok_or(OutOfMemory)
}
