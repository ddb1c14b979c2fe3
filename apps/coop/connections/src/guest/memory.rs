//! Memory: what is in use, and whether there is some for a thread.

use core::alloc::Layout;

/// The stack of a thread: that of the report.
pub const STACK_BYTES: usize = 16 * 1024;
/// What a thread takes besides, at most; and what others may need while there is little left.
const BESIDE_BYTES: usize = 64 * 1024;

/// There is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

/// The bytes that the allocator has given out.
pub fn used_bytes() -> usize {
    axalloc::global_allocator().used_bytes()
}

/// Whether there is enough for one more thread.
///
/// `axtask` asks the global allocator, which panics when there is none; so this asks the same
/// allocator first, in a way that may fail, and gives back what it got.
///
/// # Errors
/// [`OutOfMemory`] if there is not.
pub fn room_for_a_thread() -> Result<(), OutOfMemory> {
    let allocator = axalloc::global_allocator();
    let layouts = [STACK_BYTES, BESIDE_BYTES]
        .map(|bytes| Layout::from_size_align(bytes, 16).expect("a power of two"));
    let stack = allocator.alloc(layouts[0]).map_err(|_| OutOfMemory)?;
    let beside = allocator.alloc(layouts[1]);
    allocator.dealloc(stack, layouts[0]);
    allocator.dealloc(beside.map_err(|_| OutOfMemory)?, layouts[1]);
    Ok(())
}
