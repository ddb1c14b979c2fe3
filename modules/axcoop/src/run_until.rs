//! A thread that serves a domain itself, for as long as it waits for something in it.
//!
//! 1. The thread is the domain's worker number 0, and its only one. So whoever has workers has to be rid of
//!    them first, and nobody has to take a number that somebody else counts on.
//! 2. That ends with the coroutine that the thread waits for, and in whatever way that ends: the number of workers
//!    is set to 0 when its future is dropped.
//! 3. The output is taken by the handle, as by any thread that joins. So nothing is lost if somebody changes
//!    the number of workers meanwhile, and the thread leaves before the end: it waits then.

use core::fmt;
use core::future::Future;

use axcoop_summary::Priority;

use crate::domain::{Domain, assert_may_block};
use crate::error::{Ended, SpawnError};
use crate::worker::serve;

/// The only worker that there is during [`Domain::run_until`].
const NUMBER: usize = 0;

impl Domain {
    /// Spawns a coroutine, and has the calling thread serve the domain until that one has ended: as `block_on` of
    /// a runtime that has no threads of its own. Returns its output.
    ///
    /// The domain must have no workers, and has none afterwards. What else has been spawned is run as
    /// well, as long, and then stays as it is until there is a worker again. Somebody else may
    /// [add workers](Self::alloc_cpu) meanwhile; who sets their number to 0 has the calling thread
    /// wait until there are some again.
    ///
    /// ```
    /// use axcoop::{Domain, DomainId, Priority, SUMMARY, host::HOST};
    ///
    /// static PROGRAM: Domain = Domain::new(DomainId::new(0), &SUMMARY, &HOST);
    ///
    /// PROGRAM.open()?;
    /// let sum = PROGRAM.run_until(
    ///     async { PROGRAM.spawn(async { 1 + 1 }, Priority::FIRST).await.map(|two| two + 1) },
    ///     Priority::DEFAULT,
    /// )?;
    /// assert_eq!(sum, Ok(3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`RunError`]. The future is dropped then.
    ///
    /// # Panics
    /// In a coroutine, which has to await what it waits for.
    pub fn run_until<F>(&'static self, future: F, priority: Priority) -> Result<F::Output, RunError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        assert_may_block("run_until", "the future");
        self.books.with(self.kernel, |books| {
            if books.serving != 0 {
                return Err(RunError::HasWorkers(books.serving.count_ones() as usize));
            }
            books.wanted = NUMBER + 1;
            books.serving = 1 << NUMBER;
            self.changes_workers();
            Ok(())
        })?;
        let dismisses = Dismisses(self);
        let runs = async move {
            let _dismisses = dismisses;
            future.await
        };
        match self.try_spawn(runs, priority) {
            Ok(handle) => {
                self.kernel.serve_here(self.id, NUMBER, serve);
                handle.join().map_err(RunError::Ended)
            }
            Err(why) => {
                self.gives_up_its_number();
                Err(RunError::Spawn(why))
            }
        }
    }

    /// The calling thread will not serve. Its future is dropped, so nobody is wanted, but by who has added
    /// workers since, and they get one in its place.
    #[cold]
    fn gives_up_its_number(&'static self) {
        let wanted = self.books.with(self.kernel, |books| {
            books.serving &= !(1 << NUMBER);
            books.wanted
        });
        // They were told that there is one; without memory there is none now.
        let _ = self.alloc_cpu(wanted);
    }
}

/// Rule 2.
struct Dismisses(&'static Domain);

impl Drop for Dismisses {
    fn drop(&mut self) {
        self.0.alloc_cpu(0).expect("0 workers are not too many");
    }
}

/// Why [`Domain::run_until`] has no output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The domain has so many workers, which may be about to leave: it must have none.
    HasWorkers(usize),
    /// The coroutine could not be spawned.
    Spawn(SpawnError),
    /// It has ended without an output.
    Ended(Ended),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HasWorkers(workers) => {
                write!(f, "the domain has {workers} workers: it must have none")
            }
            Self::Spawn(why) => why.fmt(f),
            Self::Ended(how) => how.fmt(f),
        }
    }
}

impl core::error::Error for RunError {}
