//! A thread that serves a domain itself while it waits for a coroutine of it.
//!
//! 1. The thread is worker 0 of the domain, and its only one. So a domain with workers must lose them first, and no
//!    number is taken that another worker has.
//! 2. The thread ends as a worker when the coroutine ends, in whatever way: the number of workers is set to 0 when
//!    its future is dropped.
//! 3. The handle takes the output, as for any thread that joins. So nothing is lost if the number of workers is
//!    changed meanwhile, and the thread leaves early: it then blocks on the handle.

use core::fmt;
use core::future::Future;

use axcoop_summary::Priority;

use crate::domain::{Domain, assert_may_block};
use crate::error::{Ended, SpawnError};
use crate::run::worker::serve;

/// The only worker that there is during [`Domain::run_until`].
const NUMBER: usize = 0;

impl Domain {
    /// Spawns a coroutine and serves the domain on the calling thread until it has ended, like `block_on` of a
    /// runtime without threads. Returns its output.
    ///
    /// The domain must have no workers, and has none afterwards. Other coroutines run in the meantime, and then stay
    /// as they are until there is a worker again. Another thread may [add workers](Self::set_workers) meanwhile. If it
    /// sets their number to 0, the calling thread blocks until there are some again.
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
    /// Panics in a coroutine, which must await the future instead.
    pub fn run_until<F>(&'static self, future: F, priority: Priority) -> Result<F::Output, RunError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        assert_may_block("run_until", "the future");
        self.registry.with(self.platform, |registry| {
            if registry.serving != 0 {
                return Err(RunError::HasWorkers(registry.serving.count_ones() as usize));
            }
            registry.wanted = NUMBER + 1;
            registry.serving = 1 << NUMBER;
            self.notify_workers();
            Ok(())
        })?;
        let dismisses = Dismisses(self);
        let runs = async move {
            let _dismisses = dismisses;
            future.await
        };
        match self.try_spawn(runs, priority) {
            Ok(handle) => {
                self.platform.serve_here(self.id, NUMBER, serve);
                handle.join().map_err(RunError::Ended)
            }
            Err(why) => {
                self.give_up_number();
                Err(RunError::Spawn(why))
            }
        }
    }

    /// Takes back the calling thread as a worker that will not serve. Its future is dropped, so the number is 0
    /// unless workers have been added since, which get one in its place.
    #[cold]
    fn give_up_number(&'static self) {
        let wanted = self.registry.with(self.platform, |registry| {
            registry.serving &= !(1 << NUMBER);
            registry.wanted
        });
        // The caller was told that there is one; without memory there is none now.
        let _ = self.set_workers(wanted);
    }
}

/// Sets the number of workers to 0 when it is dropped (rule 2).
struct Dismisses(&'static Domain);

impl Drop for Dismisses {
    fn drop(&mut self) {
        self.0.set_workers(0).expect("0 workers are not too many");
    }
}

/// Why [`Domain::run_until`] has no output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The domain has this many workers, which may be about to leave. It must have none.
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
