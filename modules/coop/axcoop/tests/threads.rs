//! The executor on threads of the host, as a program uses it.

mod domains;

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use axcoop::host::HOST;
use axcoop::{Domain, Ended, Priority, RunError, SUMMARY, cancel, current, yield_now};

/// Runs a test in a domain of its own, which must not be marked as ready afterwards.
fn with_domain(workers: usize, test: impl FnOnce(&'static Domain)) {
    let _one = domains::with_domain_on(&HOST, workers, test);
    assert_eq!(SUMMARY.of(domains::ID), None);
}

async fn yield_often(times: usize) {
    for _ in 0..times {
        yield_now().await;
    }
}

#[test]
fn outputs_come_through_handles() {
    for workers in [1, 2, 4] {
        with_domain(workers, |domain| {
            let handles: Vec<_> = (0..1000_usize)
                .map(|n| {
                    let repeats = async move {
                        yield_often(n % 7).await;
                        String::from("x").repeat(n)
                    };
                    domain.spawn(repeats, Priority::new(n % 8))
                })
                .collect();
            for (n, handle) in handles.into_iter().enumerate() {
                assert_eq!(handle.join().unwrap().len(), n);
            }
        });
    }
}

#[test]
fn workers_come_and_go() {
    with_domain(1, |domain| {
        let handles: Vec<_> = (0..64)
            .map(|n| {
                let counts = async move {
                    yield_often(2000).await;
                    assert!(current().is_some());
                    n
                };
                domain.spawn(counts, Priority::new(n % 3))
            })
            .collect();
        for n in [2, 1, 4, 3, 1, 0, 1, 2, 8, 1] {
            domain.set_workers(n).unwrap();
            std::thread::yield_now();
        }
        for (n, handle) in handles.into_iter().enumerate() {
            assert_eq!(handle.join(), Ok(n));
        }
    });
}

#[test]
fn run_until_serves_until_its_coroutine_has_ended() {
    with_domain(0, |domain| {
        for turn in 0..3 {
            let me = std::thread::current().id();
            // It outlives the first call, and goes on when the domain is served again.
            let (sender, receiver) = axcoop::channel::bounded(1);
            let other = domain.spawn(async move { receiver.recv().await }, Priority::FIRST);
            let ran = domain.run_until(
                async move {
                    let inner = domain.spawn(async { std::thread::current().id() }, Priority::LAST);
                    (inner.await, turn)
                },
                Priority::DEFAULT,
            );
            assert_eq!(ran, Ok((Ok(me), turn)));
            assert!(current().is_none() && !other.is_finished());
            sender.try_send(turn).unwrap();
            assert!(!other.is_finished(), "no worker serves it");
            assert_eq!(domain.run_until(other, Priority::LAST), Ok(Ok(Ok(turn))));
        }
    });
}

#[test]
fn run_until_refuses_a_domain_with_workers() {
    with_domain(2, |domain| {
        let run = domain.run_until(async {}, Priority::DEFAULT);
        assert_eq!(run, Err(RunError::HasWorkers(2)));
        assert_eq!(domain.spawn(async { 1 }, Priority::DEFAULT).join(), Ok(1));
    });
}

#[test]
fn run_until_returns_how_its_coroutine_has_ended() {
    with_domain(0, |domain| {
        let panics = domain.run_until(async { panic!("as the test wants it") }, Priority::DEFAULT);
        assert_eq!(panics, Err::<(), _>(RunError::Ended(Ended::Panicked)));
        let cancelled = domain.run_until(
            async {
                cancel(current().unwrap()).unwrap();
                yield_now().await;
            },
            Priority::DEFAULT,
        );
        assert_eq!(cancelled, Err(RunError::Ended(Ended::Cancelled)));
        assert_eq!(domain.run_until(async { 1 }, Priority::DEFAULT), Ok(1));
    });
}

/// The output comes whatever number of workers is requested meanwhile, and no worker is left afterwards.
#[test]
fn workers_come_and_go_during_run_until() {
    with_domain(0, |domain| {
        static STOP: AtomicBool = AtomicBool::new(false);
        STOP.store(false, SeqCst);
        let changes = std::thread::spawn(move || {
            for n in [0, 1, 3, 0, 2, 1, 4].into_iter().cycle() {
                if STOP.load(SeqCst) {
                    break;
                }
                domain.set_workers(n).unwrap();
                std::thread::yield_now();
            }
        });
        for turn in 0..50 {
            // Until all workers of the other thread have left.
            let output = loop {
                let counts = async move {
                    yield_often(300).await;
                    turn
                };
                match domain.run_until(counts, Priority::DEFAULT) {
                    Err(RunError::HasWorkers(_)) => std::thread::yield_now(),
                    output => break output,
                }
            };
            assert_eq!(output, Ok(turn));
        }
        STOP.store(true, SeqCst);
        changes.join().unwrap();
    });
}

#[test]
fn run_until_in_a_coroutine_panics() {
    with_domain(1, |domain| {
        let ran = domain.spawn(
            async move {
                let serves = || domain.run_until(async {}, Priority::DEFAULT);
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(serves))
                    .map_err(|why| why.downcast_ref::<String>().cloned().unwrap_or_default())
            },
            Priority::DEFAULT,
        );
        let why = ran.join().unwrap().unwrap_err();
        assert!(why.contains("a coroutine awaits the future"), "{why}");
    });
}
