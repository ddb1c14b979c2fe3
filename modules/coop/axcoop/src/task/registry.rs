//! The state that a domain keeps under a lock: its blocks, the changed priorities, its workers, and a few spare blocks.
//!
//! # NAMES
//!
//! A block, spare or not, has a slot of the table while it exists. So a worker with a spare block has all that a
//! coroutine needs, and begins and ends one without the lock. To begin one, it gives the slot the next generation, and
//! then the block its references. A name is stale when the reference count says that its coroutine has ended.
//!
//! A lookup holds the lock, which keeps the block in existence, and takes these steps:
//!
//! 1. It compares the generation of the slot with that of the name. If they differ, the name is stale.
//! 2. It takes a reference to the block, unless the block is spare or its coroutine has ended.
//! 3. It compares the generations again. If they are still equal, the reference is to the named coroutine. If not, the
//!    block was given to another coroutine between 1 and 2: the reference is dropped, without the lock, and the name is
//!    stale. The lookup sees the other generation, because that was stored before the references that the lookup counts
//!    in.

use core::ptr::NonNull;

use axcoop_summary::DomainId;

use crate::run::platform::{Platform, PollHook};
use crate::task::block::{self, Header, SIZES, Vtable};
use crate::task::free_list::FreeList;
use crate::task::id::{CoroutineId, SlotIndex};
use crate::task::table::{Directory, END, NoSlot, Table, UNLISTED, USED_UP};

pub(crate) struct Registry {
    /// True while the domain's number leads to it. Otherwise the domain has neither workers nor blocks.
    pub(crate) is_open: bool,
    table: Table,
    /// The first and the last slot in the list of changed priorities, linked by
    /// [`Slot::link`](crate::task::table::Slot::link).
    moved: u32,
    last_moved: u32,
    /// Spare blocks, none of which is in that list.
    free_list: FreeList,
    /// The number of workers requested.
    pub(crate) wanted: usize,
    /// The workers that serve, from their request on, and those of them that have begun (bit masks).
    pub(crate) serving: u32,
    begun: u32,
    pub(crate) poll_hook: Option<&'static dyn PollHook>,
}

/// The result of a lookup (NAMES).
#[must_use]
pub(crate) struct Found {
    /// Has one more reference, which belongs to the caller and is dropped without the lock.
    pub(crate) header: NonNull<Header>,
    /// True if it is the named coroutine (step 3).
    pub(crate) is_meant: bool,
}

impl Registry {
    pub(crate) const fn new() -> Self {
        Self {
            is_open: false,
            table: Table::new(),
            moved: END,
            last_moved: END,
            free_list: FreeList::new(),
            wanted: 0,
            serving: 0,
            begun: 0,
            poll_hook: None,
        }
    }

    /// Begins the worker of this number. Returns false if it was not requested, or has begun already.
    #[must_use]
    pub(crate) fn begin_worker(&mut self, number: usize) -> bool {
        let one = 1 << number;
        let may_begin = self.serving & !self.begun & one != 0;
        if may_begin {
            self.begun |= one;
        }
        may_begin
    }

    /// Removes the worker of this number.
    pub(crate) fn remove_worker(&mut self, number: usize) {
        self.serving &= !(1 << number);
        self.begun &= !(1 << number);
    }

    /// Returns a spare block, and the generation of its next coroutine.
    pub(crate) fn take_block(
        &mut self,
        platform: &dyn Platform,
        directory: &Directory,
        domain: DomainId,
        vtable: &'static Vtable,
    ) -> Result<(NonNull<Header>, u32), NoSlot> {
        if let Some(kept) = self.free_list.take(vtable.size) {
            // SAFETY: a spare block is there.
            let index = unsafe { kept.as_ref() }.place().index();
            return Ok((kept, self.next_generation(index)));
        }
        let memory = NonNull::new(platform.alloc(vtable.layout));
        let memory = memory.ok_or(NoSlot::OutOfMemory(vtable.layout.size()))?;
        let index = match self.table.take(platform, directory) {
            Ok(index) => index,
            Err(why) => {
                // SAFETY: the memory comes from this platform, has this layout, and is unused.
                unsafe { platform.dealloc(memory.as_ptr(), vtable.layout) };
                return Err(why);
            }
        };
        let slot = self.table.slot(index).expect("it was taken just now");
        // SAFETY: the memory is for it.
        let header = unsafe { block::make(memory, vtable, SlotIndex::new(domain, index)) };
        slot.block.set(header.as_ptr().cast());
        Ok((header, self.next_generation(index)))
    }

    fn next_generation(&mut self, index: u32) -> u32 {
        let slot = self.table.slot(index).expect("a block has a slot");
        (slot.next_generation())
            .expect("a slot that is used up is neither free nor of a spare block")
    }

    /// Returns the name of a coroutine that has not ended.
    pub(crate) fn name_of(&mut self, header: &Header) -> CoroutineId {
        let place = header.place();
        let slot = self.table.slot(place.index()).expect("a block has a slot");
        CoroutineId {
            place,
            generation: slot.generation(),
        }
    }

    /// Looks a name up (NAMES).
    pub(crate) fn find(&mut self, cid: CoroutineId) -> Option<Found> {
        let header = self.find_block(cid)?;
        // SAFETY: the block exists while its slot leads to it, which the lock protects.
        unsafe { self.take_ref(cid, header) }
    }

    /// Finds the block of a name (NAMES, step 1).
    pub(crate) fn find_block(&mut self, cid: CoroutineId) -> Option<NonNull<Header>> {
        let slot = self.table.slot(cid.place.index())?;
        if slot.generation() != cid.generation {
            return None;
        }
        NonNull::new(slot.block.get().cast_mut().cast())
    }

    /// Takes a reference to the block and compares the generations again (NAMES, steps 2 and 3).
    ///
    /// # Safety
    /// The block exists: the slot of this name leads to it, and has done so since step 1.
    pub(crate) unsafe fn take_ref(
        &mut self,
        cid: CoroutineId,
        header: NonNull<Header>,
    ) -> Option<Found> {
        let slot = self.table.slot(cid.place.index())?;
        // SAFETY: as promised.
        let is_there = unsafe { Header::try_add_ref(header) };
        is_there.then(|| Found {
            header,
            is_meant: slot.generation() == cid.generation,
        })
    }

    /// Lists a coroutine whose priority has changed. Returns false if it has ended.
    pub(crate) fn list_moved(&mut self, header: &Header) -> bool {
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
                    let last = self
                        .table
                        .slot(last)
                        .expect("a listed coroutine has a slot");
                    last.link.set(index);
                }
            }
        }
        true
    }

    /// Takes the first entry off the list of changed priorities and calls `on` with it. Returns false if the list is
    /// empty. The coroutine may have ended since. Then its block is spare, or has another coroutine, which belongs to
    /// the caller as the holder of the token.
    pub(crate) fn take_moved(
        &mut self,
        platform: &dyn Platform,
        on: impl FnOnce(&'static Header),
    ) -> bool {
        if self.moved == END {
            return false;
        }
        let index = self.moved;
        let slot = self
            .table
            .slot(index)
            .expect("a listed coroutine has a slot");
        self.moved = slot.link.replace(UNLISTED);
        if self.moved == END {
            self.last_moved = END;
        }
        // SAFETY: the block exists while its slot leads to it, which the lock protects.
        match unsafe { slot.block.get().cast::<Header>().as_ref() } {
            Some(header) => on(header),
            None => self.table.free(platform, index),
        }
        true
    }

    /// Takes back a block without references. Keeps it only if `will_trim`, which says that [`trim`](Self::trim) will
    /// be called later. Returns true if it is kept. If not, the caller must free its memory.
    ///
    /// # Safety
    /// There is no reference to it.
    #[must_use]
    pub(crate) unsafe fn return_block(
        &mut self,
        platform: &dyn Platform,
        directory: &Directory,
        header: NonNull<Header>,
        will_trim: bool,
    ) -> bool {
        // SAFETY: as promised.
        let block = unsafe { header.as_ref() };
        let (index, size) = (block.place().index(), block.vtable().size);
        let slot = self.table.slot(index).expect("a block has a slot");
        let may_stay = will_trim && slot.link.get() == UNLISTED && slot.generation() != USED_UP;
        // SAFETY: as promised.
        if may_stay && unsafe { self.free_list.keep(size, header) } {
            return true;
        }
        self.table.remove_block(platform, index);
        if !will_trim {
            self.table.trim(platform, directory);
        }
        false
    }

    /// Returns the number of blocks, without the spare ones here.
    pub(crate) fn blocks(&self) -> usize {
        self.table.used() - self.free_list.count()
    }

    /// Frees the blocks of one size class in the caller's own list of spare blocks.
    pub(crate) fn clear_list(&mut self, platform: &dyn Platform, free_list: &FreeList, size: u8) {
        while let Some(header) = free_list.take(size) {
            self.free_block(platform, header, size);
        }
    }

    /// Frees the memory that is kept for later.
    pub(crate) fn trim(&mut self, platform: &dyn Platform, directory: &Directory) {
        if self.free_list.count() != 0 {
            for size in 0..SIZES as u8 {
                while let Some(header) = self.free_list.take(size) {
                    self.free_block(platform, header, size);
                }
            }
        }
        self.table.trim(platform, directory);
    }

    /// Frees a spare block.
    fn free_block(&mut self, platform: &dyn Platform, header: NonNull<Header>, size: u8) {
        // SAFETY: a spare block is there.
        let place = unsafe { header.as_ref() }.place();
        self.table.remove_block(platform, place.index());
        // SAFETY: its slot does not lead to it any more, and there is no reference to it.
        let memory = unsafe { block::unmake(header) };
        // SAFETY: it was kept because it is of this size.
        unsafe { platform.dealloc(memory.as_ptr(), block::of_size(size.into())) };
    }

    /// Opens the registry. All names from now on have this generation or a later one.
    pub(crate) fn open(&mut self, later: u32) {
        self.is_open = true;
        self.table.continue_from(later);
    }

    /// Takes the entries off the list whose blocks are gone. Without a worker, no other call does so.
    pub(crate) fn forget_gone(&mut self, platform: &dyn Platform) {
        while self.moved != END {
            let slot = self
                .table
                .slot(self.moved)
                .expect("a listed coroutine has a slot");
            if !slot.block.get().is_null() {
                return;
            }
            self.take_moved(platform, |_| unreachable!("its block has gone"));
        }
    }

    /// Closes the registry of a domain without coroutines and workers: frees everything, and returns the generation
    /// with which names go on.
    pub(crate) fn close(&mut self, platform: &dyn Platform, directory: &Directory) -> u32 {
        self.is_open = false;
        self.poll_hook = None;
        self.trim(platform, directory);
        self.table.clear(platform, directory);
        self.table.later()
    }
}
