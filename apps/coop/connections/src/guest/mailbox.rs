//! The queue from one component to the next.
//!
//! Coroutines and threads use the same one, so that neither has a better one: a waiter leaves its [`Waker`], which
//! wakes its coroutine or its thread.

use alloc::collections::VecDeque;
use core::{
    future::poll_fn,
    task::{Context, Poll, Waker},
};

use kspin::SpinNoIrq;

/// A queue with one sender and one receiver.
pub struct Mailbox<T>(SpinNoIrq<Inside<T>>);

struct Inside<T> {
    items: VecDeque<T>,
    taker: Option<Waker>,
    is_closed: bool,
}

impl<T> Mailbox<T> {
    /// Makes an empty queue with room for this many items: further ones would allocate.
    pub fn new(room: usize) -> Self {
        Self(SpinNoIrq::new(Inside {
            items: VecDeque::with_capacity(room),
            taker: None,
            is_closed: false,
        }))
    }

    /// Puts an item in.
    pub fn put(&self, item: T) {
        let taker = {
            let mut inside = self.0.lock();
            inside.items.push_back(item);
            inside.taker.take()
        };
        if let Some(taker) = taker {
            taker.wake();
        }
    }

    /// Ends the queue: no more items will be put in.
    pub fn close(&self) {
        let taker = {
            let mut inside = self.0.lock();
            inside.is_closed = true;
            inside.taker.take()
        };
        if let Some(taker) = taker {
            taker.wake();
        }
    }

    /// Waits for the first item. Returns none at the end.
    pub async fn take(&self) -> Option<T> {
        poll_fn(|context| self.poll_take(context)).await
    }

    fn poll_take(&self, context: &Context) -> Poll<Option<T>> {
        let mut inside = self.0.lock();
        match inside.items.pop_front() {
            Some(item) => Poll::Ready(Some(item)),
            None if inside.is_closed => Poll::Ready(None),
            None => {
                leave(&mut inside.taker, context.waker());
                Poll::Pending
            }
        }
    }
}

/// Leaves a waker, if it is not there already.
pub fn leave(place: &mut Option<Waker>, waker: &Waker) {
    match place {
        Some(there) if there.will_wake(waker) => {}
        _ => *place = Some(waker.clone()),
    }
}
