//! What a domain keeps under a lock: which blocks there are, whose priority has changed, how many
//! workers serve, and a few spare blocks.
//!
//! # NAMES
//!
//! A block has a slot of the table for as long as it is there, spare or not. So a worker that has a spare
//! block has all that a coroutine needs, and neither begins nor ends one with the lock: it gives the slot
//! the next generation, then the block its references; and the name is stale when the block says that
//! its coroutine has ended. So who looks a name up, with the lock, by which the block stays there, goes by
//! these steps:
//!
//! 1. The slot has the generation of the name; if not, the name is stale.
//! 2. He counts one more reference to the block, unless it is spare or its coroutine has ended.
//! 3. The slot still has the generation, so it is that coroutine to which he refers. If not, the block
//!    was given to another one between 1 and 2: he gives the reference back, without the lock, and the name
//!    is stale. (That he sees the other generation is because the reference that he has counted is seen by
//!    him, which is written after it.)

use core::ptr::NonNull;

use axcoop_summary::DomainId;

use crate::block::{self, Does, Header, SIZES};
use crate::cid::{Cid, Place};
use crate::kernel::{Attendant, Kernel};
use crate::spares::Spares;
use crate::table::{Directory, END, NoSlot, Table, UNLISTED, USED_UP};

pub(crate) struct Books {
    table: Table,
    /// The first and the last in the list of those whose priority has changed, through
    /// [`Slot::link`](crate::table::Slot::link).
    moved: u32,
    last_moved: u32,
    /// None of them is in that list.
    spares: Spares,
    /// How many workers shall serve.
    pub(crate) wanted: usize,
    /// Which do, a bit each.
    pub(crate) serving: u32,
    pub(crate) attendant: Option<&'static dyn Attendant>,
}

/// Who has been found by a name (NAMES).
#[must_use]
pub(crate) struct Found {
    /// It has one reference more, which is the caller's: to be given back without the lock.
    pub(crate) header: NonNull<Header>,
    /// Whether it is the one that was meant (step 3).
    pub(crate) is_meant: bool,
}

impl Books {
    pub(crate) const fn new() -> Self {
        Self {
            table: Table::new(),
            moved: END,
            last_moved: END,
            spares: Spares::new(),
            wanted: 0,
            serving: 0,
            attendant: None,
        }
    }

    /// A spare block, and the generation of who shall have it.
    pub(crate) fn admits(
        &mut self,
        kernel: &dyn Kernel,
        directory: &Directory,
        domain: DomainId,
        does: &'static Does,
    ) -> Result<(NonNull<Header>, u32), NoSlot> {
        if let Some(kept) = self.spares.takes(does.size) {
            // SAFETY: a spare block is there.
            let index = unsafe { kept.as_ref() }.place().index();
            return Ok((kept, self.next_generation(index)));
        }
        let memory = NonNull::new(kernel.alloc(does.layout));
        let memory = memory.ok_or(NoSlot::OutOfMemory(does.layout.size()))?;
        let index = match self.table.take(kernel, directory) {
            Ok(index) => index,
            Err(why) => {
                // SAFETY: of this kernel, with this layout, and unused.
                unsafe { kernel.dealloc(memory.as_ptr(), does.layout) };
                return Err(why);
            }
        };
        let slot = self.table.slot(index).expect("it was taken just now");
        // SAFETY: the memory is for it.
        let header = unsafe { block::make(memory, does, Place::new(domain, index)) };
        slot.block.set(header.as_ptr().cast());
        Ok((header, self.next_generation(index)))
    }

    fn next_generation(&mut self, index: u32) -> u32 {
        let slot = self.table.slot(index).expect("a block has a slot");
        (slot.next_generation())
            .expect("a slot that is used up is neither free nor of a spare block")
    }

    /// The name of one that has not ended.
    pub(crate) fn names(&mut self, header: &Header) -> Cid {
        let place = header.place();
        let slot = self.table.slot(place.index()).expect("a block has a slot");
        Cid {
            place,
            generation: slot.generation(),
        }
    }

    /// The coroutine of this name: NAMES.
    pub(crate) fn finds(&mut self, cid: Cid) -> Option<Found> {
        let header = self.looks(cid)?;
        // SAFETY: it is there as long as its slot leads to it, which the lock is for.
        unsafe { self.refers(cid, header) }
    }

    /// NAMES, step 1.
    pub(crate) fn looks(&mut self, cid: Cid) -> Option<NonNull<Header>> {
        let slot = self.table.slot(cid.place.index())?;
        if slot.generation() != cid.generation {
            return None;
        }
        NonNull::new(slot.block.get().cast_mut().cast())
    }

    /// NAMES, steps 2 and 3.
    ///
    /// # Safety
    /// The block is there: the slot of this name leads to it, and has done so since step 1.
    pub(crate) unsafe fn refers(&mut self, cid: Cid, header: NonNull<Header>) -> Option<Found> {
        let slot = self.table.slot(cid.place.index())?;
        // SAFETY: as promised.
        let is_there = unsafe { Header::refers_if_any(header) };
        is_there.then(|| Found {
            header,
            is_meant: slot.generation() == cid.generation,
        })
    }

    /// Its priority has changed: it is listed, unless it has ended, in which case false is returned.
    pub(crate) fn moves(&mut self, header: &Header) -> bool {
        if header.has_ended() {
            return false;
        }
        let index = header.place().index();
        let slot = self.table.slot(index).expect("a block has a slot");
        if slot.link.get() == UNLISTED {
            slot.link.set(END);
            match core::mem::replace(&mut self.last_moved, index) {
                END => self.moved = index,
                last => {
                    let last = self.table.slot(last).expect("who is listed has a slot");
                    last.link.set(index);
                }
            }
        }
        true
    }

    /// Takes one off the list of those that are to move, and calls this with it; false if there is
    /// none. It may have ended since, and its block be spare, or another coroutine's; then that is
    /// the caller's own, as it has the turn.
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
        self.moved = slot.link.replace(UNLISTED);
        if self.moved == END {
            self.last_moved = END;
        }
        // SAFETY: it is there as long as its slot leads to it, which the lock is for.
        match unsafe { slot.block.get().cast::<Header>().as_ref() } {
            Some(header) => on(header),
            None => self.table.free(kernel, index),
        }
        true
    }

    /// A block is spare. `will_trim`: somebody will call [`trims`](Self::trims) later; if not, it is not
    /// kept. Returns whether it is; if not, its memory is the caller's to give back.
    ///
    /// # Safety
    /// Nobody refers to it.
    #[must_use]
    pub(crate) unsafe fn takes_back(
        &mut self,
        kernel: &dyn Kernel,
        directory: &Directory,
        header: NonNull<Header>,
        will_trim: bool,
    ) -> bool {
        // SAFETY: as promised.
        let block = unsafe { header.as_ref() };
        let (index, size) = (block.place().index(), block.does().size);
        let slot = self.table.slot(index).expect("a block has a slot");
        let may_stay = will_trim && slot.link.get() == UNLISTED && slot.generation() != USED_UP;
        // SAFETY: as promised.
        if may_stay && unsafe { self.spares.keeps(size, header) } {
            return true;
        }
        self.table.leaves(kernel, index);
        if !will_trim {
            self.table.trim(kernel, directory);
        }
        false
    }

    /// Blocks that there are, but for the spare ones here.
    pub(crate) fn blocks(&self) -> usize {
        self.table.used() - self.spares.count()
    }

    /// Gives back the spare blocks of this size of another owner, whose the call is.
    pub(crate) fn clears_of(&mut self, kernel: &dyn Kernel, spares: &Spares, size: u8) {
        while let Some(header) = spares.takes(size) {
            self.drops(kernel, header, size);
        }
    }

    /// Gives back the memory that is kept for later.
    pub(crate) fn trims(&mut self, kernel: &dyn Kernel, directory: &Directory) {
        if self.spares.count() != 0 {
            for size in 0..SIZES as u8 {
                while let Some(header) = self.spares.takes(size) {
                    self.drops(kernel, header, size);
                }
            }
        }
        self.table.trim(kernel, directory);
    }

    /// Gives back a spare block.
    fn drops(&mut self, kernel: &dyn Kernel, header: NonNull<Header>, size: u8) {
        // SAFETY: a spare block is there.
        let place = unsafe { header.as_ref() }.place();
        self.table.leaves(kernel, place.index());
        // SAFETY: its slot does not lead to it any more, and nobody refers to it.
        let memory = unsafe { block::unmake(header) };
        // SAFETY: it was kept because it is of this size.
        unsafe { kernel.dealloc(memory.as_ptr(), block::of_size(size.into())) };
    }

    /// No name is one that there was before this generation.
    pub(crate) fn goes_on_from(&mut self, later: u32) {
        self.table.goes_on_from(later);
    }

    /// Takes those off the list whose block has gone before they could be moved: without a worker
    /// nobody else does.
    pub(crate) fn forgets_gone(&mut self, kernel: &dyn Kernel) {
        while self.moved != END {
            let slot = self
                .table
                .slot(self.moved)
                .expect("who is listed has a slot");
            if !slot.block.get().is_null() {
                return;
            }
            self.next_moved(kernel, |_| unreachable!("its block has gone"));
        }
    }

    /// Gives back everything, as nobody is left, and returns with which generation names go on.
    pub(crate) fn clears(&mut self, kernel: &dyn Kernel, directory: &Directory) -> u32 {
        self.attendant = None;
        self.trims(kernel, directory);
        self.table.clear(kernel, directory);
        self.table.later()
    }
}
