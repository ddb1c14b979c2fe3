//! What a domain keeps under a lock: who there is, whose priority has changed, how many workers
//! serve, and a few free blocks.

use alloc::alloc::Layout;
use core::ptr::NonNull;

use crate::block::{Header, Ref};
use crate::cid::Cid;
use crate::kernel::{Attendant, Kernel};
use crate::pool::Pool;
use crate::table::{END, NoSlot, Table, UNLISTED};

pub(crate) struct Books {
    table: Table,
    pool: Pool,
    /// The first in the list of those whose priority has changed, through [`Slot::link`](crate::table::Slot::link).
    moved: u32,
    /// Blocks that are not given back yet.
    blocks: usize,
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
            pool: Pool::new(),
            moved: END,
            blocks: 0,
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
        let memory = self.pool.takes(kernel, layout);
        let memory = memory.ok_or(NoSlot::OutOfMemory(layout.size()))?;
        let index = match self.table.take(kernel) {
            Ok(index) => index,
            Err(why) => {
                // SAFETY: from above, and unused.
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
            slot.link = core::mem::replace(&mut self.moved, index);
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
        // SAFETY: it has not ended, and cannot before the lock is let go.
        match unsafe { slot.block.as_ref() } {
            Some(header) => on(header),
            None => self.table.free(kernel, index),
        }
        true
    }

    /// A block is not used any more; what is returned is to be given back to the kernel.
    ///
    /// # Safety
    /// It is of [`admits`](Self::admits), with this layout.
    #[must_use]
    pub(crate) unsafe fn takes_back(
        &mut self,
        memory: NonNull<u8>,
        layout: Layout,
    ) -> Option<NonNull<u8>> {
        self.blocks -= 1;
        // SAFETY: as promised.
        unsafe { self.pool.keeps(memory, layout) }
    }

    /// Coroutines that have not ended.
    pub(crate) fn coroutines(&self) -> usize {
        self.table.used()
    }

    /// Blocks that are not given back.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks
    }

    /// Gives back what is kept for later.
    pub(crate) fn trims(&mut self, kernel: &dyn Kernel) {
        self.table.trim(kernel);
        self.pool.clears(kernel);
    }

    /// Gives back everything; nobody is left.
    pub(crate) fn clears(&mut self, kernel: &dyn Kernel) {
        self.trims(kernel);
        self.table.clear(kernel);
    }
}
