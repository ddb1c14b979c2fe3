//! The queue token of a domain: its holder owns the ready queues.
//!
//! 1. A worker that has the domain alone keeps the token, also while it polls and while it is parked. So a switch
//!    does not take it.
//! 2. Otherwise a worker takes the token to queue and pick, with interrupts off, for about fifty instructions.
//!    Another worker that wants it meanwhile spins.
//! 3. A worker that finds the token kept has nothing to do until that changes, and is told of the change.

use crate::atomics::{AtomicU32, Ordering, spin_loop};
use crate::run::kernel::Kernel;

const FREE: u32 = 0;
const SHORTLY: u32 = 1;
const FOR_GOOD: u32 = 2;

pub(crate) struct Turn(AtomicU32);

impl Turn {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    /// Takes the token to keep (rule 1). Called by the only worker.
    pub(crate) fn takes_for_good(&self) {
        let was = self.0.swap(FOR_GOOD, Ordering::AcqRel);
        assert_eq!(was, FREE, "another worker has the turn");
    }

    /// Releases a token that was kept. A read-modify-write: the caller sees what a worker wrote before it found the
    /// token kept, in [`shortly`](Self::shortly).
    pub(crate) fn gives_up(&self) {
        let was = self.0.swap(FREE, Ordering::AcqRel);
        debug_assert_eq!(was, FOR_GOOD);
    }

    /// Calls a closure with the token (rules 2 and 3). Returns none if another worker keeps it.
    pub(crate) fn shortly<R>(&self, kernel: &dyn Kernel, on: impl FnOnce() -> R) -> Option<R> {
        let was = kernel.mask();
        loop {
            match self
                .0
                .compare_exchange(FREE, SHORTLY, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(SHORTLY) => spin_loop(),
                Err(_) => {
                    // For `gives_up`; a failed exchange writes nothing.
                    let still = self.0.compare_exchange(
                        FOR_GOOD,
                        FOR_GOOD,
                        Ordering::AcqRel,
                        Ordering::Relaxed,
                    );
                    if still.is_ok() {
                        kernel.unmask(was);
                        return None;
                    }
                }
            }
        }
        let result = on();
        self.0.store(FREE, Ordering::Release);
        kernel.unmask(was);
        Some(result)
    }
}
