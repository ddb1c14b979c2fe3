//! `sched-memory` prints the sizes of a task and a queue under each scheduler, as CSV.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use sched_bench::{memory::Sizes, schedulers::all};

/// Number of allocated bytes.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, which counts.
struct Counting;

// SAFETY: every call is handed on to `System` unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller keeps the same contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the same contract.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    println!("scheduler,task_bytes,queue_bytes,ready_bytes");
    for entry in all() {
        let Sizes { task, queue, ready } = (entry.sizes)(|| HELD.load(Relaxed));
        println!("{},{task},{queue},{ready:.1}", entry.name);
    }
}
