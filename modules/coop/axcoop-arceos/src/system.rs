//! ArceOS as the executor's system.

use alloc::alloc::Layout;
use core::future::Future;
use core::pin::{Pin, pin};
use core::ptr::{self, NonNull};

use axcoop::{DomainId, NoWorker, Platform};
use axhal::percpu::current_task_ptr;
use kernel_guard::{BaseGuard, NoPreemptIrqSave};

use crate::{worker, worker_names};

/// The executor's [`Platform`] on ArceOS.
pub struct ArceOs;

/// The only value of [`ArceOs`].
pub static ARCEOS: ArceOs = ArceOs;

/// The approximate size of a task without its stack: the task, its entry and its name.
const TASK_BYTES: usize = 2 * 1024;

// SAFETY: `here` is looked up by the running task. `mask` is that of `kernel_guard`.
unsafe impl Platform for ArceOs {
    fn start(&self, domain: DomainId, number: usize) -> Result<(), NoWorker> {
        let stack_bytes = worker_names::stack_bytes(domain);
        // `axtask` would panic. It still does if the memory is taken in between.
        let needs = Layout::from_size_align(stack_bytes + TASK_BYTES, 16).map_err(|_| NoWorker)?;
        let allocator = axalloc::global_allocator();
        let room = allocator.alloc(needs).map_err(|_| NoWorker)?;
        allocator.dealloc(room, needs);
        // With a handle, gc would look for the task again and again after its end.
        drop(axtask::spawn_task(worker::task(
            domain,
            number,
            stack_bytes,
        )));
        Ok(())
    }

    fn serve_here(&self, domain: DomainId, number: usize, _: fn(DomainId, usize)) {
        worker::serve_here(domain, number);
    }

    fn unpark(&self, domain: DomainId, number: usize) {
        worker::unpark(domain, number);
    }

    fn yield_now(&self) {
        axtask::yield_now();
    }

    fn now(&self) -> u64 {
        axhal::time::monotonic_time_nanos()
    }

    fn set_here(&self, here: *const ()) {
        worker::set_here(here);
    }

    fn here(&self) -> *const () {
        worker::here()
    }

    fn me(&self) -> usize {
        // ArceOS handles interrupts with interrupts off.
        match axhal::asm::irqs_enabled() {
            true => current_task_ptr::<()>().addr(),
            false => 0,
        }
    }

    fn mask(&self) -> usize {
        // Not interrupts alone. The executor allocates under its lock, and when the allocator drops its own guard, a
        // due preemption of this task would happen.
        NoPreemptIrqSave::acquire()
    }

    fn unmask(&self, was: usize) {
        NoPreemptIrqSave::release(was);
    }

    fn block_on(&self, future: Pin<&mut dyn Future<Output = ()>>) {
        axtask::future::block_on(future);
    }

    fn alloc(&self, layout: Layout) -> *mut u8 {
        let memory = axalloc::global_allocator().alloc(layout);
        memory.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let memory = NonNull::new(memory).expect("memory that there is");
        axalloc::global_allocator().dealloc(memory, layout);
    }
}

/// Blocks the calling thread until the future is ready, and returns its output.
///
/// # Panics
/// In a coroutine, which would block its worker: it has to await the future.
pub fn block_on<F: Future>(future: F) -> F::Output {
    axcoop::assert_may_block("block_on", "the future");
    axtask::future::block_on(pin!(future))
}
