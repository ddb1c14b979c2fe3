//! Spawning a coroutine.

use core::future::Future;

use axcoop_summary::Priority;

use crate::domain::{Domain, Spare};
use crate::error::SpawnError;
use crate::sync::join::JoinHandle;
use crate::task::block;
use crate::task::waker::Ref;

impl Domain {
    /// Spawns a coroutine, which is ready at once. Its worker makes its first poll, never the caller.
    ///
    /// **Cost.** In a coroutine of a domain with one worker, no lock and no allocation, if a coroutine of about the
    /// same size has ended before. Otherwise a short time under a lock, and an allocation. Must not be called in an
    /// interrupt.
    ///
    /// # Panics
    /// If there is no memory, there are too many coroutines, or the domain is not open.
    /// [`try_spawn`](Self::try_spawn) returns these as errors.
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

    /// Spawns a coroutine as [`spawn`](Self::spawn) does, or drops its future.
    ///
    /// # Errors
    /// If there is no memory, there are too many coroutines, or the domain is not open.
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
        if let Some(alone) = self.local_queue()
            && let Some(spare) = alone.take_spare(block::vtable::<F>().size)
        {
            let handle = self.begin(&spare, future, priority);
            // SAFETY: the handle refers to it.
            alone.enqueue(unsafe { spare.header.as_ref() }, priority.index());
            return Ok(handle);
        }
        self.try_spawn_locked(future, priority)
    }

    /// Spawns with a block of the registry.
    #[inline(never)]
    fn try_spawn_locked<F>(
        &'static self,
        future: F,
        priority: Priority,
    ) -> Result<JoinHandle<F::Output>, SpawnError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let spare = self.take_block(block::vtable::<F>())?;
        let handle = self.begin(&spare, future, priority);
        // SAFETY: the handle refers to it.
        self.enqueue(unsafe { spare.header.as_ref() });
        Ok(handle)
    }

    /// Begins a coroutine, which the caller must queue.
    #[inline]
    fn begin<F: Future>(
        &self,
        spare: &Spare,
        future: F,
        priority: Priority,
    ) -> JoinHandle<F::Output> {
        self.inc_live();
        // SAFETY: it has this size class, and belongs to this call.
        unsafe { block::begin(spare.header, future, priority) };
        // SAFETY: there is a reference for it.
        JoinHandle::new(unsafe { Ref::from_raw(spare.header) }, spare.cid)
    }
}
