//! Tests that workers park, unpark each other and share the queue token by rules 4 and 5 of
//! [`worker`](crate::run::worker).

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use std::sync::Mutex;
use std::thread;

use super::fixture::{Trace, Worker, forget_workers, leaked, output, ran, spawn};
use super::machine::{Machine, run, with_domain};
use crate::run::queue::QueueToken;
use crate::{Domain, JoinHandle, Served, sleep, wake};

#[test]
fn rule_5_worker_that_resumes_clears_only_its_own_sleeper_bit() {
    with_domain(|domain, _| {
        let mut worker = Worker::of(domain, 2, 1);
        worker.park();
        assert_eq!(domain.sleepers.load(Relaxed), 0b10);
        domain.sleepers.store(0, Relaxed);
        let looks = spawn(domain, 4, async { domain.sleepers.load(Relaxed) });
        domain.sleepers.store(0b11, Relaxed);
        worker.park();
        assert_eq!(output(looks), Ok(0b01));
    });
}

#[test]
fn rule_5_worker_does_not_park_for_a_time_that_has_come_meanwhile() {
    with_domain(|domain, machine| {
        let sleeps = spawn(domain, 4, async {
            let mut sleeps = pin!(sleep(Duration::from_millis(5)));
            poll_fn(|context| {
                let polled = sleeps.as_mut().poll(context);
                machine.clock.store(10_000_000, Relaxed);
                polled
            })
            .await;
            domain.sleepers.load(Relaxed)
        });
        Worker::of(domain, 1, 0).park();
        assert_eq!(output(sleeps), Ok(0));
    });
}

#[test]
fn worker_that_has_parked_looks_at_the_clock_before_it_polls() {
    with_domain(|domain, machine| {
        let trace = Trace::new();
        let sleeps = spawn(domain, 0, async move {
            sleep(Duration::from_millis(5)).await;
            trace.note('s');
        });
        let mut worker = Worker::of(domain, 1, 0);
        let Served::Waits { until: Some(until) } = worker.run() else {
            panic!("the worker does not park for the timer");
        };
        machine.clock.store(until, Relaxed);
        let comes = thread::spawn(move || drop(spawn(domain, 4, trace.note_and_yield('c', 1))));
        comes.join().unwrap();
        worker.park();
        assert_eq!(trace.take(), "sc");
        assert_eq!(output(sleeps), Ok(()));
    });
}

#[test]
fn rule_4_worker_keeps_the_token_when_the_others_have_left() {
    with_domain(|domain, _| {
        let mut first = Worker::of(domain, 2, 0);
        let mut is_alone = || {
            let looks = spawn(domain, 4, async { domain.alone.load(Relaxed) != 0 });
            first.park();
            output(looks).unwrap()
        };
        assert!(!is_alone());
        domain.set_workers(1).unwrap();
        assert!(!is_alone(), "the other has not left yet");
        thread::spawn(move || domain.serve(1)).join().unwrap();
        assert!(is_alone());
    });
}

/// Rule 4 of `worker`, and rule 3 of `queue`.
#[test]
fn worker_parks_while_another_keeps_the_token() {
    with_domain(|domain, _| {
        let mut first = Worker::of(domain, 1, 0);
        first.park();
        thread::spawn(move || Worker::of(domain, 2, 1).park())
            .join()
            .unwrap();
        domain.set_workers(1).unwrap();
        first.park();
    });
}

/// Rule 4 of `worker`: the number of workers changes before the second one has set its bit in `sleepers`.
#[test]
fn worker_that_finds_the_token_taken_leaves_when_fewer_are_wanted() {
    with_domain(|domain, machine| {
        let mut first = Worker::of(domain, 1, 0);
        first.park();
        let second = thread::spawn(move || {
            let mut second = Worker::of(domain, 2, 1);
            at_mask(machine, 1, || domain.set_workers(1).unwrap());
            let served = second.run();
            core::mem::forget(second);
            served
        });
        assert_eq!(second.join().unwrap(), Served::Leaves);
    });
}

/// Lets another thread take a step after interrupts have been disabled this often.
fn at_mask(machine: &Machine, after: usize, step: impl FnOnce() + Send + 'static) {
    *machine.at_mask.lock().unwrap() = Some((after, Box::new(step)));
}

/// The number of masks until a worker beside others has found its mode and no work, and is about to look once more.
const SECOND_LOOK: usize = 2;

/// A handle that another thread's step leaves for the test.
type Spawned<T> = Mutex<Option<JoinHandle<T>>>;

fn taken<T>(spawned: &Spawned<T>) -> JoinHandle<T> {
    spawned.lock().unwrap().take().unwrap()
}

/// Rule 5 of `worker`: a worker has set its bit, and then finds a coroutine that another worker has queued.
#[test]
fn unparked_worker_unparks_another_for_later_arrivals() {
    for (is_unparked, comes, unparked) in [(true, true, 0b100), (true, false, 0), (false, true, 0)]
    {
        with_domain(|domain, machine| {
            let mut worker = Worker::of(domain, 3, 1);
            let spawned: &Spawned<_> = leaked(Mutex::new(None));
            at_mask(machine, SECOND_LOOK, move || {
                domain.sleepers.store(0, Relaxed);
                let sees = async {
                    let sleepers = domain.sleepers.load(Relaxed);
                    (machine.unparked.load(Relaxed), sleepers)
                };
                *spawned.lock().unwrap() = Some(spawn(domain, 4, sees));
                for header in domain.inbox.take() {
                    // SAFETY: no worker has the token.
                    unsafe { QueueToken::of(domain) }.enqueue(header);
                }
                if comes {
                    drop(spawn(domain, 4, async {}));
                }
                let sleepers = if is_unparked { 0b100 } else { 0b110 };
                domain.sleepers.store(sleepers, Relaxed);
            });
            worker.park();
            let case = (is_unparked, comes);
            let seen = (unparked, 0b100 & !unparked);
            assert_eq!(output(taken(spawned)), Ok(seen), "{case:?}");
        });
    }
}

/// Rules 5 and 6 of `worker`: a worker that was unparked for a coroutine may park again, because that is not queued
/// yet.
#[test]
fn worker_that_clears_marks_polls_what_it_finds_before_it_parks() {
    with_domain(|domain, machine| {
        let mut worker = Worker::of(domain, 2, 1);
        let spawned: &Spawned<()> = leaked(Mutex::new(None));
        at_mask(machine, SECOND_LOOK, move || {
            // Worker 0 is unparked, and this one still counts as parked.
            domain.sleepers.store(0b11, Relaxed);
            *spawned.lock().unwrap() = Some(spawn(domain, 4, async {}));
            assert_eq!(domain.sleepers.load(Relaxed), 0b10);
        });
        worker.park();
        assert_eq!(output(taken(spawned)), Ok(()));
    });
}

/// Rule 5 of `worker`: the worker unparks the other one before its own first poll, which may take long.
#[test]
fn worker_unparks_another_only_if_it_leaves_something_ready() {
    for (coroutines, unparks) in [(1, 0), (2, 1)] {
        with_domain(|domain, machine| {
            let look = || spawn(domain, 4, async { machine.unparks.load(Relaxed) });
            let handles: Vec<_> = (0..coroutines).map(|_| look()).collect();
            domain.set_workers(2).unwrap();
            // Worker 1 is parked.
            domain.sleepers.store(0b10, Relaxed);
            machine.unparks.store(0, Relaxed);
            domain.serve(0);
            for handle in handles {
                assert_eq!(output(handle), Ok(unparks), "of {coroutines}");
            }
            forget_workers(domain);
        });
    }
}

#[test]
fn wake_unparks_one_worker_at_most() {
    with_domain(|domain, machine| {
        domain.sleepers.store(0b110, Relaxed);
        let handle = spawn(domain, 5, async {});
        assert_eq!(machine.unparks.load(Relaxed), 1);
        wake(handle.cid()).unwrap();
        assert_eq!(machine.unparks.load(Relaxed), 1, "it is queued already");
        domain.sleepers.store(0, Relaxed);
        run(domain);
        assert_eq!(output(handle), Ok(()));
    });
}

/// Rule 5 of `worker`: a worker that was parked at the look may have been unparked since.
#[test]
fn first_parked_worker_is_unparked() {
    with_domain(|domain, machine| {
        for (looked, sleepers, unparked) in [
            (0b0110, 0b0110, 0b0010),
            (0b0110, 0b0100, 0b0100),
            (0b0010, 0b1100, 0b0100),
            (0b0110, 0b0001, 0b0001),
            (0b0110, 0, 0),
        ] {
            domain.sleepers.store(sleepers, Relaxed);
            machine.unparked.store(0, Relaxed);
            domain.unpark_one_of(looked);
            assert_eq!(machine.unparked.load(Relaxed), unparked);
            assert_eq!(domain.sleepers.load(Relaxed), sleepers & !unparked);
        }
        domain.sleepers.store(0b1101, Relaxed);
        machine.unparked.store(0, Relaxed);
        domain.unpark_all();
        assert_eq!(machine.unparked.load(Relaxed), 0b1101);
        assert_eq!(domain.sleepers.load(Relaxed), 0);
    });
}

#[test]
fn server_returns_when_it_parks_and_continues_where_it_was() {
    with_domain(|domain, _| {
        let handle = spawn(domain, 4, async {});
        let mut worker = Worker::of(domain, 1, 0);
        worker.park();
        assert_eq!(output(handle), Ok(()));
        assert_eq!(domain.sleepers.load(Relaxed), 1);
        let spawns = thread::spawn(move || spawn(domain, 4, async {}));
        let handle = spawns.join().unwrap();
        assert_eq!(domain.sleepers.load(Relaxed), 0, "it is unparked");
        worker.park();
        assert_eq!(output(handle), Ok(()));
        // A run without work parks again, alone and beside others.
        worker.park();
        domain.set_workers(2).unwrap();
        worker.park();
    });
}

#[test]
fn parked_worker_frees_spare_blocks_without_ticks() {
    with_domain(|domain, machine| {
        drop(spawn(domain, 4, async {}));
        let mut worker = Worker::of(domain, 1, 0);
        worker.park();
        assert_eq!(machine.memory.load(Relaxed), 0);
    });
}

#[test]
fn coroutine_cannot_serve_a_domain() {
    with_domain(|domain, _| {
        let nested = ran(domain, 4, async move {
            domain.set_workers(2).unwrap();
            let serves = std::panic::AssertUnwindSafe(|| domain.serve(1));
            std::panic::catch_unwind(serves).is_err()
        });
        assert_eq!(nested, Ok(true));
        domain.set_workers(0).unwrap();
        domain.serve(1);
    });
}

/// Two workers of one number would share its state.
#[test]
fn only_a_requested_worker_serves_and_only_once() {
    with_domain(|domain, machine| {
        let panics = |number| {
            let serves = std::panic::AssertUnwindSafe(|| domain.serve(number));
            let why = std::panic::catch_unwind(serves).unwrap_err();
            let why = why.downcast_ref::<String>().unwrap();
            assert_eq!(
                *why,
                format!("worker {number} of domain 5 was not asked for")
            );
        };
        panics(0);
        domain.set_workers(1).unwrap();
        panics(1);
        *machine.meanwhile.lock().unwrap() = Some(|domain: &'static Domain| {
            let second = thread::spawn(move || domain.serve(0));
            second.join().unwrap_err();
        });
        domain.serve(0);
    });
}
