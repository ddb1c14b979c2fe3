//! What this asks of ArceOS beside a card: time, tasks, and whether there is memory.

use alloc::alloc::Layout;
use core::future::Future;
use core::time::Duration;

use axcoop::DomainId;

pub use axtask::future::block_on;
pub use axtask::yield_now;

/// What deadlines are counted in: the time since the machine was started.
pub fn now() -> Duration {
    axhal::time::monotonic_time()
}

/// Whether so many bytes are free, in one piece. The global allocator would end the guest if not.
pub fn has_memory(bytes: usize) -> bool {
    let allocator = axalloc::global_allocator();
    Layout::from_size_align(bytes, align_of::<usize>()).is_ok_and(|layout| {
        let memory = allocator.alloc(layout);
        memory.is_ok_and(|memory| {
            allocator.dealloc(memory, layout);
            true
        })
    })
}

/// Starts the poller, which never returns.
pub fn spawn(poller: fn()) {
    axtask::spawn_with_name(poller, "axcoop-net".into());
}

/// The calling task serves a domain of its own from now on: `sched_coop` has it run as the most urgent
/// that the domain has ready. None if all domains are taken.
pub fn serve_domain() -> Option<DomainId> {
    // There is nothing for a worker of the executor to do in it.
    let domain = axcoop_arceos::Options::new("axcoop-net").workers(0).open();
    let id = domain.ok()?.id();
    axcoop_arceos::serves(id);
    Some(id)
}

/// Until somebody rings, or so long: a round follows in any case.
pub(crate) async fn rest(rest: Option<Duration>, rung: impl Future<Output = ()>) {
    let _ = axtask::future::timeout(rest, rung).await;
}
