// The executor, built here again with Shuttle's atomics: all of it except `state` and `sync`, which the test names
// itself, and `host`.

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

/// The atomics, in place of those of `src/sync.rs`.
mod sync {
    pub(crate) use shuttle::hint::spin_loop;
    pub(crate) use shuttle::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
}

/// The parts of Shuttle that `machine` needs.
mod explorer {
    pub use shuttle::future::block_on;
    pub use shuttle::sync::atomic::{AtomicBool, Ordering::Relaxed};
    pub use shuttle::sync::{Condvar, Mutex};
    pub use shuttle::{thread, thread_local};
}

mod machine;
mod scenarios;

pub(crate) use cid::MAX_COROUTINES;
