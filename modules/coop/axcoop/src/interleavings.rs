//! Explores calls that threads make on a domain at the same time. The model checker [loom] runs them in every order,
//! and with every value that the memory orders allow, up to a number of preemptions of a thread by another. After a
//! lost wake a worker waits for ever, which loom reports as a deadlock.
//!
//! The code is that of every build; with `--cfg loom` its atomics are loom's. A coroutine takes its domain's workers
//! away when it ends, so that a thread that serves ends, too.
//!
//! Not covered are more preemptions than each scenario states, and memory that is not atomic: links of queues and
//! bodies of blocks. A scenario sees by the order of polls that these have one owner at a time; `make sanitize` checks
//! them.

use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;
use core::ptr;
use core::sync::atomic::AtomicUsize;
use core::task::{Poll, Waker};
use std::println;

use axcoop_summary::Priority;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use loom::sync::{Condvar, Mutex};
use loom::thread;

use self::machine::{Event, ID, Machine, OwnDomain};
use crate::domain::Domain;
use crate::error::DomainError;
use crate::state::{Begun, State, Suspended, Woken};

/// The parts of loom that `machine` needs.
mod explorer {
    use core::future::Future;

    pub use loom::sync::atomic::{AtomicBool, Ordering::Relaxed};
    pub use loom::sync::{Condvar, Mutex};
    pub use loom::{thread, thread_local};

    pub fn block_on(_: impl Future<Output = ()>) {
        unreachable!("no thread waits for a coroutine");
    }
}

#[path = "../tests/schedules/machine.rs"]
mod machine;

/// Runs a scenario in every order with at most this many preemptions, and prints the number of executions.
fn explore(name: &str, preemptions: Option<usize>, scenario: fn()) {
    let executions = Arc::new(AtomicUsize::new(0));
    let counted = executions.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 10_000;
    builder.check(move || {
        counted.fetch_add(1, Relaxed);
        scenario();
    });
    let executions = executions.load(Relaxed);
    println!("interleavings: axcoop: {name}: {executions} executions");
}

/// Runs a scenario with a domain of its own. When its workers have left, the domain has to be empty.
fn with_domain(scenario: impl FnOnce(&'static Domain)) {
    let own = OwnDomain::new();
    own.domain.open().unwrap();
    scenario(own.domain);
    Machine::join_workers(own.domain);
    own.domain.close().unwrap();
}

/// Spawns a coroutine that takes the domain's workers away when the event has come.
fn spawn_waiter(domain: &'static Domain) -> Arc<Event> {
    let event = Event::new();
    let waits = event.clone();
    let awaits = async move {
        waits.wait().await;
        domain.set_workers(0).unwrap();
    };
    drop(domain.spawn(awaits, Priority::DEFAULT));
    event
}

/// The state alone: wakers, each of which has written a word before, and a worker that polls until it has seen all
/// words.
fn states(wakers: usize) {
    let state = Arc::new(State::queued());
    let words = Arc::new([const { () }; 2].map(|()| AtomicU32::new(0)));
    // How often the coroutine has been queued.
    let queue = Arc::new((Mutex::new(1), Condvar::new()));
    let threads: Vec<_> = (0..wakers)
        .map(|n| {
            let (state, words, queue) = (state.clone(), words.clone(), queue.clone());
            thread::spawn(move || {
                words[n].store(1, Relaxed);
                if state.wake() == Woken::MustBeQueued {
                    *queue.0.lock().unwrap() += 1;
                    queue.1.notify_one();
                }
            })
        })
        .collect();
    let mut is_queued = false;
    loop {
        if !is_queued {
            let mut times = queue.0.lock().unwrap();
            while *times == 0 {
                times = queue.1.wait(times).unwrap();
            }
            *times -= 1;
            assert_eq!(*times, 0, "it is in two queues");
        }
        assert_eq!(state.begin(), Begun::Poll);
        if (0..wakers).all(|n| words[n].load(Relaxed) == 1) {
            break;
        }
        is_queued = state.is_woken() || state.suspend() == Suspended::Queued;
    }
    state.finish();
    threads.into_iter().for_each(|of| of.join().unwrap());
    assert_eq!(*queue.0.lock().unwrap(), 0, "it is queued after its end");
}

#[test]
fn a_wake_between_poll_and_pending() {
    explore("a wake between poll and pending", None, || states(1));
}

#[test]
fn two_wakes_between_poll_and_pending() {
    explore("two wakes between poll and pending", Some(3), || states(2));
}

#[test]
fn a_wake_while_the_worker_goes_to_wait() {
    explore("a wake while the worker goes to wait", Some(2), || {
        with_domain(|domain| {
            let event = spawn_waiter(domain);
            domain.set_workers(1).unwrap();
            event.signal();
        });
    });
}

#[test]
fn a_wake_by_name_while_it_ends() {
    explore(
        "a wake by name, while it ends and is dropped",
        Some(2),
        || {
            with_domain(|domain| {
                let ends = async move { domain.set_workers(0).unwrap() };
                let handle = domain.spawn(ends, Priority::DEFAULT);
                domain.set_workers(1).unwrap();
                let _ = crate::wake(handle.cid());
                drop(handle);
            });
        },
    );
}

#[test]
fn a_handle_waits_while_it_ends() {
    explore("a handle waits while its coroutine ends", Some(2), || {
        with_domain(|domain| {
            let ends = async move { domain.set_workers(0).unwrap() };
            let mut handle = domain.spawn(ends, Priority::DEFAULT);
            domain.set_workers(1).unwrap();
            struct Wakes(AtomicBool);
            impl std::task::Wake for Wakes {
                fn wake(self: Arc<Self>) {
                    self.0.store(true, Relaxed);
                }
            }
            let wakes = Arc::new(Wakes(AtomicBool::new(false)));
            let waker = Waker::from(wakes.clone());
            let mut context = core::task::Context::from_waker(&waker);
            let is_ready = Pin::new(&mut handle).poll(&mut context).is_ready();
            // The coroutine ends in any case, and then wakes a handle that was pending.
            Machine::join_workers(domain);
            assert!(
                is_ready || wakes.0.load(Relaxed),
                "the handle was not woken"
            );
            if !is_ready {
                let poll = Pin::new(&mut handle).poll(&mut context);
                assert_eq!(poll, Poll::Ready(Ok(())));
            }
        });
    });
}

#[test]
fn two_workers_and_a_wake() {
    explore(
        "two workers, of which one may wait, and a wake",
        Some(1),
        || {
            with_domain(|domain| {
                let event = spawn_waiter(domain);
                domain.set_workers(2).unwrap();
                event.signal();
            });
        },
    );
}

#[test]
fn a_second_worker_comes_while_the_first_serves() {
    explore(
        "a second worker comes while the first serves",
        Some(1),
        || {
            with_domain(|domain| {
                domain.set_workers(1).unwrap();
                let event = spawn_waiter(domain);
                domain.set_workers(2).unwrap();
                event.signal();
            });
        },
    );
}

/// Asserts that the number leads to this domain.
fn assert_open(domain: &'static Domain) {
    let by_number = Domain::of(domain.id());
    assert!(by_number.is_some_and(|of| ptr::eq(of, domain)));
}

#[test]
fn two_threads_close_one_domain() {
    explore("two close one domain, and open another", Some(3), || {
        let (one, two) = (OwnDomain::new(), OwnDomain::new());
        let (first, second) = (one.domain, two.domain);
        first.open().unwrap();
        // The thread that closes the first opens the second.
        let closes = move || match first.close() {
            Ok(()) => second.open().map(|()| 1),
            Err(why) => {
                assert_eq!(why, DomainError::NotOpen(ID));
                Ok(0)
            }
        };
        let other = thread::spawn(closes);
        let closed = closes().unwrap() + other.join().unwrap().unwrap();
        assert_eq!(closed, 1, "one of them closes it");
        assert_open(second);
        second.close().unwrap();
        assert!(Domain::of(second.id()).is_none());
    });
}

#[test]
fn one_domain_closes_while_another_of_its_number_opens() {
    explore(
        "a domain closes while another of its number opens",
        Some(3),
        || {
            let (one, two) = (OwnDomain::new(), OwnDomain::new());
            let (first, second) = (one.domain, two.domain);
            first.open().unwrap();
            let other = thread::spawn(move || second.open());
            first.close().unwrap();
            assert_eq!(
                first.close(),
                Err(DomainError::NotOpen(ID)),
                "it is closed once"
            );
            if other.join().unwrap().is_err() {
                second.open().unwrap();
            }
            assert_open(second);
            second.close().unwrap();
        },
    );
}

#[test]
fn a_domain_closes_while_it_opens() {
    explore("a domain closes while it opens", Some(3), || {
        let one = OwnDomain::new();
        let domain = one.domain;
        let other = thread::spawn(move || domain.open());
        let is_closed = domain.close().is_ok();
        other.join().unwrap().unwrap();
        if !is_closed {
            assert_open(domain);
            domain.close().unwrap();
        }
        assert!(Domain::of(domain.id()).is_none());
    });
}
