//! What one component hands to the next.
//!
//! The same for coroutines and threads, so that neither has a better one: who waits leaves its
//! [`Waker`], which is its coroutine's or its thread's.

use alloc::collections::VecDeque;
use core::{
    future::poll_fn,
    task::{Context, Poll, Waker},
};

use kspin::SpinNoIrq;

/// A queue that one puts into and one takes from.
pub struct Mailbox<T>(SpinNoIrq<Inside<T>>);

struct Inside<T> {
    items: VecDeque<T>,
    taker: Option<Waker>,
    is_closed: bool,
}

impl<T> Mailbox<T> {
    /// An empty one, with room for so many: for more it would allocate.
    pub fn new(room: usize) -> Self {
        Self(SpinNoIrq::new(Inside {
            items: VecDeque::with_capacity(room),
            taker: None,
            is_closed: false,
        }))
    }

    /// Hands over.
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

    /// Nothing more will be put.
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

    /// Takes what was put first, as soon as there is anything; nothing if there will be none.
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
