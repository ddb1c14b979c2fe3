//! The program's side: a component is a coroutine, or a thread.

use alloc::string::String;
use core::{
    future::{Future, ready},
    sync::atomic::{AtomicUsize, Ordering::*},
};

use axcoop_arceos::{Domain, Priority, yield_now};

use super::{
    memory::{OutOfMemory, STACK_BYTES, room_for_a_thread},
    metered::Metered,
};

/// The kind of components.
pub trait Program: 'static {
    /// Starts a component of this priority; threads have none.
    ///
    /// # Errors
    /// If there is no memory for it.
    fn start(
        &self,
        component: impl Future<Output = ()> + Send + 'static,
        priority: u8,
    ) -> Result<(), OutOfMemory>;

    /// Lets more urgent components run, in the middle of a component.
    fn pause() -> impl Future<Output = ()> + Send;
}

/// The number of components that have not ended.
static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of components that have not ended.
pub fn alive() -> usize {
    ALIVE.load(Acquire)
}

/// Counts the end of the calling component, as its last step.
pub fn count_end() {
    ALIVE.fetch_sub(1, AcqRel);
}

/// A thread for each component, with the stack of the report.
///
/// It blocks with `axtask`'s own `block_on`, once for its whole life: no wait allocates anything.
#[derive(Clone, Copy)]
pub struct Threads;

impl Program for Threads {
    fn start(
        &self,
        component: impl Future<Output = ()> + Send + 'static,
        _: u8,
    ) -> Result<(), OutOfMemory> {
        room_for_a_thread()?;
        ALIVE.fetch_add(1, Relaxed);
        let entry = move || axtask::future::block_on(Metered::new(component));
        // No handle is kept, so `gc` reclaims it as soon as it has ended.
        axtask::spawn_raw(entry, String::new(), STACK_BYTES);
        Ok(())
    }

    fn pause() -> impl Future<Output = ()> + Send {
        axtask::yield_now();
        ready(())
    }
}

/// A coroutine of this domain for each component.
#[derive(Clone, Copy)]
pub struct Coroutines(pub &'static Domain);

impl Program for Coroutines {
    fn start(
        &self,
        component: impl Future<Output = ()> + Send + 'static,
        priority: u8,
    ) -> Result<(), OutOfMemory> {
        ALIVE.fetch_add(1, Relaxed);
        let spawned = (self.0).try_spawn(Metered::new(component), Priority::new(priority.into()));
        match spawned {
            Ok(handle) => drop(handle),
            Err(_) => {
                count_end();
                return Err(OutOfMemory);
            }
        }
        Ok(())
    }

    fn pause() -> impl Future<Output = ()> + Send {
        yield_now()
    }
}
