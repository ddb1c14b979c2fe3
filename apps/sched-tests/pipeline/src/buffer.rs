//! A bounded buffer between one sender and one receiver. A task that cannot go on is blocked: it
//! neither yields nor spins.

use alloc::{boxed::Box, sync::Arc};
use core::sync::atomic::{AtomicU64, Ordering::*};

use sched_tests_common::platform::WaitQueue;

/// The state that both ends share.
///
/// `sent` and `received` count all items so far: received ≤ sent ≤ received + the number of slots.
/// Only the sender changes `sent`, and only the receiver changes `received`. So there is no lock
/// that a preempted task could hold.
struct Shared {
    slots: Box<[AtomicU64]>,
    /// Stored after the slot (`Release`), so that a receiver that sees the count sees the item.
    sent: AtomicU64,
    /// Stored after the item was taken out (`Release`), so that a sender that sees the count may
    /// reuse the slot.
    received: AtomicU64,
    not_empty: WaitQueue,
    not_full: WaitQueue,
}

impl Shared {
    fn slot(&self, item: u64) -> &AtomicU64 {
        &self.slots[(item % self.slots.len() as u64) as usize]
    }
}

/// The end that puts items in.
pub struct Sender {
    shared: Arc<Shared>,
    sent: u64,
}

/// The end that takes them out, in the same order.
pub struct Receiver {
    shared: Arc<Shared>,
    received: u64,
}

/// Makes an empty buffer of `slots` items, at least 1.
pub fn bounded(slots: usize) -> (Sender, Receiver) {
    assert!(slots > 0, "a buffer without a slot lets nothing through");
    let shared = Arc::new(Shared {
        slots: (0..slots).map(|_| AtomicU64::new(0)).collect(),
        sent: AtomicU64::new(0),
        received: AtomicU64::new(0),
        not_empty: WaitQueue::new(),
        not_full: WaitQueue::new(),
    });
    let sender = Sender {
        shared: shared.clone(),
        sent: 0,
    };
    let receiver = Receiver {
        shared,
        received: 0,
    };
    (sender, receiver)
}

impl Sender {
    /// Puts an item in; blocks while the buffer is full.
    pub fn send(&mut self, item: u64) {
        let shared = &*self.shared;
        let slots = shared.slots.len() as u64;
        let has_room = || self.sent - shared.received.load(Acquire) < slots;
        shared.not_full.wait_until(has_room);
        shared.slot(self.sent).store(item, Relaxed);
        self.sent += 1;
        shared.sent.store(self.sent, Release);
        shared.not_empty.wake_one();
    }
}

impl Receiver {
    /// Takes the oldest item out; blocks while there is none.
    pub fn receive(&mut self) -> u64 {
        let shared = &*self.shared;
        let has_items = || shared.sent.load(Acquire) > self.received;
        shared.not_empty.wait_until(has_items);
        let item = shared.slot(self.received).load(Relaxed);
        self.received += 1;
        shared.received.store(self.received, Release);
        shared.not_full.wake_one();
        item
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread, time::Duration};

    use super::*;

    #[test]
    fn items_come_out_in_order_and_each_once() {
        for slots in [1, 2, 3, 8] {
            let (mut sender, mut receiver) = bounded(slots);
            let source = thread::spawn(move || (0..10_000).for_each(|item| sender.send(item)));
            for item in 0..10_000 {
                assert_eq!(receiver.receive(), item, "{slots} slots");
            }
            source.join().unwrap();
        }
    }

    #[test]
    fn a_full_buffer_blocks_until_an_item_is_out() {
        let (mut sender, mut receiver) = bounded(2);
        let (tell, told) = mpsc::channel();
        let source = thread::spawn(move || {
            for item in 0..3 {
                sender.send(item);
                tell.send(item).unwrap();
            }
        });
        let next = || told.recv_timeout(Duration::from_millis(200)).ok();
        assert_eq!([next(), next(), next()], [Some(0), Some(1), None]);
        assert_eq!(receiver.receive(), 0);
        assert_eq!(told.recv(), Ok(2));
        source.join().unwrap();
    }

    #[test]
    fn an_empty_buffer_blocks_until_an_item_is_in() {
        let (mut sender, mut receiver) = bounded(2);
        let (tell, told) = mpsc::channel();
        let sink = thread::spawn(move || tell.send(receiver.receive()).unwrap());
        assert!(told.recv_timeout(Duration::from_millis(200)).is_err());
        sender.send(7);
        assert_eq!(told.recv(), Ok(7));
        sink.join().unwrap();
    }

    #[test]
    #[should_panic(expected = "without a slot")]
    fn a_buffer_has_a_slot() {
        bounded(0);
    }
}
