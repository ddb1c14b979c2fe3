//! The allocator of `sched-bench`: a scene's tasks have the same addresses on every machine and in
//! every tree. Addresses of the system's allocator depend on the C library and on earlier
//! allocations, such as the program's path. Cache misses and the cost of a queue that allocates
//! depend on these addresses.
//!
//! It is about as cheap as an allocator can be: an allocation in a scheduler call takes a few
//! instructions.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::{Cell, UnsafeCell};
use std::ptr;

/// Bytes of the room, which are enough for the most tasks.
const ROOM: usize = 64 << 20;
/// Alignment of the first byte of a scene's memory.
const BEGIN: usize = 1 << 20;
/// A size is rounded up to a multiple of this, which is also the usual alignment.
const GRAIN: usize = 16;
/// Number of sizes, in grains, that are reused. Larger blocks are not.
const CLASSES: usize = 512;
/// Bytes of a cache's line.
const LINE: usize = 64;

/// An allocator with a stack of freed blocks for each size, and a region from which it cuts new ones.
pub struct Arena {
    room: Room,
    used: Cell<usize>,
    free: [Cell<*mut u8>; CLASSES],
}

#[repr(C, align(0x10_0000))]
struct Room(UnsafeCell<[u8; ROOM]>);

const _: () = assert!(align_of::<Room>() == BEGIN);

// SAFETY: the program has one thread.
unsafe impl Sync for Arena {}

impl Arena {
    /// Makes an arena with all of its room free.
    pub const fn new() -> Self {
        Self {
            room: Room(UnsafeCell::new([0; ROOM])),
            used: Cell::new(0),
            free: [const { Cell::new(ptr::null_mut()) }; CLASSES],
        }
    }

    /// Makes the addresses of all later blocks independent of the earlier ones.
    pub fn begin(&self) {
        self.used.set(self.used.get().next_multiple_of(BEGIN));
        self.free.iter().for_each(|free| free.set(ptr::null_mut()));
    }

    /// Returns the stack of a layout.
    #[inline(always)]
    fn free(&self, layout: Layout) -> Option<&Cell<*mut u8>> {
        let class = layout.size().div_ceil(GRAIN);
        self.free.get(class).filter(|_| layout.align() <= GRAIN)
    }

    #[cold]
    fn cut(&self, layout: Layout) -> *mut u8 {
        let begin = self.used.get().next_multiple_of(layout.align().max(GRAIN));
        let mut size = layout.size().next_multiple_of(GRAIN);
        // Blocks of one size begin everywhere in a line in turn. Otherwise some policies would
        // gain by the size of their tasks.
        if size.is_multiple_of(LINE / 2) {
            size += GRAIN;
        }
        if begin + size > ROOM {
            return ptr::null_mut();
        }
        self.used.set(begin + size);
        // SAFETY: the room has at least this many bytes.
        unsafe { self.room.0.get().cast::<u8>().add(begin) }
    }
}

// SAFETY: `cut` gives out each part of the room once, with the alignment of the layout. A block of
// a free list has no owner, the number of grains of the layout, and the alignment of a grain.
unsafe impl GlobalAlloc for Arena {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(free) = self.free(layout) {
            let first = free.get();
            if !first.is_null() {
                // SAFETY: a block that was freed begins with the address of the next.
                free.set(unsafe { first.cast::<*mut u8>().read() });
                return first;
            }
        }
        self.cut(layout)
    }

    #[inline(always)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if let Some(free) = self.free(layout) {
            // SAFETY: the caller owns the block, which has at least a grain.
            unsafe { block.cast::<*mut u8>().write(free.get()) };
            free.set(block);
        }
    }
}
