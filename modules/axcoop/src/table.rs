//! Which coroutines there are: a slot of 16 bytes each, by which a [`Cid`](crate::Cid) is looked up.
//!
//! 1. A slot that is used again has another generation, so a stale `Cid` finds nothing.
//! 2. A slot whose generations are used up is not used again.
//! 3. Slots come in chunks of 256, made as they are needed and given back when nobody is in them,
//!    but for one that is kept in reserve. A chunk that is made again goes on with later generations
//!    than any that it had, so rule 1 holds for it, too. The list of chunks is given back when there
//!    is none; the next list goes on with later generations than all of them.
//! 4. Taking a slot and leaving it takes the same time however many there are, but for making a
//!    chunk, and for doubling the list of chunks.

use alloc::alloc::Layout;
use core::ptr;

use crate::block::Header;
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

pub(crate) struct Slot {
    /// Null if it is free, or if its coroutine has ended while it was listed.
    pub(crate) block: *const Header,
    pub(crate) generation: u32,
    /// The next free one of its chunk; of a coroutine, the next in the list of those whose priority
    /// has changed.
    pub(crate) link: u32,
}

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
    pub(crate) fn take(&mut self, kernel: &dyn Kernel) -> Result<u32, NoSlot> {
        if self.open == NONE {
            self.opens(kernel)?;
        }
        let number = self.open;
        let chunk = self.chunk(number);
        let at = chunk.free;
        chunk.free = core::mem::replace(&mut chunk.slot(at).link, UNLISTED);
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
    pub(crate) fn slot(&mut self, index: u32) -> Option<&mut Slot> {
        let number = index / SLOTS as u32;
        if number >= self.made || self.chunk(number).slots.is_null() {
            return None;
        }
        Some(self.chunk(number).slot(index % SLOTS as u32))
    }

    /// The coroutine has ended: its `Cid` is stale from now on. Unless it is in a list, the slot is
    /// free; otherwise [`free`](Self::free) has to be called when it is taken off.
    pub(crate) fn ends(&mut self, kernel: &dyn Kernel, index: u32) {
        let slot = self.slot(index).expect("a coroutine has a slot");
        debug_assert!(!slot.block.is_null());
        slot.block = ptr::null();
        if slot.link == UNLISTED {
            self.free(kernel, index);
        }
    }

    /// Frees the slot of one that has ended.
    pub(crate) fn free(&mut self, kernel: &dyn Kernel, index: u32) {
        let number = index / SLOTS as u32;
        self.used -= 1;
        let chunk = self.chunk(number);
        let first = chunk.free;
        let slot = chunk.slot(index % SLOTS as u32);
        slot.block = ptr::null();
        // Rule 2: its chunk is never empty again.
        let Some(generation) = slot.generation.checked_add(1) else {
            return;
        };
        slot.generation = generation;
        slot.link = first;
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
    pub(crate) fn trim(&mut self, kernel: &dyn Kernel) {
        if self.reserve != NONE {
            let number = core::mem::replace(&mut self.reserve, NONE);
            self.drops(kernel, number);
        }
        if self.used == 0 && (0..self.made).all(|number| self.chunk(number).slots.is_null()) {
            self.clear(kernel);
        }
    }

    /// A chunk more is open.
    fn opens(&mut self, kernel: &dyn Kernel) -> Result<(), NoSlot> {
        if self.absent == NONE {
            if self.made == self.capacity {
                self.grows(kernel)?;
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
                    block: ptr::null(),
                    generation: chunk.generation,
                    link: if at + 1 < SLOTS { at as u32 + 1 } else { NONE },
                });
            }
        }
        chunk.slots = slots;
        chunk.free = 0;
        let next = chunk.next;
        self.absent = next;
        self.links(number);
        Ok(())
    }

    /// There is room for twice as many chunks.
    fn grows(&mut self, kernel: &dyn Kernel) -> Result<(), NoSlot> {
        let capacity = (2 * self.capacity as usize).clamp(4, CHUNKS);
        if capacity == self.capacity as usize {
            return Err(NoSlot::TooMany);
        }
        let chunks: *mut Chunk = memory(kernel, capacity)?;
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

    /// Rule 3: a later generation than any that there has been.
    pub(crate) fn later(&mut self) -> u32 {
        let generations = (0..self.made).map(|number| self.chunk(number).generation);
        generations.max().unwrap_or(0).max(self.later)
    }

    /// Gives back all memory. Generations go on (rule 3).
    pub(crate) fn clear(&mut self, kernel: &dyn Kernel) {
        assert_eq!(self.used, 0, "somebody is in it");
        let later = self.later();
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
    fn slot(&mut self, at: u32) -> &mut Slot {
        debug_assert!(!self.slots.is_null());
        // SAFETY: of so many.
        unsafe { &mut *self.slots.add(at as usize % SLOTS) }
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
