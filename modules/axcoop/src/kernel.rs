//! What the executor needs of the system that it runs on.

use alloc::alloc::Layout;
use core::future::Future;
use core::pin::Pin;

use axcoop_summary::DomainId;

/// How many workers a domain can have.
pub const MAX_WORKERS: usize = 32;

/// The system, of which a domain asks very little: tasks, that one of them waits for another, and
/// memory. Nothing of it is on the way of a switch between coroutines.
///
/// # Safety
/// The executor relies on each call doing what is said of it; above all,
/// [`here`](Self::here) returns what the very task that calls has set, and what runs between
/// [`mask`](Self::mask) and [`unmask`](Self::unmask) is not interrupted on its CPU.
pub unsafe trait Kernel: Sync {
    /// Starts a task that calls [`serve`](crate::serve) with these, and ends when that returns, or does the same
    /// with a [`Server`](crate::Server). It may run before this call returns.
    ///
    /// # Errors
    /// [`NoWorker`] if there is no memory for one.
    fn start(&self, domain: DomainId, number: usize) -> Result<(), NoWorker>;

    /// Has the calling task be the worker of this number, as one that [`start`](Self::start) has started is
    /// one: calls `serve`, which is [`serve`](fn@crate::serve), and returns when that does. The task is no worker
    /// before, nor afterwards.
    fn serve_here(&self, domain: DomainId, number: usize, serve: fn(DomainId, usize)) {
        serve(domain, number);
    }

    /// Has the calling task, the worker of this number, wait until [`unpark`](Self::unpark), or
    /// until this time, in [`now`](Self::now)'s nanoseconds. May return early.
    ///
    /// An `unpark` since the last `park` of this worker returned is not lost: this call then returns
    /// at once.
    ///
    /// [`serve`](crate::serve) calls it, and nobody else: a system whose workers are [`Server`](crate::Server)s has
    /// no need of it.
    fn park(&self, domain: DomainId, number: usize, until: Option<u64>) {
        let _ = (domain, number, until);
        unreachable!("a worker of this system waits in its `Server`'s task");
    }

    /// Has the worker's [`park`](Self::park) return, the one under way or the next, or its
    /// [`Server`](crate::Server) run again. Called by anybody, also in an interrupt, and for a worker that has just
    /// left.
    fn unpark(&self, domain: DomainId, number: usize);

    /// The calling task lets others run that are ready.
    fn yield_now(&self);

    /// Nanoseconds since some moment, the same for all kernels of one image. On each CPU it does not go
    /// back.
    fn now(&self) -> u64;

    /// Remembers a pointer for the calling task.
    fn set_here(&self, here: *const ());

    /// What the calling task has remembered last, null if nothing. All kernels of one image answer
    /// alike, whichever domain they serve.
    fn here(&self) -> *const ();

    /// A number that tells the calling task from all others that there are, or 0: always in an interrupt,
    /// and it may be so elsewhere, as here. Then what a worker wakes takes a longer way.
    fn me(&self) -> usize {
        0
    }

    /// Disables interrupts, and with them preemption, on this CPU, and returns what
    /// [`unmask`](Self::unmask) has to know.
    fn mask(&self) -> usize;

    /// As it was before [`mask`](Self::mask) returned that.
    fn unmask(&self, was: usize);

    /// Has the calling thread, which is no worker, wait until the future is done.
    fn block_on(&self, future: Pin<&mut dyn Future<Output = ()>>);

    /// Memory, or null if there is none: it must not panic.
    fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the executor asks for no empty layout.
        unsafe { alloc::alloc::alloc(layout) }
    }

    /// Gives back what [`alloc`](Self::alloc) gave; also in an interrupt.
    ///
    /// # Safety
    /// It is of `alloc`, with this layout, and not given back yet.
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

/// Who has something to do now and then in a worker of the domain, as a poller of devices.
pub trait Attendant: Sync {
    /// Called by a worker, between two polls, soon after
    /// [`Domain::call_attendant`](crate::Domain::call_attendant), and after each time that it has waited.
    fn attend(&self, domain: DomainId);

    /// Until when a worker may wait, in [`Kernel::now`]'s nanoseconds; asked before each time that
    /// one does. Who makes it earlier calls [`Domain::call_attendant`](crate::Domain::call_attendant) afterwards. A worker that has
    /// always something to do asks every 256 polls, and calls [`attend`](Self::attend) if it is past.
    fn until(&self) -> Option<u64>;
}
