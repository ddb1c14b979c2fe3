//! Spawning a coroutine.

use core::future::Future;

use axcoop_summary::Priority;

use crate::block;
use crate::domain::{Domain, Spare};
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
        if let Some(alone) = self.alone_here()
            && let Some(spare) = alone.takes_spare(block::does::<F>().size)
        {
            let handle = self.begins(&spare, future, priority);
            // SAFETY: the handle refers to it.
            alone.arrives(unsafe { spare.header.as_ref() }, priority.index());
            return Ok(handle);
        }
        self.try_spawn_by_books(future, priority)
    }

    /// Spawns with the lock.
    #[inline(never)]
    fn try_spawn_by_books<F>(
        &'static self,
        future: F,
        priority: Priority,
    ) -> Result<JoinHandle<F::Output>, SpawnError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let admitted = self.admits(block::does::<F>());
        let spare = admitted.map_err(|why| match why {
            NoSlot::OutOfMemory(bytes) => SpawnError::OutOfMemory { bytes },
            NoSlot::TooMany => SpawnError::TooMany,
        })?;
        let handle = self.begins(&spare, future, priority);
        // SAFETY: the handle refers to it.
        self.arrives(unsafe { spare.header.as_ref() });
        Ok(handle)
    }

    /// A coroutine begins, which is to be queued.
    #[inline]
    fn begins<F: Future>(
        &self,
        spare: &Spare,
        future: F,
        priority: Priority,
    ) -> JoinHandle<F::Output> {
        self.counts_one();
        // SAFETY: it is of this size, and this call's.
        unsafe { block::begin(spare.header, future, priority) };
        // SAFETY: there is a reference for it.
        JoinHandle::new(unsafe { Ref::from_raw(spare.header) }, spare.cid)
    }
}
