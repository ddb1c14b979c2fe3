//! The executor on threads of the host, as a program uses it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use axcoop::host::HOST;
use axcoop::{Domain, DomainId, Ended, Priority, SUMMARY, cancel, current, wake, yield_now};

/// The numbers of domains are for one test at a time.
static ONE: Mutex<()> = Mutex::new(());

/// Runs a test in a domain of its own, which has to be empty afterwards.
fn with_domain(workers: usize, test: impl FnOnce(&'static Domain)) {
    let _one = ONE.lock().unwrap_or_else(|broken| broken.into_inner());
    let domain: &'static Domain =
        Box::leak(Box::new(Domain::new(DomainId::new(3), &SUMMARY, &HOST)));
    domain.open().unwrap();
    domain.alloc_cpu(workers).unwrap();
    test(domain);
    domain.alloc_cpu(0).unwrap();
    while domain.close().is_err() {
        std::thread::yield_now();
    }
    assert_eq!(SUMMARY.of(DomainId::new(3)), None);
}

#[test]
fn outputs_come_through_handles() {
    for workers in [1, 2, 4] {
        with_domain(workers, |domain| {
            let handles: Vec<_> = (0..1000_usize)
                .map(|n| {
                    domain.spawn(
                        async move {
                            for _ in 0..n % 7 {
                                yield_now().await;
                            }
                            String::from("x").repeat(n)
                        },
                        Priority::new(n % 8),
                    )
                })
                .collect();
            for (n, handle) in handles.into_iter().enumerate() {
                assert_eq!(handle.join().unwrap().len(), n);
            }
        });
    }
}

#[test]
fn a_panic_ends_one_alone() {
    with_domain(2, |domain| {
        let bad = domain.spawn(async { panic!("as the test wants it") }, Priority::DEFAULT);
        let good = domain.spawn(async { 1 }, Priority::DEFAULT);
        let bad: Result<(), _> = bad.join();
        assert_eq!(bad, Err(Ended::Panicked));
        assert_eq!(good.join(), Ok(1));
    });
}

#[test]
fn a_cancelled_one_drops_its_future_and_says_so() {
    for workers in [1, 2] {
        with_domain(workers, |domain| {
            static DROPPED: AtomicUsize = AtomicUsize::new(0);
            struct Drops;
            impl Drop for Drops {
                fn drop(&mut self) {
                    DROPPED.fetch_add(1, SeqCst);
                }
            }
            DROPPED.store(0, SeqCst);
            let drops = Drops;
            let handle = domain.spawn(
                async move {
                    let _drops = drops;
                    std::future::pending::<()>().await
                },
                Priority::LAST,
            );
            let cid = handle.cid();
            cancel(cid).unwrap();
            assert_eq!(handle.join(), Err(Ended::Cancelled));
            assert_eq!(DROPPED.load(SeqCst), 1);
            assert!(wake(cid).is_err());
            assert!(cancel(cid).is_err());
        });
    }
}

#[test]
fn workers_come_and_go() {
    with_domain(1, |domain| {
        let handles: Vec<_> = (0..64)
            .map(|n| {
                domain.spawn(
                    async move {
                        for _ in 0..2000 {
                            yield_now().await;
                        }
                        assert!(current().is_some());
                        n
                    },
                    Priority::new(n % 3),
                )
            })
            .collect();
        for n in [2, 1, 4, 3, 1, 0, 1, 2, 8, 1] {
            domain.alloc_cpu(n).unwrap();
            std::thread::yield_now();
        }
        for (n, handle) in handles.into_iter().enumerate() {
            assert_eq!(handle.join(), Ok(n));
        }
    });
}
