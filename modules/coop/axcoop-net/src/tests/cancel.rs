//! A cancelled operation, in each way and at each stage, takes nothing with it. Its buffer is dropped, its side of the
//! connection is free, and the next operation loses no byte and no connection.

use std::boxed::Box;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;
use std::vec;
use std::vec::Vec;

use axcoop::host::HOST;
use axcoop::{Domain, DomainId, Ended, JoinHandle, Priority, SUMMARY, cancel, timeout};

use super::domains::{leaked, wait_until};
use super::{Begun, Net, here};
use crate::{Error, Operation, Result, SEND_BUFFER, TcpStream};

/// The way in which an operation is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The future is dropped.
    Drop,
    /// The coroutine that awaits it is cancelled.
    Cancel,
    /// The coroutine awaits it with a timeout.
    Timeout,
    /// The operation has a deadline.
    Within,
}

/// The stage at which an operation is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It has not been polled.
    Made,
    /// It has been polled, and waits.
    Waits,
    /// It has been woken, because what it waits for is there.
    Woken,
}

fn each(mut test: impl FnMut(Way, Stage)) {
    for way in [Way::Drop, Way::Cancel, Way::Timeout, Way::Within] {
        for stage in [Stage::Made, Stage::Waits, Stage::Woken] {
            std::println!("{way:?} {stage:?}");
            test(way, stage);
        }
    }
}

/// Brings an operation to a stage and cancels it, then gets what it waits for unless that is there already. Returns the
/// output of an operation that was done: one that is ready when its time is over is done.
fn cancelled<F>(
    net: &mut Net,
    (way, stage): (Way, Stage),
    operation: F,
    gets: impl FnOnce(&mut Net),
) -> Option<F::Output>
where
    F: Future + Operation + Send + 'static,
    F::Output: Send,
{
    let mut gets = Some(gets);
    let mut gets = |net: &mut Net, now: bool| {
        if now && let Some(gets) = gets.take() {
            gets(net);
            net.rounds(20);
        }
    };
    let output = match way {
        Way::Drop => {
            let mut begun = Begun::new(operation);
            if stage != Stage::Made {
                begun.wait();
                assert!(!begun.was_woken());
            }
            gets(net, stage == Stage::Woken);
            assert_eq!(begun.was_woken(), stage == Stage::Woken);
            begun.cancel();
            None
        }
        Way::Within => {
            const TIME: Duration = Duration::from_millis(40);
            let time = match stage {
                Stage::Made => Duration::ZERO,
                _ => TIME,
            };
            let mut begun = Begun::new(operation.within(time));
            let mut polled = begun.poll();
            if stage != Stage::Made {
                assert!(polled.is_pending());
                gets(net, stage == Stage::Woken);
                net.rounds(2 * TIME.as_millis() as usize);
                assert!(begun.was_woken());
                polled = begun.poll();
            }
            let Poll::Ready(output) = polled else {
                panic!("it waits though its time is over");
            };
            begun.cancel();
            Some(output)
        }
        Way::Cancel | Way::Timeout => {
            let coroutines = Coroutines::new();
            let hold = (stage == Stage::Made).then(|| coroutines.hold());
            let polls = Arc::new(AtomicUsize::new(0));
            let operation = Polled {
                future: Box::pin(operation),
                polls: polls.clone(),
            };
            let time = match way {
                Way::Timeout => Duration::from_millis(30),
                _ => Duration::from_secs(600),
            };
            let handle = coroutines.spawn(async move { timeout(time, operation).await });
            let hold = hold.or_else(|| {
                wait_until(|| polls.load(SeqCst) > 0);
                (stage == Stage::Woken).then(|| coroutines.hold())
            });
            gets(net, stage == Stage::Woken);
            match way {
                Way::Cancel => cancel(handle.cid()).unwrap(),
                _ => thread::sleep(2 * time),
            }
            drop(hold);
            match handle.join() {
                Ok(in_time) => in_time.ok(),
                Err(why) => {
                    assert_eq!((way, why), (Way::Cancel, Ended::Cancelled));
                    None
                }
            }
        }
    };
    gets(net, true);
    output
}

struct Polled<F> {
    future: Pin<Box<F>>,
    polls: Arc<AtomicUsize>,
}

impl<F: Future> Future for Polled<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let polled = self.future.as_mut().poll(context);
        self.polls.fetch_add(1, SeqCst);
        polled
    }
}

/// A domain with one worker.
pub struct Coroutines(&'static Domain);

impl Coroutines {
    pub fn new() -> Self {
        let domain = leaked(Domain::new(DomainId::new(3), &SUMMARY, &HOST));
        domain.open().unwrap();
        domain.set_workers(1).unwrap();
        Self(domain)
    }

    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.at(Priority::DEFAULT, future)
    }

    pub fn at<F>(&self, priority: Priority, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.0.spawn(future, priority)
    }

    /// Keeps the worker from polling anything until the returned sender is dropped.
    pub fn hold(&self) -> mpsc::Sender<()> {
        self.hold_at(Priority::FIRST)
    }

    /// Does the same as [`hold`](Self::hold), after all ready coroutines have been polled.
    pub fn hold_after_others(&self) -> mpsc::Sender<()> {
        self.hold_at(Priority::LAST)
    }

    fn hold_at(&self, priority: Priority) -> mpsc::Sender<()> {
        let (lets_go, held) = mpsc::channel();
        let (has, is_held) = mpsc::channel();
        drop(self.0.spawn(
            async move {
                has.send(()).unwrap();
                held.recv().unwrap_err();
            },
            priority,
        ));
        is_held.recv().unwrap();
        lets_go
    }
}

impl Drop for Coroutines {
    fn drop(&mut self) {
        self.0.set_workers(0).unwrap();
        if !thread::panicking() {
            wait_until(|| self.0.close().is_ok());
        }
    }
}

/// Returns the number of bytes of a transfer, which is 0 if it was not done in time.
fn of_transfer<B>(output: Option<(Result<usize>, B)>) -> usize {
    match output {
        Some((Ok(length), _)) => length,
        Some((Err(error), _)) => {
            assert_eq!(error, Error::TimedOut);
            0
        }
        None => 0,
    }
}

#[test]
fn rule_3_cancelled_read_loses_no_bytes() {
    let mut net = Net::new();
    let listener = net.listen(80);
    each(|way, stage| {
        let (reads, writes) = net.pair(&listener, 80);
        let read = reads.read(net.room(5));
        let output = cancelled(&mut net, (way, stage), read, |net| {
            net.write_all(&writes, b"first");
        });
        let had = match output {
            Some((Ok(length), buffer)) => buffer.bytes[..length].to_vec(),
            output => vec![0; of_transfer(output)],
        };
        let rest = net.read(&reads, 5 - had.len());
        assert_eq!([had, rest].concat(), b"first");
        net.assert_both_directions_work(&reads, &writes);
    });
}

/// Bytes whose values tell their position.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n % 251) as u8).collect()
}

/// Writes until no more is taken, and returns the bytes that were.
fn fill(net: &mut Net, stream: &TcpStream) -> Vec<u8> {
    let mut filled = Vec::new();
    loop {
        let mut write = Begun::new(stream.write(net.buffer(&pattern(1000))));
        let mut polled = write.poll();
        if polled.is_pending() {
            net.rounds(20);
            polled = write.poll();
        }
        let Poll::Ready((length, buffer)) = polled else {
            write.cancel();
            assert!(filled.len() > SEND_BUFFER);
            return filled;
        };
        filled.extend_from_slice(&buffer.bytes[..length.unwrap()]);
    }
}

#[test]
fn rule_3_cancelled_write_does_not_disturb_the_next() {
    let mut net = Net::new();
    let listener = net.listen(80);
    each(|way, stage| {
        let (writes, reads) = net.pair(&listener, 80);
        let mut sent = fill(&mut net, &writes);
        let mut read = Vec::new();
        let write = writes.write(net.buffer(b"cancelled"));
        let output = cancelled(&mut net, (way, stage), write, |net| {
            read = net.read(&reads, 6000);
        });
        sent.extend_from_slice(&b"cancelled"[..of_transfer(output)]);
        let mut next = Begun::new(writes.write_all(net.buffer(b"the next one")));
        sent.extend_from_slice(b"the next one");
        let first = next.poll();
        let left = sent.len() - read.len();
        read.extend_from_slice(&net.read(&reads, left));
        let done = if first.is_ready() { first } else { next.poll() };
        assert!(matches!(done, Poll::Ready((Ok(()), _))));
        next.cancel();
        assert_eq!(read, sent);
        net.assert_both_directions_work(&reads, &writes);
    });
}

/// The bytes that it had handed over are sent, the first ones of its buffer, then those of the next write.
#[test]
fn rule_3_bytes_that_a_dropped_write_handed_over_are_sent() {
    let mut net = Net::new();
    let listener = net.listen(80);
    for reads_before in [0, 1, 5_000, 20_000] {
        let (writes, reads) = net.pair(&listener, 80);
        let bytes = pattern(65_536);
        let mut begun = Begun::new(writes.write_all(net.buffer(&bytes)));
        begun.wait();
        let mut read = Vec::new();
        while read.len() < reads_before {
            read.extend_from_slice(&net.read(&reads, 1));
            if begun.was_woken() {
                begun.wait();
            }
        }
        begun.cancel();
        assert_eq!(net.buffers(), 0);
        const END: &[u8] = &[255; 8];
        let mut next = Begun::new(writes.write_all(net.buffer(END)));
        let mut is_written = next.poll().is_ready();
        while !read.ends_with(END) {
            read.extend_from_slice(&net.read(&reads, 1));
            is_written = is_written || next.poll().is_ready();
        }
        next.cancel();
        assert!(is_written);
        let handed_over = read.len() - END.len();
        assert!(handed_over >= SEND_BUFFER && handed_over < bytes.len());
        assert_eq!(read[..handed_over], bytes[..handed_over]);
        net.assert_both_directions_work(&reads, &writes);
    }
}

#[test]
fn rule_3_cancelled_accept_loses_no_connection() {
    let mut net = Net::new();
    let listener = net.listen(80);
    each(|way, stage| {
        let mut connects = None;
        let output = cancelled(&mut net, (way, stage), listener.accept(), |net| {
            connects = Some(net.done(TcpStream::connect(here(80))).unwrap());
        });
        let accepted = match output {
            Some(Ok((stream, _))) => stream,
            output => {
                assert!(matches!(output, None | Some(Err(Error::TimedOut))));
                net.done(listener.accept()).unwrap().0
            }
        };
        net.assert_both_directions_work(&connects.unwrap(), &accepted);
    });
}

#[test]
fn rule_3_cancelled_connect_leaves_no_socket() {
    let mut net = Net::new();
    let listener = net.listen(80);
    each(|way, stage| {
        let output = cancelled(&mut net, (way, stage), TcpStream::connect(here(80)), |_| {});
        let other = match output {
            Some(Ok(stream)) => stream,
            output => {
                assert!(matches!(output, None | Some(Err(Error::TimedOut))));
                net.done(TcpStream::connect(here(80))).unwrap()
            }
        };
        net.write_all(&other, b"here");
        // Connections that were cancelled after the handshake have come in, and have ended.
        let accepted = loop {
            let (stream, _) = net.done(listener.accept()).unwrap();
            let buffer = net.room(4);
            match net.done(stream.read(buffer)).0 {
                Ok(4) => break stream,
                end => assert_eq!(end, Ok(0)),
            }
        };
        net.assert_both_directions_work(&other, &accepted);
    });
}

/// A pending accept fails, and the port is free at once.
#[test]
fn rule_2_dropped_listener_frees_its_port_and_its_waiter() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let mut accepts = Begun::new(listener.accept());
    accepts.wait();
    drop(listener);
    assert!(accepts.was_woken());
    assert!(matches!(accepts.poll(), Poll::Ready(Err(Error::BadState))));
    accepts.cancel();
    let next = net.listen(80);
    let (one, other) = net.pair(&next, 80);
    net.assert_both_directions_work(&one, &other);
}

/// An operation that is refused because another is under way returns its buffer.
#[test]
fn rule_2_side_is_free_as_soon_as_its_operation_is_cancelled() {
    let (mut net, listener, reads, writes) = Net::connected();
    let mut first = Begun::new(reads.read(net.room(8)));
    first.wait();
    let (refused, buffer) = net.done(reads.read(net.buffer(b"mine")));
    assert_eq!(refused, Err(Error::ResourceBusy));
    assert_eq!(buffer.bytes, b"mine");
    drop(buffer);
    first.cancel();
    net.assert_both_directions_work(&reads, &writes);
    let mut accepts = Begun::new(listener.accept());
    accepts.wait();
    assert!(matches!(
        net.done(listener.accept()),
        Err(Error::ResourceBusy)
    ));
    accepts.cancel();
    drop(net.pair(&listener, 80));
}
