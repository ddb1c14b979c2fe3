//! Names of coroutines, and the life of their blocks.

use alloc::sync::Arc;
use core::future::{Future, pending, poll_fn};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use core::task::Poll;
use std::sync::Mutex;

use super::fixture::{leaked, output, ran, spawn, yield_often};
use super::machine::{run, with_domain};
use crate::task::table::USED_UP;
use crate::task::waker::Ref;
use crate::{
    CoroutineId, Domain, DomainError, Ended, Priority, Stale, cancel, current, donate, priority,
    set_priority, wake, yield_now,
};

/// Asserts that no call takes the name for that of a coroutine.
fn assert_stale(cid: CoroutineId) {
    let stale = Err(Stale(cid));
    assert_eq!(wake(cid), stale);
    assert_eq!(cancel(cid), stale);
    assert_eq!(set_priority(cid, Priority::FIRST), stale);
    assert_eq!(priority(cid).map(drop), stale);
    assert_eq!(donate(cid, Priority::FIRST).map(drop), stale);
}

#[test]
fn name_is_stale_after_the_end() {
    with_domain(|domain, machine| {
        let handle = spawn(domain, 5, async { current() });
        let cid = handle.cid();
        assert_eq!(current(), None);
        assert_eq!(domain.coroutines(), 1);
        run(domain);
        assert_eq!(domain.coroutines(), 0);
        assert!(handle.is_finished());
        assert_eq!(output(handle), Ok(Some(cid)));
        assert_stale(cid);
        let why = format!("{}", Stale(cid));
        assert_eq!(why, format!("{cid}: no such coroutine any more"));
        // Also when another coroutine has the place.
        let next = spawn(domain, 5, async {});
        assert_eq!(next.cid().place, cid.place);
        assert_stale(cid);
        run(domain);
        assert_eq!(output(next), Ok(()));
        // Also when the domain was closed, and it or another one of its number is open.
        domain.close().unwrap();
        let other = leaked(Domain::new(domain.id(), domain.summary, machine));
        for domain in [other, domain] {
            domain.open().unwrap();
            let after = spawn(domain, 5, async {});
            assert_ne!(after.cid(), cid);
            assert_stale(cid);
            run(domain);
            assert_eq!(output(after), Ok(()));
            domain.close().unwrap();
        }
        domain.open().unwrap();
    });
}

/// NAMES in `registry`, of coroutines that use one block one after the other.
#[test]
fn name_is_stale_when_its_block_is_used_again() {
    with_domain(|domain, machine| {
        let ended = ran(domain, 1, async move {
            spawn(domain, 1, async {}).await.unwrap();
            let locks = machine.locks.load(Relaxed);
            let old = spawn(domain, 1, async {});
            let stale = old.cid();
            old.await.unwrap();
            let new = spawn(domain, 1, async {});
            let cid = new.cid();
            assert_eq!(machine.locks.load(Relaxed), locks, "no lock is needed");
            assert_eq!(cid.place, stale.place, "it has the block of the first");
            assert_stale(stale);
            assert_eq!(priority(cid), Ok(Priority::new(1)));
            assert_eq!(new.await, Ok(()));
            assert_stale(cid);
            assert_eq!(domain.coroutines(), 1);
        });
        assert_eq!(ended, Ok(()));
    });
}

/// NAMES in `registry`: the block may be given to another coroutine between two steps of a lookup.
#[test]
fn names_lookup_does_not_mean_a_block_used_again() {
    with_domain(|domain, machine| {
        let ended = ran(domain, 2, async move {
            // Two of one size, of which one waits.
            let one = |waits| async move {
                if waits {
                    pending().await
                }
            };
            let first = spawn(domain, 1, one(false));
            let name = first.cid();
            let find_block = || {
                domain
                    .registry
                    .with(machine, |registry| registry.find_block(name))
            };
            let block = find_block().expect("step 1: it has the generation");
            let block = AtomicPtr::new(block.as_ptr());
            let take_ref = || {
                let block = NonNull::new(block.load(Relaxed)).unwrap();
                domain.registry.with(machine, |registry| {
                    // SAFETY: no block is given back here.
                    let found = unsafe { registry.take_ref(name, block) }?;
                    // SAFETY: it was counted for it.
                    Some((unsafe { Ref::from_raw(found.header) }, found.is_meant))
                })
            };
            assert!(take_ref().is_some_and(|(_, is_meant)| is_meant));
            first.await.unwrap();
            assert!(take_ref().is_none(), "step 2: it is spare");
            let second = spawn(domain, 1, one(true));
            assert_eq!(second.cid().place, name.place);
            assert!(take_ref().is_some_and(|(_, is_meant)| !is_meant), "step 3");
            assert!(find_block().is_none(), "step 1: it has another generation");
            second.cancel();
            assert_eq!(second.await, Err(Ended::Cancelled));
        });
        assert_eq!(ended, Ok(()));
    });
}

#[test]
fn spare_block_is_freed_when_the_generations_of_its_slot_are_used_up() {
    with_domain(|domain, _| {
        let ended = ran(domain, 1, async move {
            let last = spawn(domain, 1, async {});
            let place = last.cid().place;
            last.await.unwrap();
            // SAFETY: the spare block has it.
            unsafe { domain.directory.slot(place.index()) }.set_generation(USED_UP);
            let next = spawn(domain, 1, async {});
            assert_ne!(next.cid().place, place);
            next.await.unwrap();
        });
        assert_eq!(ended, Ok(()));
    });
}

#[test]
fn worker_drops_cancelled_futures_and_unwanted_outputs_once() {
    with_domain(|domain, _| {
        // There is one reference more than there are values.
        let counted = Arc::new(());
        let held = || {
            let held = counted.clone();
            async move { held }
        };
        let dropped_after = |n: usize| assert_eq!(Arc::strong_count(&counted), 1 + n);
        // The worker drops the output that has no handle.
        drop(spawn(domain, 1, held()));
        dropped_after(1);
        run(domain);
        dropped_after(0);
        // The handle drops an output that it keeps.
        let handle = spawn(domain, 1, held());
        run(domain);
        dropped_after(1);
        drop(handle);
        dropped_after(0);
        // The worker drops a cancelled future, not the caller of `cancel`.
        let of = counted.clone();
        let handle = spawn(domain, 1, async move {
            let _of = of;
            pending::<()>().await
        });
        run(domain);
        handle.cancel();
        dropped_after(1);
        run(domain);
        dropped_after(0);
        assert_eq!(output(handle), Err(Ended::Cancelled));
    });
}

#[test]
fn last_waker_frees_the_block_and_nothing_else() {
    with_domain(|domain, machine| {
        let waker: &Mutex<_> = leaked(Mutex::new(None));
        let ended = ran(
            domain,
            1,
            poll_fn(|context| {
                *waker.lock().unwrap() = Some(context.waker().clone());
                Poll::Ready(())
            }),
        );
        assert_eq!(ended, Ok(()));
        let waker = waker.lock().unwrap().take().unwrap();
        assert!(matches!(
            domain.close(),
            Err(DomainError::InUse { coroutines: 1, .. })
        ));
        waker.wake_by_ref();
        waker.wake_by_ref();
        assert_ne!(machine.memory.load(Relaxed), 0);
        drop(waker);
        assert_eq!(machine.memory.load(Relaxed), 0);
    });
}

#[test]
fn idle_domain_keeps_no_blocks_after_any_number_of_coroutines() {
    with_domain(|domain, machine| {
        let handle = spawn(domain, 7, pending::<()>());
        run(domain);
        let before = machine.memory.load(Relaxed);
        for n in [1, 100, 10_000] {
            for at in 0..n {
                drop(match at % 3 {
                    0 => spawn(domain, 1, async {}),
                    1 => spawn(domain, 2, async {
                        let held = [1_u8; 300];
                        yield_now().await;
                        assert_eq!(held, [1; 300]);
                    }),
                    _ => spawn(domain, 3, yield_often(2)),
                });
            }
            run(domain);
            let more = machine.memory.load(Relaxed) - before;
            // A chunk of slots in reserve, and the list of chunks, which doubles.
            assert!(more <= 256 * 16 + 64 * 32, "{more} bytes after {n}");
        }
        handle.cancel();
        run(domain);
        assert_eq!(output(handle), Err(Ended::Cancelled));
    });
}

/// The last handle is dropped by another thread, when the workers are parked and have freed their spare blocks.
#[test]
fn block_is_kept_only_if_a_worker_will_park_again() {
    with_domain(|domain, machine| {
        let kept_with = |serving: u32, sleepers: u32| {
            let handle = spawn(domain, 4, async {});
            run(domain);
            domain
                .registry
                .with(machine, |registry| registry.serving = serving);
            domain.sleepers.store(sleepers, Relaxed);
            drop(handle);
            let kept = machine.memory.load(Relaxed);
            domain
                .registry
                .with(machine, |registry| registry.serving = 0);
            domain.sleepers.store(0, Relaxed);
            kept
        };
        assert_eq!(kept_with(0, 0), 0, "no worker");
        assert_eq!(kept_with(0b11, 0b11), 0, "both are parked");
        assert_ne!(kept_with(0b11, 0b10), 0, "the first will park");
        // A worker that leaves without having parked frees it.
        domain.set_workers(1).unwrap();
        domain.set_workers(0).unwrap();
        domain.serve(0);
        assert_eq!(machine.memory.load(Relaxed), 0);
    });
}

/// KEEP in `free_list`, with a clock that ticks.
#[test]
fn kept_block_is_freed_at_the_next_tick() {
    with_domain(|domain, machine| {
        let kept_of_one = || {
            let handle = spawn(domain, 4, async {});
            run(domain);
            drop(handle);
            machine.memory.load(Relaxed)
        };
        assert_eq!(kept_of_one(), 0, "nothing has ticked yet");
        domain.clock_ticked();
        let kept = kept_of_one();
        assert_ne!(kept, 0, "until the next tick");
        assert_eq!(kept_of_one(), kept, "the next coroutine has the block");
        domain.clock_ticked();
        assert_eq!(machine.memory.load(Relaxed), 0);
        domain.clock_ticked();
        assert_eq!(kept_of_one(), kept);
    });
}

#[test]
fn spawn_after_an_end_allocates_nothing() {
    with_domain(|domain, machine| {
        let ended = ran(domain, 1, async move {
            spawn(domain, 0, async {}).await.unwrap();
            let before = machine.memory.load(Relaxed);
            for _ in 0..100 {
                spawn(domain, 0, async {}).await.unwrap();
                assert_eq!(machine.memory.load(Relaxed), before);
            }
        });
        assert_eq!(ended, Ok(()));
    });
}

#[test]
fn coroutine_takes_128_bytes_at_most_beside_its_future() {
    fn overhead<F: Future>(of: impl FnOnce() -> F) -> usize {
        drop(of);
        // The bytes that an allocator with a header of 16 and multiples of 32 takes, and the slot.
        let block = (crate::task::block::vtable::<F>().layout.size() + 16).next_multiple_of(32);
        block + 16 - size_of::<F>()
    }
    assert!(overhead(|| async {}) <= 128);
    macro_rules! of {
        ($($n:literal)*) => { $(
            let bytes = overhead(|| {
                let held = [1_u8; $n];
                async move { yield_now().await; held[0] }
            });
            assert!(bytes <= 128, "{bytes} bytes");
        )* };
    }
    of!(1 7 8 9 15 16 17 23 24 25 31 32 33 40 48 56 63 64 65 100 127 128 129 1000);
}
