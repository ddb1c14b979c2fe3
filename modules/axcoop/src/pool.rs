//! Free blocks that are kept for the next coroutines: most are of a few sizes, and come and go.
//!
//! 1. A block is of the class of its size, with the 16 bytes that an allocator puts before it, in
//!    units of 32 bytes; [`block`](crate::block) makes no others.
//! 2. At most 256 are kept, of up to 496 bytes each, so 124 KiB at most.
//! 3. All are given back before a worker waits, and when there is no memory.

use alloc::alloc::Layout;
use core::ptr::{self, NonNull};

use crate::kernel::Kernel;

/// Rule 1.
pub(crate) const HEAD: usize = 16;
pub(crate) const GRAIN: usize = 32;
/// Rule 2.
const CLASSES: usize = 16;
const MOST: u32 = 256;

/// One that is free has the next of its class in its first word.
pub(crate) struct Pool {
    first: [*mut u8; CLASSES],
    kept: u32,
}

// SAFETY: it owns its memory.
unsafe impl Send for Pool {}

/// Rules 1 and 2: none of one that is not kept.
#[inline]
fn class_of(layout: Layout) -> Option<usize> {
    let class = (layout.size() + HEAD) / GRAIN;
    (class < CLASSES && layout.align() <= HEAD).then_some(class)
}

const fn layout(class: usize) -> Layout {
    match Layout::from_size_align(class * GRAIN - HEAD, HEAD) {
        Ok(layout) => layout,
        Err(_) => panic!("a small block"),
    }
}

impl Pool {
    pub(crate) const fn new() -> Self {
        Self {
            first: [ptr::null_mut(); CLASSES],
            kept: 0,
        }
    }

    /// Memory of this layout; none if there is none.
    #[inline]
    pub(crate) fn takes(&mut self, kernel: &dyn Kernel, of: Layout) -> Option<NonNull<u8>> {
        if let Some(class) = class_of(of)
            && let Some(memory) = NonNull::new(self.first[class])
        {
            // SAFETY: a block that is kept has the next one in its first word.
            self.first[class] = unsafe { memory.cast().read() };
            self.kept -= 1;
            return Some(memory);
        }
        NonNull::new(kernel.alloc(of)).or_else(|| {
            self.clears(kernel);
            NonNull::new(kernel.alloc(of))
        })
    }

    /// Keeps it, or returns it for the caller to give back.
    ///
    /// # Safety
    /// It is of [`takes`](Self::takes), with this layout, and not used any more.
    #[inline]
    #[must_use]
    pub(crate) unsafe fn keeps(&mut self, memory: NonNull<u8>, of: Layout) -> Option<NonNull<u8>> {
        match class_of(of) {
            Some(class) if self.kept < MOST => {
                let next = core::mem::replace(&mut self.first[class], memory.as_ptr());
                // SAFETY: it is nobody else's, and large enough.
                unsafe { memory.cast().write(next) };
                self.kept += 1;
                None
            }
            _ => Some(memory),
        }
    }

    /// Rule 3.
    pub(crate) fn clears(&mut self, kernel: &dyn Kernel) {
        if self.kept == 0 {
            return;
        }
        for class in 1..CLASSES {
            while let Some(memory) = NonNull::new(self.first[class]) {
                // SAFETY: as in `takes`; the kernel's, of the layout of its class.
                unsafe {
                    self.first[class] = memory.cast().read();
                    kernel.dealloc(memory.as_ptr(), layout(class));
                }
            }
        }
        self.kept = 0;
    }
}
