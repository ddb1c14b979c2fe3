//! Which coroutines there are: a slot of 16 bytes each, by which a [`Cid`](crate::Cid) is looked up.
//!
//! 1. A slot that is used again has another generation, so a stale `Cid` finds nothing. Who takes it
//!    for a coroutine gives it that, which may be without the lock: NAMES in [`books`](crate::books).
//! 2. A slot whose generations are used up is not used again.
//! 3. Slots come in chunks of 256, made as they are needed and given back when nobody is in them,
//!    but for one that is kept in reserve (KEEP in [`spares`](crate::spares)). A chunk that is made again goes on with later generations
//!    than any that it had, so rule 1 holds for it, too. The list of chunks is given back when there
//!    is none; the next list goes on with later generations than all of them.
//! 4. Taking a slot and leaving it takes the same time however many there are, but for making a
//!    chunk, and for doubling the list of chunks.

use alloc::alloc::Layout;
use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::cid::MAX_COROUTINES;
use crate::kernel::Kernel;

const SLOTS: usize = 256;
const CHUNKS: usize = MAX_COROUTINES / SLOTS;
/// No slot, no chunk.
const NONE: u32 = u32::MAX;

/// [`Slot::link`] of a coroutine in no list.
pub(crate) const UNLISTED: u32 = NONE;
/// [`Slot::link`] of the last one in a list.
pub(crate) const END: u32 = NONE - 1;

/// All but the generation is of who has the lock of the domain's books. A slot stays where it is as
/// long as it is taken.
pub(crate) struct Slot {
    /// The block that has it: null if it is free, or if its block has gone while it was listed.
    pub(crate) block: Cell<*const ()>,
    generation: AtomicU32,
    /// The next free one of its chunk; of a coroutine, the next in the list of those whose priority
    /// has changed.
    pub(crate) link: Cell<u32>,
}

/// The last generation of a slot (rule 2).
pub(crate) const USED_UP: u32 = u32::MAX;

impl Slot {
    /// Of the coroutine that has it, or has had it last.
    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// Of the next coroutine that has it, by who has its block; none if they are used up.
    #[inline]
    pub(crate) fn next_generation(&self) -> Option<u32> {
        let generation = self.generation.load(Ordering::Relaxed).checked_add(1)?;
        // Whoever sees what is written later sees this (NAMES).
        self.generation.store(generation, Ordering::Release);
        Some(generation)
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn set_generation(&self, generation: u32) {
        self.generation.store(generation, Ordering::Relaxed);
    }
}

/// Where the slots are, for who knows that one is taken: a list of chunks that is read without the lock.
/// When it grows there is another one, and the old ones stay until nobody is left.
pub(crate) struct Directory {
    /// As many as [`Table::capacity`], and one more, which is the list before it.
    chunks: AtomicPtr<AtomicPtr<Slot>>,
}

impl Directory {
    pub(crate) const fn new() -> Self {
        Self {
            chunks: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The slot of this index.
    ///
    /// # Safety
    /// It is taken, and the caller knows that from who has taken it.
    #[inline]
    pub(crate) unsafe fn slot(&self, index: u32) -> &Slot {
        let (number, at) = (index as usize / SLOTS, index as usize % SLOTS);
        // SAFETY: as promised: the list has it, the chunk is there and stays, and has so many.
        unsafe {
            let slots = &*self.chunks.load(Ordering::Acquire).add(number);
            &*slots.load(Ordering::Relaxed).add(at)
        }
    }

    /// A chunk is where it is from now on.
    ///
    /// # Safety
    /// There is room for so many.
    unsafe fn set(&self, number: u32, slots: *mut Slot) {
        // SAFETY: as promised.
        let entry = unsafe { &*self.chunks.load(Ordering::Relaxed).add(number as usize) };
        entry.store(slots, Ordering::Release);
    }

    /// There is room for so many chunks, and was for so many before.
    fn grows(&self, kernel: &dyn Kernel, from: usize, to: usize) -> Result<(), NoSlot> {
        let chunks: *mut AtomicPtr<Slot> = memory(kernel, to + 1)?;
        let old = self.chunks.load(Ordering::Relaxed);
        for number in 0..to {
            let slots = match number < from {
                // SAFETY: there are so many.
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

    /// Gives back all lists, the last of which has room for so many chunks. Nobody is left.
    fn clears(&self, kernel: &dyn Kernel, mut capacity: usize) {
        let mut chunks = self.chunks.swap(ptr::null_mut(), Ordering::Relaxed);
        while !chunks.is_null() {
            // SAFETY: of `grows`: behind so many there is the one before.
            let old = unsafe { &*chunks.add(capacity) }.load(Ordering::Relaxed);
            // SAFETY: of `grows`.
            unsafe { kernel.dealloc(chunks.cast(), layout::<AtomicPtr<Slot>>(capacity + 1)) };
            (chunks, capacity) = (old.cast(), before(capacity));
        }
    }
}

/// How much room the list has that comes after one with so much.
const fn after(capacity: usize) -> usize {
    match 2 * capacity {
        0 => LEAST,
        more if more > CHUNKS => CHUNKS,
        more => more,
    }
}

/// And the one before.
const fn before(capacity: usize) -> usize {
    match capacity {
        LEAST => 0,
        more => more / 2,
    }
}

/// Room in the first list of chunks; that of all others is a power of two as well.
const LEAST: usize = 4;
const _: () = assert!(LEAST.is_power_of_two() && CHUNKS.is_power_of_two());

struct Chunk {
    /// Null if it is not there.
    slots: *mut Slot,
    /// The generation of all its slots when it is made again.
    generation: u32,
    /// The first free slot.
    free: u32,
    /// How many are not free.
    used: u32,
    /// Among those that are open, which are there and have a free slot; and `next` among those that
    /// are not there.
    next: u32,
    prev: u32,
}

/// The slots of a domain.
pub(crate) struct Table {
    chunks: *mut Chunk,
    capacity: u32,
    /// How many of `chunks` have been used.
    made: u32,
    open: u32,
    absent: u32,
    /// Rule 3: a chunk with nobody in it.
    reserve: u32,
    used: usize,
    /// Rule 3: the generation of a chunk that has never been there.
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

    /// How many slots are not free.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Takes a slot for a block, which the caller puts in, and returns its index.
    pub(crate) fn take(
        &mut self,
        kernel: &dyn Kernel,
        directory: &Directory,
    ) -> Result<u32, NoSlot> {
        if self.open == NONE {
            self.opens(kernel, directory)?;
        }
        let number = self.open;
        let chunk = self.chunk(number);
        let at = chunk.free;
        chunk.free = chunk.slot(at).link.replace(UNLISTED);
        chunk.used += 1;
        if chunk.free == NONE {
            self.closes(number);
        }
        if self.reserve == number {
            self.reserve = NONE;
        }
        self.used += 1;
        Ok(number * SLOTS as u32 + at)
    }

    /// The slot of somebody, whose `Cid` has this index, or anything else that there may be.
    pub(crate) fn slot(&mut self, index: u32) -> Option<&Slot> {
        let number = index / SLOTS as u32;
        if number >= self.made || self.chunk(number).slots.is_null() {
            return None;
        }
        Some(self.chunk(number).slot(index % SLOTS as u32))
    }

    /// The block that has the slot goes. Unless it is in a list, the slot is free; otherwise
    /// [`free`](Self::free) has to be called when it is taken off.
    pub(crate) fn leaves(&mut self, kernel: &dyn Kernel, index: u32) {
        let slot = self.slot(index).expect("a block has a slot");
        debug_assert!(!slot.block.get().is_null());
        slot.block.set(ptr::null());
        if slot.link.get() == UNLISTED {
            self.free(kernel, index);
        }
    }

    /// Frees the slot of a block that has gone.
    pub(crate) fn free(&mut self, kernel: &dyn Kernel, index: u32) {
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
            self.links(number);
        }
        if is_empty {
            match self.reserve {
                NONE => self.reserve = number,
                _ => self.drops(kernel, number),
            }
        }
    }

    /// Gives back what is in reserve, and all else if nobody is left.
    pub(crate) fn trim(&mut self, kernel: &dyn Kernel, directory: &Directory) {
        if self.reserve != NONE {
            let number = core::mem::replace(&mut self.reserve, NONE);
            self.drops(kernel, number);
        }
        if self.used == 0 && (0..self.made).all(|number| self.chunk(number).slots.is_null()) {
            self.clear(kernel, directory);
        }
    }

    /// A chunk more is open.
    fn opens(&mut self, kernel: &dyn Kernel, directory: &Directory) -> Result<(), NoSlot> {
        if self.absent == NONE {
            if self.made == self.capacity {
                self.grows(kernel, directory)?;
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
        let slots: *mut Slot = memory(kernel, SLOTS)?;
        let number = self.absent;
        let chunk = self.chunk(number);
        for at in 0..SLOTS {
            // SAFETY: of so many.
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
        self.links(number);
        Ok(())
    }

    /// There is room for twice as many chunks.
    fn grows(&mut self, kernel: &dyn Kernel, directory: &Directory) -> Result<(), NoSlot> {
        let capacity = after(self.capacity as usize);
        if capacity == self.capacity as usize {
            return Err(NoSlot::TooMany);
        }
        let chunks: *mut Chunk = memory(kernel, capacity)?;
        if let Err(why) = directory.grows(kernel, self.capacity as usize, capacity) {
            // SAFETY: of just now.
            unsafe { kernel.dealloc(chunks.cast(), layout::<Chunk>(capacity)) };
            return Err(why);
        }
        if self.capacity != 0 {
            // SAFETY: both are of so many at least; the old ones are not used any more.
            unsafe {
                chunks.copy_from_nonoverlapping(self.chunks, self.made as usize);
                kernel.dealloc(self.chunks.cast(), layout::<Chunk>(self.capacity as usize));
            }
        }
        self.chunks = chunks;
        self.capacity = capacity as u32;
        Ok(())
    }

    /// Gives back a chunk with nobody in it. Its generations go on (rule 3).
    fn drops(&mut self, kernel: &dyn Kernel, number: u32) {
        self.closes(number);
        let absent = self.absent;
        let chunk = self.chunk(number);
        let slots = core::mem::replace(&mut chunk.slots, ptr::null_mut());
        chunk.next = absent;
        self.absent = number;
        // SAFETY: of `opens`, and nobody is in it.
        unsafe { kernel.dealloc(slots.cast(), layout::<Slot>(SLOTS)) };
    }

    /// It is open.
    fn links(&mut self, number: u32) {
        let next = core::mem::replace(&mut self.open, number);
        let chunk = self.chunk(number);
        (chunk.next, chunk.prev) = (next, NONE);
        if next != NONE {
            self.chunk(next).prev = number;
        }
    }

    /// It is not open any more.
    fn closes(&mut self, number: u32) {
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
        // SAFETY: so many are there.
        unsafe { &mut *self.chunks.add(number as usize) }
    }

    /// Rule 3, of all that there will be.
    pub(crate) fn goes_on_from(&mut self, later: u32) {
        self.later = self.later.max(later);
    }

    /// Rule 3: a generation that is as late as any that there has been.
    pub(crate) fn later(&mut self) -> u32 {
        let generations = (0..self.made).map(|number| self.chunk(number).generation);
        generations.max().unwrap_or(0).max(self.later)
    }

    /// Gives back all memory. Generations go on (rule 3).
    pub(crate) fn clear(&mut self, kernel: &dyn Kernel, directory: &Directory) {
        assert_eq!(self.used, 0, "somebody is in it");
        let later = self.later();
        directory.clears(kernel, self.capacity as usize);
        for number in 0..self.made {
            let slots = self.chunk(number).slots;
            if !slots.is_null() {
                // SAFETY: of `opens`, and nobody is in it.
                unsafe { kernel.dealloc(slots.cast(), layout::<Slot>(SLOTS)) };
            }
        }
        if self.capacity != 0 {
            // SAFETY: of `grows`.
            unsafe {
                kernel.dealloc(self.chunks.cast(), layout::<Chunk>(self.capacity as usize));
            }
        }
        *self = Self::new();
        self.later = later;
    }
}

impl Chunk {
    fn slot<'a>(&self, at: u32) -> &'a Slot {
        debug_assert!(!self.slots.is_null());
        // SAFETY: of so many; it stays where it is while it is taken, or while the caller has the table.
        unsafe { &*self.slots.add(at as usize % SLOTS) }
    }
}

const fn layout<T>(n: usize) -> Layout {
    match Layout::array::<T>(n) {
        Ok(layout) => layout,
        Err(_) => panic!("a table of half the address space"),
    }
}

fn memory<T>(kernel: &dyn Kernel, n: usize) -> Result<*mut T, NoSlot> {
    let memory = kernel.alloc(layout::<T>(n));
    match memory.is_null() {
        true => Err(NoSlot::OutOfMemory(layout::<T>(n).size())),
        false => Ok(memory.cast()),
    }
}
