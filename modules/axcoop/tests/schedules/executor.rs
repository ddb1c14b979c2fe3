// The executor, built here once more with Shuttle's atomics: all of it but `state` and `sync`, which
// the test says itself, and `host`.

#[path = "../../src/block.rs"]
mod block;
#[path = "../../src/books.rs"]
mod books;
#[path = "../../src/budget.rs"]
mod budget;
#[path = "../../src/cid.rs"]
mod cid;
#[path = "../../src/domain.rs"]
mod domain;
#[path = "../../src/error.rs"]
mod error;
#[path = "../../src/inbox.rs"]
mod inbox;
#[path = "../../src/join.rs"]
mod join;
#[path = "../../src/kernel.rs"]
mod kernel;
#[path = "../../src/lent.rs"]
mod lent;
#[path = "../../src/loan.rs"]
mod loan;
#[path = "../../src/lock.rs"]
mod lock;
#[path = "../../src/named.rs"]
mod named;
#[path = "../../src/panics.rs"]
mod panics;
#[path = "../../src/polling.rs"]
mod polling;
#[path = "../../src/ready.rs"]
mod ready;
#[path = "../../src/spares.rs"]
mod spares;
#[path = "../../src/spawn.rs"]
mod spawn;
#[path = "../../src/table.rs"]
mod table;
#[path = "../../src/timers.rs"]
mod timers;
#[path = "../../src/turn.rs"]
mod turn;
#[path = "../../src/waker.rs"]
mod waker;
#[path = "../../src/wheel.rs"]
mod wheel;
#[path = "../../src/worker.rs"]
mod worker;
#[path = "../../src/yielding.rs"]
mod yielding;

/// The atomics, as `src/sync.rs` has those of other builds.
mod sync {
    pub(crate) use shuttle::hint::spin_loop;
    pub(crate) use shuttle::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
}

mod machine;
mod scenarios;

pub(crate) use cid::MAX_COROUTINES;
