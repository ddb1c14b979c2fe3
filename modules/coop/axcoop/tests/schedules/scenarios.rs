//! Calls by which threads change each other's coroutines. After a lost wake all threads wait, which Shuttle reports as
//! a deadlock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use axcoop_summary::{DomainId, Priority};
use shuttle::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use shuttle::thread;

use crate::domain::Domain;
use crate::error::Ended;
use crate::machine::{Event, Machine, OwnDomain};
use crate::run::platform::PollHook;
use crate::run::yielding::yield_now;
use crate::sync::donation::donate;
use crate::sync::join::JoinHandle;
use crate::task::named;

/// Runs a scenario with a domain of its own, which has to be empty afterwards.
fn with_domain(workers: usize, scenario: impl FnOnce(&'static Domain)) {
    let own = OwnDomain::new();
    own.domain.open().unwrap();
    own.domain.set_workers(workers).unwrap();
    scenario(own.domain);
    own.domain.set_workers(0).unwrap();
    Machine::join_workers(own.domain);
    own.domain.close().unwrap();
}

/// Spawns a coroutine that waits for two events, one after the other.
fn spawn_double_wait(domain: &'static Domain) -> ([Arc<Event>; 2], JoinHandle<()>) {
    let events = [(); 2].map(|()| Event::new());
    let [one, other] = events.clone();
    let waits = async move {
        one.wait().await;
        other.wait().await;
    };
    (events, domain.spawn(waits, Priority::DEFAULT))
}

/// A thread wakes a coroutine that is about to wait, waits, or has not begun.
pub fn wake_and_pending() {
    with_domain(1, |domain| {
        let ([one, other], handle) = spawn_double_wait(domain);
        one.signal_to_a_waiter();
        other.signal();
        assert_eq!(handle.join(), Ok(()));
    });
}

/// Two threads wake a coroutine that waits twice, with two workers.
pub fn two_wakers() {
    with_domain(2, |domain| {
        let ([one, other], handle) = spawn_double_wait(domain);
        let thread = thread::spawn(move || one.signal());
        other.signal();
        assert_eq!(handle.join(), Ok(()));
        thread.join().unwrap();
    });
}

/// Coroutines yield at two levels while workers come and go.
pub fn workers_come_and_go() {
    with_domain(1, |domain| {
        let polls = Arc::new(AtomicUsize::new(0));
        let spawn = |n: usize| {
            let polls = polls.clone();
            domain.spawn(
                async move {
                    for _ in 0..3 {
                        polls.fetch_add(1, Relaxed);
                        yield_now().await;
                    }
                },
                Priority::new(n),
            )
        };
        let first = [spawn(0), spawn(0), spawn(1)];
        domain.set_workers(2).unwrap();
        let second = [spawn(0), spawn(1)];
        domain.set_workers(1).unwrap();
        for handle in first.into_iter().chain(second) {
            assert_eq!(handle.join(), Ok(()));
        }
        assert_eq!(polls.load(Relaxed), 15);
    });
}

/// A coroutine is cancelled, woken and awaited at once, and its name is stale after its end.
pub fn cancel_and_end() {
    with_domain(2, |domain| {
        let event = Event::new();
        let waits = event.clone();
        let handle = domain.spawn(async move { waits.wait().await }, Priority::DEFAULT);
        let cid = handle.cid();
        let thread = thread::spawn(move || event.signal());
        let is_too_late = named::cancel(cid).is_err();
        match handle.join() {
            Ok(()) => {}
            Err(why) => assert!(!is_too_late && why == Ended::Cancelled),
        }
        assert!(named::wake(cid).is_err());
        thread.join().unwrap();
    });
}

/// A name is looked up while its block becomes another coroutine's, which is not cancelled.
pub fn names_and_blocks() {
    with_domain(1, |domain: &'static Domain| {
        let event = Event::new();
        let waits = event.clone();
        // One type for both, so that their blocks have one size class.
        let one = |waits: Option<Arc<Event>>| async move {
            if let Some(event) = waits {
                event.wait().await;
            }
        };
        let first = domain.spawn(one(None), Priority::DEFAULT);
        let name = first.cid();
        let both = domain.spawn(
            async move {
                let _ = first.await;
                domain.spawn(one(Some(waits)), Priority::DEFAULT).await
            },
            Priority::DEFAULT,
        );
        let _ = named::cancel(name);
        event.signal();
        assert_eq!(both.join(), Ok(Ok(())));
    });
}

/// A handle is dropped while its coroutine ends: the output is dropped once.
pub fn drop_and_end() {
    struct Output(Arc<AtomicU32>);
    impl Drop for Output {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let dropped = Arc::new(AtomicU32::new(0));
    with_domain(1, |domain| {
        let output = Output(dropped.clone());
        drop(domain.spawn(async move { output }, Priority::DEFAULT));
        let output = Output(dropped.clone());
        drop(
            domain
                .spawn(async move { output }, Priority::DEFAULT)
                .join(),
        );
    });
    assert_eq!(dropped.load(SeqCst), 2);
}

/// A coroutine awaits others, which end meanwhile.
pub fn coroutines_join() {
    with_domain(2, |domain: &'static Domain| {
        let sum = domain.spawn(
            async move {
                let one = domain.spawn(async { 1 }, Priority::LAST);
                let two = domain.spawn(
                    async {
                        yield_now().await;
                        2
                    },
                    Priority::FIRST,
                );
                one.await.unwrap() + two.await.unwrap()
            },
            Priority::DEFAULT,
        );
        assert_eq!(sum.join(), Ok(3));
    });
}

/// A priority is donated and taken back while its coroutine runs, waits and ends.
pub fn donations() {
    with_domain(2, |domain| {
        let event = Event::new();
        let waits = event.clone();
        let handle = domain.spawn(
            async move {
                yield_now().await;
                waits.wait().await;
            },
            Priority::LAST,
        );
        let cid = handle.cid();
        let thread = thread::spawn(move || {
            let donation = donate(cid, Priority::FIRST);
            let _ = named::set_priority(cid, Priority::DEFAULT);
            drop(donation);
            if let Ok(priority) = named::priority(cid) {
                assert_eq!(priority, Priority::DEFAULT);
            }
        });
        event.signal();
        assert_eq!(handle.join(), Ok(()));
        thread.join().unwrap();
    });
}

/// A worker is taken away while it begins to serve.
pub fn a_worker_is_taken_away() {
    with_domain(1, |domain| {
        domain.set_workers(2).unwrap();
        domain.set_workers(1).unwrap();
        let serving = || {
            domain
                .registry
                .with(domain.platform, |registry| registry.serving.count_ones())
        };
        let mut looks = 0;
        while serving() != 1 {
            looks += 1;
            assert!(looks < 1_000, "the second worker stays");
            thread::yield_now();
        }
    });
}

/// A poll spins until another coroutine has run, which the second worker must run meanwhile.
pub fn no_coroutine_waits_beside_an_idle_worker() {
    with_domain(2, |domain| {
        let is_done = Arc::new(AtomicBool::new(false));
        let waits = is_done.clone();
        let first = domain.spawn(async {}, Priority::DEFAULT);
        let slow = domain.spawn(
            async move {
                let mut looks = 0;
                while !waits.load(SeqCst) {
                    looks += 1;
                    assert!(looks < 1_000, "no worker runs the other one");
                    thread::yield_now();
                }
            },
            Priority::DEFAULT,
        );
        let quick = domain.spawn(
            async move { is_done.store(true, SeqCst) },
            Priority::DEFAULT,
        );
        for handle in [first, slow, quick] {
            assert_eq!(handle.join(), Ok(()));
        }
    });
}

/// A poll hook that takes long: other threads run meanwhile.
struct Slow;

impl PollHook for Slow {
    fn run(&self, _: DomainId) {
        thread::yield_now();
    }

    fn until(&self) -> Option<u64> {
        None
    }
}

/// LOOK AGAIN (rule 6 of `worker`): a worker that clears marks that it takes for stale looks again. So a coroutine that
/// was spawned meanwhile is marked whenever the worker yields.
fn marks_stay(workers: usize) {
    let (urgent, elsewhere) = (Priority::new(1), DomainId::new(1));
    with_domain(1, |domain| {
        let is_spawned = Arc::new(AtomicBool::new(false));
        let has_run = Arc::new(AtomicBool::new(false));
        let (spawned, ran) = (is_spawned.clone(), has_run.clone());
        Machine::watch(domain, move || {
            if spawned.load(SeqCst) && !ran.load(SeqCst) {
                assert!(
                    domain.summary.is_marked(domain.id(), urgent),
                    "it is unmarked"
                );
            }
        });
        domain.set_workers(workers).unwrap();
        // So that the worker yields before it polls.
        domain.summary.mark(elsewhere, Priority::FIRST);
        domain.set_poll_hook(Some(&Slow));
        let last = domain.spawn(async {}, Priority::LAST);
        // It is called after the inbox is drained, and before the worker yields.
        domain.request_poll_hook();
        let first = domain.spawn(async move { has_run.store(true, SeqCst) }, urgent);
        is_spawned.store(true, SeqCst);
        assert_eq!((first.join(), last.join()), (Ok(()), Ok(())));
        domain.summary.clear(elsewhere, Priority::FIRST);
        // Workers that never began.
        domain
            .registry
            .with(domain.platform(), |registry| registry.serving &= 1);
    });
}

/// The worker has the domain for itself.
pub fn marks_stay_alone() {
    marks_stay(1);
}

/// The worker serves as if there were others, but none of them clears any mark.
pub fn marks_stay_shared() {
    marks_stay(2);
}
