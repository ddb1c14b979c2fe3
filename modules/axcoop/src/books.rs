//! What a domain keeps under a lock: who there is, whose priority has changed, how many workers
//! serve, and a few free blocks.

use alloc::alloc::Layout;
use core::ptr::NonNull;

use crate::block::{Header, Ref};
use crate::cid::Cid;
use crate::kernel::{Attendant, Kernel};
use crate::table::{END, NoSlot, Table, UNLISTED};

pub(crate) struct Books {
    table: Table,
    /// The first and the last in the list of those whose priority has changed, through
    /// [`Slot::link`](crate::table::Slot::link).
    moved: u32,
    last_moved: u32,
    /// Blocks that somebody refers to.
    blocks: usize,
    pool: Pool,
    /// How many workers shall serve.
    pub(crate) wanted: usize,
    /// Which do, a bit each.
    pub(crate) serving: u32,
    pub(crate) attendant: Option<&'static dyn Attendant>,
}

impl Books {
    pub(crate) const fn new() -> Self {
        Self {
            table: Table::new(),
            moved: END,
            last_moved: END,
            blocks: 0,
            pool: Pool::new(),
            wanted: 0,
            serving: 0,
            attendant: None,
        }
    }

    /// Memory for a block, and a slot for it: index and generation.
    pub(crate) fn admits(
        &mut self,
        kernel: &dyn Kernel,
        layout: Layout,
    ) -> Result<(NonNull<u8>, u32, u32), NoSlot> {
        let kept = self.pool.takes(layout);
        let memory = kept.or_else(|| NonNull::new(kernel.alloc(layout)));
        let memory = memory.ok_or(NoSlot::OutOfMemory(layout.size()))?;
        let index = match self.table.take(kernel) {
            Ok(index) => index,
            Err(why) => {
                // SAFETY: of this kernel, with this layout, and unused.
                unsafe { kernel.dealloc(memory.as_ptr(), layout) };
                return Err(why);
            }
        };
        self.blocks += 1;
        let slot = self.table.slot(index).expect("it was taken just now");
        // Nobody looks there before there is a block: nobody knows its `Cid` yet.
        slot.block = memory.cast().as_ptr();
        Ok((memory, index, slot.generation))
    }

    /// The coroutine of this name.
    pub(crate) fn finds(&mut self, cid: Cid) -> Option<Ref> {
        let slot = self.table.slot(cid.place.index())?;
        if slot.generation != cid.generation {
            return None;
        }
        let header = NonNull::new(slot.block.cast_mut())?;
        // SAFETY: it has not ended, so the domain's reference is there.
        Some(unsafe { Ref::to(header) })
    }

    /// The name of one that has not ended.
    pub(crate) fn names(&mut self, header: &Header) -> Option<Cid> {
        let slot = self.table.slot(header.place().index())?;
        core::ptr::eq(slot.block, header).then_some(Cid {
            place: header.place(),
            generation: slot.generation,
        })
    }

    /// It has ended.
    pub(crate) fn ends(&mut self, kernel: &dyn Kernel, header: &Header) {
        self.table.ends(kernel, header.place().index());
    }

    /// Its priority has changed: it is listed, unless it has ended, in which case false is returned.
    pub(crate) fn moves(&mut self, header: &Header) -> bool {
        let index = header.place().index();
        let Some(slot) = self.table.slot(index) else {
            return false;
        };
        if !core::ptr::eq(slot.block, header) {
            return false;
        }
        if slot.link == UNLISTED {
            slot.link = END;
            match core::mem::replace(&mut self.last_moved, index) {
                END => self.moved = index,
                last => {
                    let last = self.table.slot(last).expect("who is listed has a slot");
                    last.link = index;
                }
            }
        }
        true
    }

    /// Takes one off the list of those that are to move, and calls this with it; false if there is
    /// none.
    pub(crate) fn next_moved(
        &mut self,
        kernel: &dyn Kernel,
        on: impl FnOnce(&'static Header),
    ) -> bool {
        if self.moved == END {
            return false;
        }
        let index = self.moved;
        let slot = self.table.slot(index).expect("who is listed has a slot");
        self.moved = core::mem::replace(&mut slot.link, UNLISTED);
        if self.moved == END {
            self.last_moved = END;
        }
        // SAFETY: if it has not ended, it cannot before the lock is let go.
        match unsafe { slot.block.as_ref() } {
            Some(header) => on(header),
            None => self.table.free(kernel, index),
        }
        true
    }

    /// Nobody refers to a block any more. Returns whether its memory is kept; if not, it is to be
    /// given back.
    ///
    /// # Safety
    /// It is the memory of a block of this layout.
    pub(crate) unsafe fn takes_back(&mut self, memory: NonNull<u8>, layout: Layout) -> bool {
        self.blocks -= 1;
        // SAFETY: as promised, and nobody refers to it.
        unsafe { self.pool.keeps(memory, layout) }
    }

    /// Coroutines that have not ended.
    pub(crate) fn coroutines(&self) -> usize {
        self.table.used()
    }

    /// Blocks that somebody refers to.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks
    }

    /// Gives back the memory that is kept for later.
    pub(crate) fn trims(&mut self, kernel: &dyn Kernel) {
        self.pool.clears(kernel);
        self.table.trim(kernel);
    }

    /// No name is one that there was before this generation.
    pub(crate) fn goes_on_from(&mut self, later: u32) {
        self.table.goes_on_from(later);
    }

    /// Gives back everything, as nobody is left, and returns with which generation names go on.
    pub(crate) fn clears(&mut self, kernel: &dyn Kernel) -> u32 {
        self.attendant = None;
        self.trims(kernel);
        self.table.clear(kernel);
        self.table.later()
    }

    /// Takes those off the list who have ended before they could be moved, if all have ended and nobody
    /// refers to them.
    pub(crate) fn forgets_ended(&mut self, kernel: &dyn Kernel) {
        while self.blocks == 0 && self.next_moved(kernel, |_| unreachable!("it has ended")) {}
    }
}

/// Memory of a few blocks for the next ones, by size: an allocator takes more instructions than all
/// the rest of a spawn. It is given back when a worker waits, so an idle domain keeps none, and there
/// are few at any time: 16 of each of 16 sizes, 64 KiB if it is full.
struct Pool {
    /// The first of each size, which has the next at its beginning.
    first: [Option<NonNull<u8>>; SIZES],
    kept: [u8; SIZES],
    is_empty: bool,
}

// SAFETY: the memory is the pool's.
unsafe impl Send for Pool {}

const SIZES: usize = 16;
const OF_ONE_SIZE: u8 = 16;
/// A block's size is a multiple of this, less [`HEAD`].
const GRAIN: usize = 32;
const HEAD: usize = 16;

/// The layout of the blocks of this size.
const fn of_size(size: usize) -> Layout {
    match Layout::from_size_align((size + 1) * GRAIN - HEAD, HEAD) {
        Ok(layout) => layout,
        Err(_) => panic!("a small layout"),
    }
}

/// Which size it is, if blocks of it are kept.
#[inline]
fn size_of_kept(layout: Layout) -> Option<usize> {
    let size = (layout.size() + HEAD) / GRAIN - 1;
    (size < SIZES && layout.align() == HEAD).then_some(size)
}

impl Pool {
    const fn new() -> Self {
        Self {
            first: [None; SIZES],
            kept: [0; SIZES],
            is_empty: true,
        }
    }

    fn takes(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        let size = size_of_kept(layout)?;
        let memory = self.first[size]?;
        // SAFETY: of `keeps`.
        self.first[size] = unsafe { memory.cast().read() };
        self.kept[size] -= 1;
        Some(memory)
    }

    /// # Safety
    /// The memory is of this layout, and the caller's; if it is kept, the pool's.
    unsafe fn keeps(&mut self, memory: NonNull<u8>, layout: Layout) -> bool {
        let Some(size) = size_of_kept(layout) else {
            return false;
        };
        if self.kept[size] == OF_ONE_SIZE {
            return false;
        }
        // SAFETY: it is large enough, and nobody else's.
        unsafe { memory.cast().write(self.first[size]) };
        self.first[size] = Some(memory);
        self.kept[size] += 1;
        self.is_empty = false;
        true
    }

    fn clears(&mut self, kernel: &dyn Kernel) {
        if core::mem::replace(&mut self.is_empty, true) {
            return;
        }
        for size in 0..SIZES {
            while let Some(memory) = self.takes(of_size(size)) {
                // SAFETY: it was kept because it is of this size, and it is nobody else's now.
                unsafe { kernel.dealloc(memory.as_ptr(), of_size(size)) };
            }
        }
    }
}
