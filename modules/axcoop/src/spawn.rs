//! Spawning a coroutine.

use core::future::Future;

use axcoop_summary::Priority;

use crate::domain::Domain;
use crate::error::SpawnError;
use crate::join::JoinHandle;
use crate::table::NoSlot;
use crate::waker::Ref;

impl Domain {
    /// Spawns a coroutine, which is ready at once. Its first poll is its worker's, never the
    /// caller's.
    ///
    /// **Cost.** In a coroutine of a domain with one worker, no lock and no allocation, if one of about the
    /// same size has ended before; otherwise a short time under a lock, and an allocation. Not in an
    /// interrupt.
    ///
    /// # Panics
    /// If there is no memory, or there are too many: [`try_spawn`](Self::try_spawn).
    #[inline]
    pub fn spawn<F>(&'static self, future: F, priority: Priority) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match self.try_spawn(future, priority) {
            Ok(handle) => handle,
            Err(why) => panic!("{why}"),
        }
    }

    /// As [`spawn`](Self::spawn), for who can do without the coroutine; its future is dropped then.
    ///
    /// # Errors
    /// There is no memory, or there are too many.
    #[inline]
    pub fn try_spawn<F>(
        &'static self,
        future: F,
        priority: Priority,
    ) -> Result<JoinHandle<F::Output>, SpawnError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let new = self.admits(future, priority).map_err(|why| match why {
            NoSlot::OutOfMemory(bytes) => SpawnError::OutOfMemory { bytes },
            NoSlot::TooMany => SpawnError::TooMany,
        })?;
        // SAFETY: there is one for it.
        let header = unsafe { Ref::from_raw(new.header) };
        let handle = JoinHandle::new(header, new.cid);
        // SAFETY: the handle refers to it.
        self.arrives_at(unsafe { new.header.as_ref() }, new.alone);
        Ok(handle)
    }
}
