//! Who may touch the ready queues of a domain.
//!
//! 1. A worker that has the domain for itself has the turn for good, also while it polls and while
//!    it waits: no switch costs it anything.
//! 2. Otherwise a worker has it while it queues and picks, with interrupts off, for about fifty
//!    instructions; who wants it meanwhile tries again.
//! 3. Who finds it taken for good has nothing to do before that changes, which it is told.

use crate::kernel::Kernel;
use crate::sync::{AtomicU32, Ordering, spin_loop};

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

    /// Rule 1, by the only worker that there is.
    pub(crate) fn takes_for_good(&self) {
        let was = self.0.swap(FOR_GOOD, Ordering::AcqRel);
        assert_eq!(was, FREE, "another worker has the turn");
    }

    /// Ends what [`takes_for_good`](Self::takes_for_good) began. A read-modify-write: who has found it
    /// taken, [`shortly`](Self::shortly), has written something before that the caller sees.
    pub(crate) fn gives_up(&self) {
        let was = self.0.swap(FREE, Ordering::AcqRel);
        debug_assert_eq!(was, FOR_GOOD);
    }

    /// Rules 2 and 3: calls this in its turn; none if it is another's for good.
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
