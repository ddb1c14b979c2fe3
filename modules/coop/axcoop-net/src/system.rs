//! The parts of ArceOS that this crate uses beside a card: time, tasks, and the allocator.

use alloc::alloc::Layout;
use core::future::Future;
use core::time::Duration;

use axcoop::DomainId;

pub use axtask::future::block_on;
pub use axtask::yield_now;

/// Returns the time since boot, in which deadlines are counted.
pub fn now() -> Duration {
    axhal::time::monotonic_time()
}

/// Returns true if this many bytes are free in one piece. If not, the global allocator would end the guest.
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

/// Makes the calling task serve a domain of its own: `sched_coop` then runs it at the most urgent priority that the
/// domain has marked. Returns none if all domains are taken.
pub fn serve_domain() -> Option<DomainId> {
    // A worker of the executor would have nothing to do in it.
    let domain = axcoop_arceos::Options::new("axcoop-net").workers(0).open();
    let id = domain.ok()?.id();
    axcoop_arceos::announce_domain(id);
    Some(id)
}

/// Waits until a ring, or for this long. A round follows in any case.
pub(crate) async fn rest(rest: Option<Duration>, rung: impl Future<Output = ()>) {
    let _ = axtask::future::timeout(rest, rung).await;
}
