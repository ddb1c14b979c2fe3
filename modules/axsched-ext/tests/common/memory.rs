//! An allocator that counts and refuses, for tests of calls that must survive it.

// Each test file is a program of its own and uses a part of this.
#![allow(dead_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Debug;

thread_local! {
    /// The number of allocations that this thread may still make.
    static GRANTED: Cell<u32> = const { Cell::new(u32::MAX) };
    /// The number of bytes that this thread holds.
    pub static HELD: Cell<isize> = const { Cell::new(0) };
    /// The most bytes that this thread ever held.
    pub static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, which counts bytes and refuses after [`GRANTED`] allocations.
struct Counting;

// SAFETY: every call is handed on to `System` as it came, or refused.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match GRANTED.get() {
            0 => return std::ptr::null_mut(),
            u32::MAX => {}
            left => GRANTED.set(left - 1),
        }
        HELD.set(HELD.get() + layout.size() as isize);
        PEAK.set(PEAK.get().max(HELD.get()));
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as isize);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Makes the call with 0, 1, 2 … allocations until it succeeds. Asserts that a refused call returns
/// `no_memory` and leaves the `state` unchanged.
pub fn refused_until_granted<R, E: PartialEq + Debug, S: PartialEq + Debug>(
    no_memory: E,
    state: impl Fn() -> S,
    call: impl Fn() -> Result<R, E>,
) -> R {
    for granted in 0.. {
        let before = state();
        GRANTED.set(granted);
        let result = call();
        GRANTED.set(u32::MAX);
        match result {
            Ok(result) => {
                assert!(
                    granted > 0,
                    "the call allocates nothing: what is tested here?"
                );
                return result;
            }
            Err(error) => assert_eq!(error, no_memory, "{granted} granted"),
        }
        assert_eq!(state(), before);
    }
    unreachable!()
}
