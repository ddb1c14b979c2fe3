//! The table of coroutines: a slot of 16 bytes for each, by which a [`CoroutineId`](crate::CoroutineId) is looked up.
//!
//! 1. A slot that is used again has another generation, so a stale `CoroutineId` finds nothing. The owner of the slot
//!    sets the generation, which needs no lock: NAMES in [`registry`](crate::task::registry).
//! 2. A slot whose generations are used up is not used again.
//! 3. Slots come in chunks of 256, which are allocated as needed and freed when they are empty. One empty chunk is
//!    kept in reserve (KEEP in [`free_list`](crate::task::free_list)). A chunk that is allocated again begins with
//!    later generations than it had, so rule 1 holds. The list of chunks is freed when there is no chunk; the next list
//!    begins with later generations than all of them.
//! 4. Taking and freeing a slot takes constant time, except for allocating a chunk and doubling the list.

use alloc::alloc::Layout;
use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::run::platform::Platform;
use crate::task::id::MAX_COROUTINES;

const SLOTS: usize = 256;
const CHUNKS: usize = MAX_COROUTINES / SLOTS;
/// No slot or chunk.
const NONE: u32 = u32::MAX;

/// [`Slot::link`] of a coroutine in no list.
pub(crate) const UNLISTED: u32 = NONE;
/// [`Slot::link`] of the last coroutine in a list.
pub(crate) const END: u32 = NONE - 1;

/// The place of one coroutine in the table. All of it except the generation is under the lock of the domain's registry.
/// A slot does not move while it is taken.
pub(crate) struct Slot {
    /// The block of the slot: null if the slot is free, or if its block has gone while it was listed.
    pub(crate) block: Cell<*const ()>,
    generation: AtomicU32,
    /// The next free slot of its chunk; for a coroutine, the next one in the list of changed priorities.
    pub(crate) link: Cell<u32>,
}

/// The last generation of a slot (rule 2).
pub(crate) const USED_UP: u32 = u32::MAX;

impl Slot {
    /// Returns the generation of the coroutine that has the slot, or had it last.
    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns the generation of the next coroutine, or none if they are used up. Called by the owner of the block.
    #[inline]
    pub(crate) fn next_generation(&self) -> Option<u32> {
        let generation = self.generation.load(Ordering::Relaxed).checked_add(1)?;
        // A reader that sees later writes sees this one (NAMES).
        self.generation.store(generation, Ordering::Release);
        Some(generation)
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn set_generation(&self, generation: u32) {
        self.generation.store(generation, Ordering::Relaxed);
    }
}

/// The addresses of the slots, for callers that know a slot to be taken: a list of chunks that is read without the
/// lock. A longer list replaces it, and the old ones stay until the domain is empty.
pub(crate) struct Directory {
    /// A list of [`Table::capacity`] entries, and one more that is the list before it.
    chunks: AtomicPtr<AtomicPtr<Slot>>,
}

impl Directory {
    pub(crate) const fn new() -> Self {
        Self {
            chunks: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Returns the slot of this index.
    ///
    /// # Safety
    /// The slot is taken, and the caller was told so by the taker.
    #[inline]
    pub(crate) unsafe fn slot(&self, index: u32) -> &Slot {
        let (number, at) = (index as usize / SLOTS, index as usize % SLOTS);
        // SAFETY: the slot is taken, as promised. So the list has the entry, and the chunk exists and has the slot.
        unsafe {
            let slots = &*self.chunks.load(Ordering::Acquire).add(number);
            &*slots.load(Ordering::Relaxed).add(at)
        }
    }

    /// Sets the address of a chunk.
    ///
    /// # Safety
    /// The list has this many entries.
    unsafe fn set(&self, number: u32, slots: *mut Slot) {
        // SAFETY: as promised.
        let entry = unsafe { &*self.chunks.load(Ordering::Relaxed).add(number as usize) };
        entry.store(slots, Ordering::Release);
    }

    /// Replaces the list by one with this many entries.
    fn grow(&self, platform: &dyn Platform, from: usize, to: usize) -> Result<(), NoSlot> {
        let chunks: *mut AtomicPtr<Slot> = memory(platform, to + 1)?;
        let old = self.chunks.load(Ordering::Relaxed);
        for number in 0..to {
            let slots = match number < from {
                // SAFETY: the old list has this many.
                true => unsafe { &*old.add(number) }.load(Ordering::Relaxed),
                false => ptr::null_mut(),
            };
            // SAFETY: there is room for it.
            unsafe { chunks.add(number).write(AtomicPtr::new(slots)) };
        }
        // SAFETY: there is room for one more.
        unsafe { chunks.add(to).write(AtomicPtr::new(old.cast())) };
        self.chunks.store(chunks, Ordering::Release);
        Ok(())
    }

    /// Frees all lists, the last of which has this many entries. No coroutine is left.
    fn clear(&self, platform: &dyn Platform, mut capacity: usize) {
        let mut chunks = self.chunks.swap(ptr::null_mut(), Ordering::Relaxed);
        while !chunks.is_null() {
            // SAFETY: `grow` has made it, and has put the list before it behind the entries.
            let old = unsafe { &*chunks.add(capacity) }.load(Ordering::Relaxed);
            // SAFETY: it comes from `grow`.
            unsafe { platform.dealloc(chunks.cast(), layout::<AtomicPtr<Slot>>(capacity + 1)) };
            (chunks, capacity) = (old.cast(), before(capacity));
        }
    }
}

/// Returns the capacity of the list after one of this capacity.
const fn after(capacity: usize) -> usize {
    match 2 * capacity {
        0 => LEAST,
        more if more > CHUNKS => CHUNKS,
        more => more,
    }
}

/// Returns the capacity of the list before it.
const fn before(capacity: usize) -> usize {
    match capacity {
        LEAST => 0,
        more => more / 2,
    }
}

/// The capacity of the first list of chunks; those of the others are powers of two, too.
const LEAST: usize = 4;
const _: () = assert!(LEAST.is_power_of_two() && CHUNKS.is_power_of_two());

struct Chunk {
    /// Null if the chunk is not allocated.
    slots: *mut Slot,
    /// The generation of all its slots when it is allocated again.
    generation: u32,
    /// The first free slot.
    free: u32,
    /// The number of slots that are not free.
    used: u32,
    /// The neighbours in the list of open chunks, which are allocated and have a free slot. `next` also links the
    /// chunks that are not allocated.
    next: u32,
    prev: u32,
}

/// The slots of a domain.
pub(crate) struct Table {
    chunks: *mut Chunk,
    capacity: u32,
    /// The number of `chunks` that have ever been used.
    made: u32,
    open: u32,
    absent: u32,
    /// The empty chunk that is kept in reserve, or [`NONE`] (rule 3).
    reserve: u32,
    used: usize,
    /// The generation of a chunk that has never been allocated (rule 3).
    later: u32,
}

// SAFETY: it owns its memory.
unsafe impl Send for Table {}

/// Why there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSlot {
    OutOfMemory(usize),
    TooMany,
}

impl Table {
    pub(crate) const fn new() -> Self {
        Self {
            chunks: ptr::null_mut(),
            capacity: 0,
            made: 0,
            open: NONE,
            absent: NONE,
            reserve: NONE,
            used: 0,
            later: 0,
        }
    }

    /// Returns the number of slots that are not free.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Takes a slot, in which the caller stores its block, and returns its index.
    pub(crate) fn take(
        &mut self,
        platform: &dyn Platform,
        directory: &Directory,
    ) -> Result<u32, NoSlot> {
        if self.open == NONE {
            self.open_chunk(platform, directory)?;
        }
        let number = self.open;
        let chunk = self.chunk(number);
        let at = chunk.free;
        chunk.free = chunk.slot(at).link.replace(UNLISTED);
        chunk.used += 1;
        if chunk.free == NONE {
            self.unlink_open(number);
        }
        if self.reserve == number {
            self.reserve = NONE;
        }
        self.used += 1;
        Ok(number * SLOTS as u32 + at)
    }

    /// Returns the slot of an index, which may come from any `CoroutineId`, if its chunk is allocated.
    pub(crate) fn slot(&mut self, index: u32) -> Option<&Slot> {
        let number = index / SLOTS as u32;
        if number >= self.made || self.chunk(number).slots.is_null() {
            return None;
        }
        Some(self.chunk(number).slot(index % SLOTS as u32))
    }

    /// Removes the block of a slot. An unlisted slot is free then; for a listed one, [`free`](Self::free) must be
    /// called when it is taken off the list.
    pub(crate) fn remove_block(&mut self, platform: &dyn Platform, index: u32) {
        let slot = self.slot(index).expect("a block has a slot");
        debug_assert!(!slot.block.get().is_null());
        slot.block.set(ptr::null());
        if slot.link.get() == UNLISTED {
            self.free(platform, index);
        }
    }

    /// Frees the slot of a block that has gone.
    pub(crate) fn free(&mut self, platform: &dyn Platform, index: u32) {
        let number = index / SLOTS as u32;
        self.used -= 1;
        let chunk = self.chunk(number);
        let first = chunk.free;
        let slot = chunk.slot(index % SLOTS as u32);
        slot.block.set(ptr::null());
        let generation = slot.generation();
        if generation == USED_UP {
            // Rule 2: its chunk is never empty again.
            return;
        }
        slot.link.set(first);
        chunk.generation = chunk.generation.max(generation);
        chunk.free = index % SLOTS as u32;
        chunk.used -= 1;
        let is_empty = chunk.used == 0;
        if first == NONE {
            self.link_open(number);
        }
        if is_empty {
            match self.reserve {
                NONE => self.reserve = number,
                _ => self.free_chunk(platform, number),
            }
        }
    }

    /// Frees the reserve, and everything if no coroutine is left.
    pub(crate) fn trim(&mut self, platform: &dyn Platform, directory: &Directory) {
        if self.reserve != NONE {
            let number = core::mem::replace(&mut self.reserve, NONE);
            self.free_chunk(platform, number);
        }
        if self.used == 0 && (0..self.made).all(|number| self.chunk(number).slots.is_null()) {
            self.clear(platform, directory);
        }
    }

    /// Opens one more chunk.
    fn open_chunk(&mut self, platform: &dyn Platform, directory: &Directory) -> Result<(), NoSlot> {
        if self.absent == NONE {
            if self.made == self.capacity {
                self.grow(platform, directory)?;
            }
            // SAFETY: there is room for it.
            unsafe {
                self.chunks.add(self.made as usize).write(Chunk {
                    slots: ptr::null_mut(),
                    generation: self.later,
                    free: NONE,
                    used: 0,
                    next: NONE,
                    prev: NONE,
                });
            }
            self.absent = self.made;
            self.made += 1;
        }
        let slots: *mut Slot = memory(platform, SLOTS)?;
        let number = self.absent;
        let chunk = self.chunk(number);
        for at in 0..SLOTS {
            // SAFETY: the chunk was allocated for `SLOTS` slots.
            unsafe {
                slots.add(at).write(Slot {
                    block: Cell::new(ptr::null()),
                    generation: AtomicU32::new(chunk.generation),
                    link: Cell::new(if at + 1 < SLOTS { at as u32 + 1 } else { NONE }),
                });
            }
        }
        chunk.slots = slots;
        // SAFETY: there is room for all that are made.
        unsafe { directory.set(number, slots) };
        chunk.free = 0;
        let next = chunk.next;
        self.absent = next;
        self.link_open(number);
        Ok(())
    }

    /// Doubles the room for chunks.
    fn grow(&mut self, platform: &dyn Platform, directory: &Directory) -> Result<(), NoSlot> {
        let capacity = after(self.capacity as usize);
        if capacity == self.capacity as usize {
            return Err(NoSlot::TooMany);
        }
        let chunks: *mut Chunk = memory(platform, capacity)?;
        if let Err(why) = directory.grow(platform, self.capacity as usize, capacity) {
            // SAFETY: it was allocated just now.
            unsafe { platform.dealloc(chunks.cast(), layout::<Chunk>(capacity)) };
            return Err(why);
        }
        if self.capacity != 0 {
            // SAFETY: both lists have room for `made` entries, and the old one is not used any more.
            unsafe {
                chunks.copy_from_nonoverlapping(self.chunks, self.made as usize);
                platform.dealloc(self.chunks.cast(), layout::<Chunk>(self.capacity as usize));
            }
        }
        self.chunks = chunks;
        self.capacity = capacity as u32;
        Ok(())
    }

    /// Frees an empty chunk. Its generations go on (rule 3).
    fn free_chunk(&mut self, platform: &dyn Platform, number: u32) {
        self.unlink_open(number);
        let absent = self.absent;
        let chunk = self.chunk(number);
        let slots = core::mem::replace(&mut chunk.slots, ptr::null_mut());
        chunk.next = absent;
        self.absent = number;
        // SAFETY: it comes from `open_chunk`, and is empty.
        unsafe { platform.dealloc(slots.cast(), layout::<Slot>(SLOTS)) };
    }

    /// Links an open chunk.
    fn link_open(&mut self, number: u32) {
        let next = core::mem::replace(&mut self.open, number);
        let chunk = self.chunk(number);
        (chunk.next, chunk.prev) = (next, NONE);
        if next != NONE {
            self.chunk(next).prev = number;
        }
    }

    /// Unlinks a chunk that is no longer open.
    fn unlink_open(&mut self, number: u32) {
        let chunk = self.chunk(number);
        let (next, prev) = (chunk.next, chunk.prev);
        match prev {
            NONE => self.open = next,
            prev => self.chunk(prev).next = next,
        }
        if next != NONE {
            self.chunk(next).prev = prev;
        }
    }

    fn chunk(&mut self, number: u32) -> &mut Chunk {
        debug_assert!(number < self.made);
        // SAFETY: there are this many.
        unsafe { &mut *self.chunks.add(number as usize) }
    }

    /// Sets the generation of all chunks to come (rule 3).
    pub(crate) fn continue_from(&mut self, later: u32) {
        self.later = self.later.max(later);
    }

    /// Returns a generation that is as late as any used so far (rule 3).
    pub(crate) fn later(&mut self) -> u32 {
        let generations = (0..self.made).map(|number| self.chunk(number).generation);
        generations.max().unwrap_or(0).max(self.later)
    }

    /// Frees all memory. Generations go on (rule 3).
    pub(crate) fn clear(&mut self, platform: &dyn Platform, directory: &Directory) {
        assert_eq!(self.used, 0, "a slot is still taken");
        let later = self.later();
        directory.clear(platform, self.capacity as usize);
        for number in 0..self.made {
            let slots = self.chunk(number).slots;
            if !slots.is_null() {
                // SAFETY: it comes from `open_chunk`, and is empty.
                unsafe { platform.dealloc(slots.cast(), layout::<Slot>(SLOTS)) };
            }
        }
        if self.capacity != 0 {
            // SAFETY: it comes from `grow`.
            unsafe {
                platform.dealloc(self.chunks.cast(), layout::<Chunk>(self.capacity as usize));
            }
        }
        *self = Self::new();
        self.later = later;
    }
}

impl Chunk {
    fn slot<'a>(&self, at: u32) -> &'a Slot {
        debug_assert!(!self.slots.is_null());
        // SAFETY: the index is below `SLOTS`. A slot does not move while it is taken, or while the caller borrows the
        // table.
        unsafe { &*self.slots.add(at as usize % SLOTS) }
    }
}

const fn layout<T>(n: usize) -> Layout {
    match Layout::array::<T>(n) {
        Ok(layout) => layout,
        Err(_) => panic!("a table of half the address space"),
    }
}

fn memory<T>(platform: &dyn Platform, n: usize) -> Result<*mut T, NoSlot> {
    let memory = platform.alloc(layout::<T>(n));
    match memory.is_null() {
        true => Err(NoSlot::OutOfMemory(layout::<T>(n).size())),
        false => Ok(memory.cast()),
    }
}
