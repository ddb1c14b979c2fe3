//! Bounded channels with several senders and several receivers.
//!
//! 1. Each message goes to one receiver. Messages are received in the order in which they were put in. A channel
//!    holds at most as many as it has room for.
//! 2. A sender waits for room, and a receiver for a message, in the order of `waiters`: the most
//!    urgent first, and in order of arrival within a priority.
//! 3. A message is sent if and only if [`Sender::send`] returns success. If its future is dropped before, the message
//!    is dropped; if the channel is closed before, the message comes back. Dropping the future of [`Receiver::recv`]
//!    loses no message.
//! 4. A channel is closed by a call, or with its last sender or its last receiver. Then no message is put in any
//!    more. The messages in it can still be received; with the last receiver they are dropped.
//!
//! This is algorithm 1 of the seeds, a producer and a consumer with a queue between them. There the producer wakes the
//! consumer by name while the queue is full. Here it waits for room:
//!
//! ```
//! use axcoop::{Domain, DomainId, Priority, SUMMARY, channel, host::HOST};
//!
//! static PROGRAM: Domain = Domain::new(DomainId::new(0), &SUMMARY, &HOST);
//!
//! async fn consumer(messages: channel::Receiver<u32>) -> u32 {
//!     let mut sum = 0;
//!     while let Ok(n) = messages.recv().await {
//!         sum += n;
//!     }
//!     sum
//! }
//!
//! async fn producer(messages: channel::Sender<u32>) {
//!     for n in 1..=100 {
//!         messages.send(n).await.expect("the consumer is there");
//!     }
//! }
//!
//! PROGRAM.open()?;
//! PROGRAM.set_workers(1)?;
//! let (sender, receiver) = channel::bounded(8);
//! let sum = PROGRAM.spawn(consumer(receiver), Priority::new(1));
//! PROGRAM.spawn(producer(sender), Priority::new(0));
//! assert_eq!(sum.join()?, 5050);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A channel of the ecosystem would not do. Without a system underneath, the well-kept ones spin until a thread that
//! was interrupted in a push has finished it. If that thread is a less urgent one of the same CPU, or if the interrupt
//! pushes, they spin for ever. None has the order of rule 2. Where neither matters, they run here unchanged, as does
//! all code built on [`core::future`].

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::error::Error;
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::domain;
use crate::lock::Lock;
use crate::sync::resource::{Later, Resource, Side, Wait, change, locked};
use crate::sync::waiters::{self, NoTicket, Tickets};

/// Makes a channel with room for this many messages.
///
/// **Cost.** Two allocations, one of them for the room. Sending and receiving allocate nothing.
///
/// # Panics
/// If the room is 0, or there is no memory for it.
#[cfg(not(loom))]
pub fn bounded<T>(room: usize) -> (Sender<T>, Receiver<T>) {
    assert!(room != 0, "channel: room for 0 messages: at least 1");
    let state = State {
        messages: VecDeque::with_capacity(room),
        room: Tickets::new(room),
        filled: Tickets::new(0),
        senders: 1,
        receivers: 1,
    };
    let channel = Arc::new(Lock::new(state));
    (Sender(channel.clone()), Receiver(channel))
}

struct State<T> {
    messages: VecDeque<T>,
    /// A permit for each free place that no sender has been granted.
    room: Tickets,
    /// A permit for each message that no receiver has been granted.
    filled: Tickets,
    senders: usize,
    receivers: usize,
}

impl<T> State<T> {
    /// Uses a place that a sender has been granted, or gives it up if the channel has been closed meanwhile.
    fn put(&mut self, message: &mut Option<T>) -> Result<(), Closed> {
        if self.room.is_closed() {
            self.room.give(1);
            return Err(Closed);
        }
        let message = message.take().expect("it is sent once");
        debug_assert!(self.messages.len() < self.messages.capacity());
        self.messages.push_back(message);
        self.filled.give(1);
        Ok(())
    }

    /// Takes the message that a receiver has been granted.
    fn take(&mut self) -> T {
        let message = self.messages.pop_front().expect("it has been granted one");
        self.room.give(1);
        message
    }

    fn close(&mut self) {
        self.room.close();
        self.filled.close();
    }
}

impl<T> Resource for State<T> {
    fn settle(&mut self) -> Later {
        let mut later = Later::default();
        later.wakes[0] = self.room.grant_first().and_then(|node| node.waker.take());
        later.wakes[1] = self.filled.grant_first().and_then(|node| node.waker.take());
        later
    }
}

/// The wait queue of senders.
struct Room<T>(PhantomData<T>);
/// The wait queue of receivers.
struct Filled<T>(PhantomData<T>);

impl<T> Side for Room<T> {
    type Resource = State<T>;

    fn tickets(state: &mut State<T>) -> &mut Tickets {
        &mut state.room
    }
}

impl<T> Side for Filled<T> {
    type Resource = State<T>;

    fn tickets(state: &mut State<T>) -> &mut Tickets {
        &mut state.filled
    }
}

/// The sending side of a channel. Its clones send to the same channel.
pub struct Sender<T>(Arc<Lock<State<T>>>);

/// The receiving side of a channel. Its clones receive from the same channel.
pub struct Receiver<T>(Arc<Lock<State<T>>>);

impl<T> Sender<T> {
    /// Waits for room, and puts a message in.
    ///
    /// # Errors
    /// [`SendError`] with the message if the channel is closed.
    pub fn send(&self, message: T) -> Sending<'_, T> {
        Sending {
            message: Some(message),
            wait: Wait::new(&self.0, 1),
        }
    }

    /// Puts a message in if there is room and no sender waits that is as urgent or more. May be called in an
    /// interrupt once a domain has been opened.
    ///
    /// # Errors
    /// [`TrySendError`] with the message if not, or if the channel is closed.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let level = waiters::level_of(domain::current_header());
        let mut message = Some(message);
        let sent = change(&self.0, |state| match state.room.take(1, level) {
            Ok(()) => state.put(&mut message).map_err(|Closed| NoTicket::Closed),
            Err(why) => Err(why),
        });
        let back = |message: Option<T>| message.expect("it has not been sent");
        sent.map_err(|why| match why {
            NoTicket::Wait => TrySendError::Full(back(message)),
            NoTicket::Closed => TrySendError::Closed(back(message)),
        })
    }

    /// Blocks the calling thread until there is room, and puts a message in.
    ///
    /// # Errors
    /// [`SendError`] with the message if the channel is closed.
    ///
    /// # Panics
    /// In a coroutine, which would block its worker. Also if no domain is open.
    pub fn send_blocking(&self, message: T) -> Result<(), SendError<T>> {
        domain::assert_may_block("send_blocking", "`send`");
        domain::block_on(self.send(message))
    }

    /// Closes the channel (rule 4).
    pub fn close(&self) {
        change(&self.0, State::close);
    }

    /// Returns true if the channel is closed.
    pub fn is_closed(&self) -> bool {
        locked(&self.0, |state| state.room.is_closed())
    }
}

impl<T> Receiver<T> {
    /// Waits for a message, and takes it out.
    ///
    /// # Errors
    /// [`Closed`] if the channel is closed and empty.
    pub fn recv(&self) -> Receiving<'_, T> {
        Receiving {
            wait: Wait::new(&self.0, 1),
        }
    }

    /// Takes a message out if there is one and no receiver waits that is as urgent or more. May be called in an
    /// interrupt once a domain has been opened.
    ///
    /// # Errors
    /// [`TryRecvError`] if not.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        let level = waiters::level_of(domain::current_header());
        let received = change(&self.0, |state| {
            state.filled.take(1, level).map(|()| state.take())
        });
        received.map_err(|why| match why {
            NoTicket::Wait => TryRecvError::Empty,
            NoTicket::Closed => TryRecvError::Closed,
        })
    }

    /// Blocks the calling thread until there is a message, and takes it out.
    ///
    /// # Errors
    /// [`Closed`] if the channel is closed and empty.
    ///
    /// # Panics
    /// In a coroutine, which would block its worker. Also if no domain is open.
    pub fn recv_blocking(&self) -> Result<T, Closed> {
        domain::assert_may_block("recv_blocking", "`recv`");
        domain::block_on(self.recv())
    }

    /// Closes the channel (rule 4).
    pub fn close(&self) {
        change(&self.0, State::close);
    }

    /// Returns true if the channel is closed. There may still be messages in it.
    pub fn is_closed(&self) -> bool {
        locked(&self.0, |state| state.room.is_closed())
    }

    /// Returns the number of messages in the channel, including those that receivers have been granted.
    pub fn len(&self) -> usize {
        locked(&self.0, |state| state.messages.len())
    }

    /// Returns true if no message is in the channel.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        locked(&self.0, |state| state.senders += 1);
        Self(self.0.clone())
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        locked(&self.0, |state| state.receivers += 1);
        Self(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        change(&self.0, |state| {
            state.senders -= 1;
            if state.senders == 0 {
                state.close();
            }
        });
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        // Messages without a receiver are dropped without the lock.
        drop(change(&self.0, |state| {
            state.receivers -= 1;
            if state.receivers != 0 {
                return None;
            }
            state.close();
            Some(core::mem::take(&mut state.messages))
        }));
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of [`Sender::send`].
    #[must_use = "a future does nothing unless it is awaited"]
    pub struct Sending<'a, T: 'a> {
        message: Option<T>,
        #[pin]
        wait: Wait<'a, Room<T>>,
    }
}

impl<T> Future for Sending<'_, T> {
    type Output = Result<(), SendError<T>>;

    /// # Panics
    /// If it has been ready before.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let message = this.message;
        // Before the lock is taken, which would stay taken.
        assert!(message.is_some(), "a send is polled after it was ready");
        let sent = this.wait.poll(context, |state| state.put(message));
        sent.map(|sent| match sent {
            Ok(Ok(())) => Ok(()),
            _ => Err(SendError(message.take().expect("it has not been sent"))),
        })
    }
}

pin_project! {
    /// The future of [`Receiver::recv`].
    #[must_use = "a future does nothing unless it is awaited"]
    pub struct Receiving<'a, T: 'a> {
        #[pin]
        wait: Wait<'a, Filled<T>>,
    }
}

impl<T> Future for Receiving<'_, T> {
    type Output = Result<T, Closed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let received = self.project().wait.poll(context, State::take);
        received.map(|received| received.map_err(|_| Closed))
    }
}

/// The channel is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// The channel is closed, and this message was not sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

/// Why a message could not be sent at once. The message comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// There is no room, or a sender that is as urgent waits for it.
    Full(T),
    /// The channel is closed.
    Closed(T),
}

/// Why no message could be received at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// There is no message, or a receiver that is as urgent waits for it.
    Empty,
    /// The channel is closed and empty.
    Closed,
}

const CLOSED: &str = "the channel is closed";

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CLOSED)
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CLOSED)
    }
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendError(..)")
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the channel is full",
            Self::Closed(_) => CLOSED,
        })
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the channel is empty",
            Self::Closed => CLOSED,
        })
    }
}

impl Error for Closed {}
impl<T> Error for SendError<T> {}
impl<T> Error for TrySendError<T> {}
impl Error for TryRecvError {}
