//! The rules of `priority.rs`: the priority of the poller, as the scheduler and the workers read it.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axcoop::{Priority, SUMMARY, donate, set_priority};

use super::cancel::Coroutines;
use super::domains::wait_until;
use super::{Begun, DOMAIN, Net, here};
use crate::poller::{self, Pause, Sleeper};
use crate::{Operation, TcpStream, poller_wakeup};

/// The marked priority of the poller.
fn marked() -> Option<usize> {
    SUMMARY.of(DOMAIN).map(Priority::index)
}

const DEFAULT: Option<usize> = Some(Priority::DEFAULT.index());

#[test]
fn rule_1_poller_has_the_priority_of_its_most_urgent_waiter() {
    let (mut net, listener, one, other) = Net::connected();
    net.rounds(2);
    assert_eq!(marked(), DEFAULT, "rule 3");
    let mut last = Begun::new(one.read(net.room(1)).at(7));
    last.wait();
    net.round();
    assert_eq!(marked(), Some(7));
    let mut reads = Begun::new(other.read(net.room(1)).at(5));
    reads.wait();
    assert_eq!(marked(), Some(5), "at once");
    let mut accepts = Begun::new(listener.accept().at(2));
    accepts.wait();
    assert_eq!(marked(), Some(2));
    net.rounds(2);
    assert_eq!(marked(), Some(2));
    let mut connects = Begun::new(TcpStream::connect(here(81)).at(0));
    connects.wait();
    assert_eq!(marked(), Some(0));
    // The connection is refused.
    net.until(|| connects.was_woken());
    assert!(connects.poll().is_ready());
    net.round();
    assert_eq!(marked(), Some(2));
    accepts.cancel();
    assert_eq!(marked(), Some(2), "until the next round has ended");
    net.round();
    assert_eq!(marked(), Some(5));
    reads.cancel();
    net.round();
    assert_eq!(marked(), Some(7));
    last.cancel();
    net.round();
    assert_eq!(marked(), DEFAULT);
}

/// An operation has the priority of the coroutine that awaits it, also after a change.
#[test]
fn rule_1_waiter_has_the_priority_of_its_coroutine() {
    let (mut net, _listener, reads, writes) = Net::connected();
    let coroutines = Coroutines::new();
    let buffer = net.room(1);
    let read = coroutines.at(Priority::new(6), async move { reads.read(buffer).await.0 });
    let cid = read.cid();
    net.until(|| marked() == Some(6));
    set_priority(cid, Priority::new(3)).unwrap();
    // Without a round.
    wait_until(|| marked() == Some(3));
    let donation = donate(cid, Priority::FIRST).unwrap();
    wait_until(|| marked() == Some(0));
    net.rounds(10);
    assert_eq!(marked(), Some(0));
    drop(donation);
    net.until(|| marked() == Some(3));
    net.write_all(&writes, b"x");
    net.until(|| read.is_finished());
    assert_eq!(read.join().unwrap(), Ok(1));
    net.rounds(2);
    assert_eq!(marked(), DEFAULT);
}

#[test]
fn rule_2_written_bytes_are_sent_at_the_priority_of_the_write() {
    let (mut net, _listener, one, other) = Net::connected();
    net.rounds(20);
    let mut write = Begun::new(one.write(net.buffer(b"urgent")).at(1));
    assert!(write.poll().is_ready());
    assert_eq!(marked(), Some(1));
    net.round();
    assert_eq!(marked(), DEFAULT);
    // The bytes were sent in that round.
    net.round();
    let mut read = Begun::new(other.read(net.room(6)));
    assert!(matches!(read.poll(), Poll::Ready((Ok(6), _))));
}

#[test]
fn rule_4_sleeping_poller_is_unmarked_and_its_waker_marks_it_first() {
    let (mut net, _listener, one, _other) = Net::connected();
    let sleeper = Arc::new(Sleeper::default());
    let rest = Some(Duration::from_millis(1));
    net.rounds(20);
    // Without a waiter, and with a ring.
    let mut sleeps = Begun::new(poller::sleep(&sleeper, rest));
    sleeps.wait();
    assert_eq!(marked(), None);
    poller_wakeup::ring(Priority::new(3));
    assert!(sleeps.was_woken());
    assert_eq!(marked(), Some(3));
    assert!(sleeps.poll().is_ready());
    // With a waiter, and with a tick.
    let mut read = Begun::new(one.read(net.room(1)).at(2));
    read.wait();
    net.rounds(20);
    let mut sleeps = Begun::new(poller::sleep(&sleeper, rest));
    sleeps.wait();
    assert_eq!(marked(), None);
    sleeper.end_sleep();
    assert!(sleeps.was_woken());
    assert_eq!(marked(), Some(2));
    // A ring before it sleeps keeps it awake.
    net.rounds(20);
    poller_wakeup::ring(Priority::new(1));
    let mut sleeps = Begun::new(poller::sleep(&sleeper, rest));
    assert!(sleeps.poll().is_ready());
    read.cancel();
}

/// Rule 6 of the crate: a peer must be answered although no operation waits.
#[test]
fn rule_6_poller_sleeps_without_a_limit_only_without_a_connection() {
    let (mut net, listener, one, other) = Net::connected();
    drop(listener);
    net.rounds(19);
    let longest = Pause::Sleep(Some(crate::Backoff::LONGEST));
    assert_eq!(net.round(), longest);
    assert!(!poller_wakeup::take_ring());
    drop(one);
    assert!(
        poller_wakeup::take_ring(),
        "a ring, so that the peer is told"
    );
    net.rounds(3);
    let mut read = Begun::new(other.read(net.room(1)));
    assert!(matches!(read.poll(), Poll::Ready((Ok(0), _))));
    drop((read, other));
    net.rounds(crate::LINGER.as_millis() as usize);
    assert_eq!(net.round(), Pause::Sleep(None));
}
