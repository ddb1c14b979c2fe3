//! Mutexes, semaphores and channels between coroutines. Each test names the rule that it holds: those of `mutex`,
//! `semaphore` and `channel`, and of `donation` for what a waiter donates.

mod channels;
#[path = "../domains/mod.rs"]
mod domains;
mod donations;
mod mutexes;
mod semaphores;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard};
use std::task::Poll;

use axcoop::{Domain, JoinHandle, Priority, yield_now};

use domains::{leaked, with_domain};

async fn yield_often(n: usize) {
    for _ in 0..n {
        yield_now().await;
    }
}

/// Polls a future once, and returns true if it is ready.
async fn is_ready<F: Future>(mut future: Pin<&mut F>) -> bool {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
}

/// Runs a test as the only coroutine of a domain with one worker.
fn alone<F>(test: impl FnOnce(&'static Domain) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    with_domain(1, |domain| {
        let handle = domain.spawn(test(domain), Priority::new(4));
        assert_eq!(handle.join(), Ok(()));
    });
}

/// Waits until a domain with one worker has polled all coroutines that were ready.
fn settle(domain: &'static Domain) {
    domain.spawn(async {}, Priority::LAST).join().unwrap();
}

/// Spawns coroutines 0 to `count` at all levels in turn.
fn spawn_all<F>(
    domain: &'static Domain,
    count: usize,
    of: impl Fn(usize) -> F,
) -> Handles<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let spawn = |n| domain.spawn(of(n), Priority::new(n % 8));
    Handles((0..count).map(spawn).collect())
}

/// Spawns a coroutine for each level, each of which begins to wait before the next is spawned.
fn spawn_in_order<F>(
    domain: &'static Domain,
    levels: &[usize],
    of: impl Fn(usize) -> F,
) -> Handles<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let spawn = |(n, &level)| {
        let handle = domain.spawn(of(n), Priority::new(level));
        settle(domain);
        handle
    };
    Handles(levels.iter().enumerate().map(spawn).collect())
}

struct Handles<T>(Vec<JoinHandle<T>>);

impl<T> Handles<T> {
    fn join(self) -> Vec<T> {
        self.0.into_iter().map(|of| of.join().unwrap()).collect()
    }
}

/// A list that coroutines append to.
struct Log<T: 'static>(&'static Mutex<Vec<T>>);

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Log<T> {}

impl<T> Log<T> {
    fn new() -> Self {
        Self(leaked(Mutex::default()))
    }

    fn push(self, value: T) {
        self.list().push(value);
    }

    fn list(self) -> MutexGuard<'static, Vec<T>> {
        self.0.lock().unwrap()
    }
}
