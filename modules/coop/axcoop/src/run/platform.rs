//! The interface to the system that the executor runs on.

use alloc::alloc::Layout;
use core::future::Future;
use core::pin::Pin;

use axcoop_summary::DomainId;

/// The number of workers that a domain can have.
pub const MAX_WORKERS: usize = 32;

/// The system: tasks that can park, a clock, interrupts and memory. A switch between coroutines calls none of it.
///
/// # Safety
/// The executor relies on each function to do what its documentation says. Above all, [`here`](Self::here) returns
/// what the calling task has set, and code between [`mask`](Self::mask) and [`unmask`](Self::unmask) is not
/// interrupted on its CPU.
pub unsafe trait Platform: Sync {
    /// Starts a task that calls [`serve`](crate::serve) with these arguments and ends when that returns, or that runs
    /// a [`Server`](crate::Server) likewise. The task may run before this call returns.
    ///
    /// # Errors
    /// [`NoWorker`] if there is no memory for the task.
    fn start(&self, domain: DomainId, number: usize) -> Result<(), NoWorker>;

    /// Runs the worker of this number on the calling task: calls `serve`, which is [`serve`](fn@crate::serve), and
    /// returns when that does. The task is a worker only in between.
    fn serve_here(&self, domain: DomainId, number: usize, serve: fn(DomainId, usize)) {
        serve(domain, number);
    }

    /// Parks the calling task, the worker of this number, until [`unpark`](Self::unpark), or until this time in
    /// [`now`](Self::now)'s nanoseconds. May return early.
    ///
    /// An `unpark` since the last return of `park` for this worker is not lost: the next `park` returns at once.
    ///
    /// Only [`serve`](crate::serve) calls it. A system whose workers are [`Server`](crate::Server)s does not need it.
    fn park(&self, domain: DomainId, number: usize, until: Option<u64>) {
        let _ = (domain, number, until);
        unreachable!("a worker of this system waits in its `Server`'s task");
    }

    /// Makes the current or the next [`park`](Self::park) of a worker return, or its [`Server`](crate::Server) run
    /// again. May be called in an interrupt, and for a worker that has just left.
    fn unpark(&self, domain: DomainId, number: usize);

    /// Yields the CPU to other ready tasks.
    fn yield_now(&self);

    /// Returns the nanoseconds since some fixed moment, the same for all platforms of one image. The time does not go
    /// back on a CPU.
    fn now(&self) -> u64;

    /// Stores a pointer for the calling task.
    fn set_here(&self, here: *const ());

    /// Returns the pointer that the calling task has stored last, or null. All platforms of one image return the same,
    /// whichever domain they serve.
    fn here(&self) -> *const ();

    /// Returns a number that tells the calling task from all other existing tasks, or 0. It is 0 in an interrupt, and
    /// may be 0 elsewhere, as here: then a worker wakes coroutines by a slower path.
    fn me(&self) -> usize {
        0
    }

    /// Disables interrupts on this CPU, and with them preemption. Returns the argument for [`unmask`](Self::unmask).
    fn mask(&self) -> usize;

    /// Restores the state before the call of [`mask`](Self::mask) that returned `was`.
    fn unmask(&self, was: usize);

    /// Blocks the calling thread, which is no worker, until the future is ready.
    fn block_on(&self, future: Pin<&mut dyn Future<Output = ()>>);

    /// Allocates memory of this layout. Returns null if there is none, and must not panic.
    fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the executor asks for no empty layout.
        unsafe { alloc::alloc::alloc(layout) }
    }

    /// Frees memory of [`alloc`](Self::alloc). May be called in an interrupt.
    ///
    /// # Safety
    /// The memory comes from `alloc`, with this layout, and has not been freed.
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as promised.
        unsafe { alloc::alloc::dealloc(memory, layout) }
    }
}

/// The system has no memory for another worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoWorker;

impl core::fmt::Display for NoWorker {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("no memory for another worker")
    }
}

impl core::error::Error for NoWorker {}

/// A hook that a worker of the domain calls between polls, such as a poller of devices.
pub trait PollHook: Sync {
    /// Does the work of the hook. A worker calls it between two polls, soon after
    /// [`Domain::request_poll_hook`](crate::Domain::request_poll_hook), and after each park.
    fn run(&self, domain: DomainId);

    /// Returns the time, in [`Platform::now`]'s nanoseconds, until which a worker may park. A worker asks before each
    /// park. A call that makes it earlier is followed by
    /// [`Domain::request_poll_hook`](crate::Domain::request_poll_hook). A busy worker asks every 256 polls, and calls
    /// [`run`](Self::run) if the time has passed.
    fn until(&self) -> Option<u64>;
}
