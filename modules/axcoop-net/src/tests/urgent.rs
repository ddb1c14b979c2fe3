//! The rules of `urgency.rs`: how urgent the poller is, as the scheduler and the workers read it.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axcoop::{Priority, SUMMARY, lend, set_priority};

use super::cancel::Coroutines;
use super::domains::wait_until;
use super::{Begun, DOMAIN, Net, here};
use crate::poller::{self, Pause, Sleeper};
use crate::{Operation, TcpStream, bell};

/// What it says.
fn said() -> Option<usize> {
    SUMMARY.of(DOMAIN).map(Priority::index)
}

const DEFAULT: Option<usize> = Some(Priority::DEFAULT.index());

#[test]
fn rule_1_it_is_as_urgent_as_the_most_urgent_who_waits() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let (one, other) = net.pair(&listener, 80);
    net.rounds(2);
    assert_eq!(said(), DEFAULT, "rule 3");
    let mut last = Begun::new(one.read(net.room(1)).at(7));
    assert!(last.poll().is_pending());
    net.round();
    assert_eq!(said(), Some(7));
    let mut reads = Begun::new(other.read(net.room(1)).at(5));
    assert!(reads.poll().is_pending());
    assert_eq!(said(), Some(5), "at once");
    let mut accepts = Begun::new(listener.accept().at(2));
    assert!(accepts.poll().is_pending());
    assert_eq!(said(), Some(2));
    net.rounds(2);
    assert_eq!(said(), Some(2));
    let mut connects = Begun::new(TcpStream::connect(here(81)).at(0));
    assert!(connects.poll().is_pending());
    assert_eq!(said(), Some(0));
    // It is refused.
    net.until(|| connects.was_woken());
    assert!(connects.poll().is_ready());
    net.round();
    assert_eq!(said(), Some(2));
    accepts.cancel();
    assert_eq!(said(), Some(2), "until the next round has ended");
    net.round();
    assert_eq!(said(), Some(5));
    reads.cancel();
    net.round();
    assert_eq!(said(), Some(7));
    last.cancel();
    net.round();
    assert_eq!(said(), DEFAULT);
}

/// An operation has the priority of the coroutine that awaits it, also when that changes meanwhile.
#[test]
fn rule_1_a_waiter_is_as_urgent_as_its_coroutine() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let (reads, writes) = net.pair(&listener, 80);
    let coroutines = Coroutines::new();
    let buffer = net.room(1);
    let read = coroutines.at(Priority::new(6), async move { reads.read(buffer).await.0 });
    let cid = read.cid();
    net.until(|| said() == Some(6));
    set_priority(cid, Priority::new(3)).unwrap();
    // At once, without a round.
    wait_until(|| said() == Some(3));
    let loan = lend(cid, Priority::FIRST).unwrap();
    wait_until(|| said() == Some(0));
    net.rounds(10);
    assert_eq!(said(), Some(0));
    drop(loan);
    net.until(|| said() == Some(3));
    net.write_all(&writes, b"x");
    net.until(|| read.is_finished());
    assert_eq!(read.join().unwrap(), Ok(1));
    net.rounds(2);
    assert_eq!(said(), DEFAULT);
}

#[test]
fn rule_2_what_is_written_is_sent_at_the_writers_priority() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let (one, other) = net.pair(&listener, 80);
    net.rounds(20);
    let mut write = Begun::new(one.write(net.buffer(b"urgent")).at(1));
    assert!(write.poll().is_ready());
    assert_eq!(said(), Some(1));
    net.round();
    assert_eq!(said(), DEFAULT);
    // It was sent in that round.
    net.round();
    let mut read = Begun::new(other.read(net.room(6)));
    assert!(matches!(read.poll(), Poll::Ready((Ok(6), _))));
}

#[test]
fn rule_4_it_says_nothing_while_it_sleeps_and_who_wakes_it_says_it_first() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let (one, _other) = net.pair(&listener, 80);
    let sleeper = Arc::new(Sleeper::default());
    let rest = Some(Duration::from_millis(1));
    net.rounds(20);
    // Nobody waits, and somebody rings.
    let mut sleeps = Begun::new(poller::sleep(&sleeper, rest));
    assert!(sleeps.poll().is_pending());
    assert_eq!(said(), None);
    bell::ring(Priority::new(3));
    assert!(sleeps.was_woken());
    assert_eq!(said(), Some(3));
    assert!(sleeps.poll().is_ready());
    // Somebody waits, and a tick comes.
    let mut read = Begun::new(one.read(net.room(1)).at(2));
    assert!(read.poll().is_pending());
    net.rounds(20);
    let mut sleeps = Begun::new(poller::sleep(&sleeper, rest));
    assert!(sleeps.poll().is_pending());
    assert_eq!(said(), None);
    sleeper.ticks();
    assert!(sleeps.was_woken());
    assert_eq!(said(), Some(2));
    // Who rings before it sleeps keeps it from that.
    net.rounds(20);
    bell::ring(Priority::new(1));
    let mut sleeps = Begun::new(poller::sleep(&sleeper, rest));
    assert!(sleeps.poll().is_ready());
    read.cancel();
}

/// Rule 6 of the crate. What the peer of a connection does is to be answered though nobody here waits.
#[test]
fn rule_6_it_sleeps_without_an_end_only_without_a_connection() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let (one, other) = net.pair(&listener, 80);
    drop(listener);
    let mut pauses = std::vec::Vec::new();
    for _ in 0..20 {
        pauses.push(net.round());
    }
    let longest = Pause::Sleep(Some(crate::Backoff::LONGEST));
    assert_eq!(pauses.last(), Some(&longest));
    assert!(!bell::answer());
    drop(one);
    assert!(bell::answer(), "it rings, so that the peer hears of it");
    net.rounds(3);
    let mut read = Begun::new(other.read(net.room(1)));
    assert!(matches!(read.poll(), Poll::Ready((Ok(0), _))));
    drop((read, other));
    let mut pause = net.round();
    for _ in 0..crate::LINGER.as_millis() {
        pause = net.round();
    }
    assert_eq!(pause, Pause::Sleep(None));
}
