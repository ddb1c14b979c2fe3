//! Opening, closing and sizing a domain.

use core::future::Future;
use core::pin::pin;
use core::sync::atomic::Ordering::Relaxed;
use core::task::{Context, Waker};
use core::time::Duration;
use std::panic;

use super::fixture::{leaked, output, ran, spawn};
use super::machine::{run, with_domain};
use crate::{Domain, DomainError, MAX_WORKERS, Priority, SpawnError, WorkerError, sleep};

#[test]
fn domain_with_a_coroutine_worker_or_timer_is_in_use() {
    with_domain(|domain, _| {
        let in_use = |coroutines, workers| {
            let why = DomainError::InUse {
                coroutines,
                workers,
            };
            assert_eq!(domain.close(), Err(why));
        };
        domain.set_workers(1).unwrap();
        in_use(0, 1);
        domain.serve(0);
        let handle = spawn(domain, 4, async {});
        in_use(1, 0);
        run(domain);
        assert_eq!(output(handle), Ok(()));
        let mut sleeps = pin!(Some(sleep(Duration::from_secs(1))));
        let mut context = Context::from_waker(Waker::noop());
        let polled = sleeps.as_mut().as_pin_mut().unwrap().poll(&mut context);
        assert!(polled.is_pending());
        in_use(1, 0);
        sleeps.set(None);
    });
}

#[test]
fn numbers_of_workers_are_0_to_32() {
    with_domain(|domain, machine| {
        assert_eq!(domain.set_workers(33), Err(WorkerError::TooMany(33)));
        let few = WorkerError::OutOfMemory {
            wanted: MAX_WORKERS,
            serving: MAX_WORKERS - 1,
        };
        let wanted = || domain.registry.with(machine, |registry| registry.wanted);
        assert_eq!(domain.set_workers(MAX_WORKERS), Err(few));
        // As many as there are, or a worker that is alone would not know that it is.
        assert_eq!(wanted(), MAX_WORKERS - 1);
        // A smaller number that was requested during the failed start is kept.
        *machine.meanwhile.lock().unwrap() = Some(|domain| domain.set_workers(1).unwrap());
        assert!(domain.set_workers(MAX_WORKERS).is_err());
        assert_eq!(wanted(), 1);
        domain.set_workers(0).unwrap();
        (0..MAX_WORKERS - 1).for_each(|number| domain.serve(number));
    });
}

/// A spawned coroutine would refer to a domain that its number does not lead to.
#[test]
fn closed_domain_has_neither_coroutines_nor_workers() {
    with_domain(|domain, machine| {
        let id = domain.id();
        let refuses = |domain: &'static Domain| {
            let spawned = domain.try_spawn(async {}, Priority::DEFAULT).map(drop);
            assert_eq!(spawned, Err(SpawnError::NotOpen(id)));
            for workers in [0, 1] {
                assert_eq!(domain.set_workers(workers), Err(WorkerError::NotOpen(id)));
            }
        };
        let other: &'static Domain = leaked(Domain::new(id, domain.summary, machine));
        assert_eq!(other.open(), Err(DomainError::Taken(id)));
        assert_eq!(other.close(), Err(DomainError::NotOpen(id)));
        assert!(core::ptr::eq(Domain::of(id).unwrap(), domain));
        refuses(other);
        domain.close().unwrap();
        refuses(domain);
        let why = panic::catch_unwind(|| crate::serve(id, 0)).unwrap_err();
        let why = why.downcast_ref::<String>().unwrap();
        assert_eq!(why, "domain 5 is not open");
        domain.open().unwrap();
    });
}

/// An interrupt that wants the lock may come while no domain is open, too.
#[test]
fn shared_state_disables_interrupts_without_an_open_domain() {
    with_domain(|domain, machine| {
        domain.close().unwrap();
        let semaphore = crate::Semaphore::new(0);
        let before = machine.locks.load(Relaxed);
        semaphore.release(1);
        assert_ne!(machine.locks.load(Relaxed), before);
        assert_eq!(machine.masks.load(Relaxed), 0);
        domain.open().unwrap();
    });
}

#[test]
fn out_of_memory_error_states_the_bytes() {
    with_domain(|domain, machine| {
        machine.limit.store(6_000, Relaxed);
        let mut handles = Vec::new();
        let why = loop {
            match domain.try_spawn(async { [1_u8; 100] }, Priority::DEFAULT) {
                Ok(handle) => handles.push(handle),
                Err(why) => break why,
            }
        };
        assert!(matches!(why, SpawnError::OutOfMemory { bytes } if bytes % 32 == 16));
        assert!(!handles.is_empty());
        machine.limit.store(0, Relaxed);
        assert_eq!(ran(domain, 4, async {}), Ok(()));
        for handle in handles {
            assert_eq!(output(handle), Ok([1; 100]));
        }
    });
}
