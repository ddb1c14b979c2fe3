//! The whole stack on the host, over a cable from the card to itself. The test makes the rounds of the poller, so it
//! can stop an operation at each stage.

mod budget;
mod cancel;
#[path = "../../../axcoop/tests/domains/mod.rs"]
mod domains;
#[cfg(feature = "embedded-io")]
mod embedded;
#[path = "../../../axcoop/tests/giving_way/mod.rs"]
mod giving_way;
mod order;
mod sockets;
mod strangers;
mod urgent;

use std::boxed::Box;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::vec;
use std::vec::Vec;

use axcoop::DomainId;

use self::domains::{Buffer, Buffers};

use crate::poller::{Pause, Poller};
use crate::stream::TcpStream;
use crate::{LINGER, TcpListener, connection, ports, priority, stack, system, wire};

/// The poller's domain.
pub const DOMAIN: DomainId = DomainId::new(6);

/// The network of one test at a time, which must leave nothing behind.
pub struct Net {
    poller: Poller,
    buffers: Buffers,
    _one: MutexGuard<'static, ()>,
}

impl Net {
    pub fn new() -> Self {
        static ONE: Mutex<()> = Mutex::new(());
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        // A failed test may have left these.
        stack::abandon();
        connection::append_newly_listed(&mut Vec::new());
        ports::append_new_ports(&mut Vec::new());
        priority::forget();
        system::set_free(usize::MAX);
        priority::set_domain(Some(DOMAIN));
        stack::start().unwrap();
        crate::start().unwrap();
        Self {
            poller: Poller::new(),
            buffers: Buffers::default(),
            _one: one,
        }
    }

    /// Makes one round of the poller; then a millisecond passes.
    pub fn round(&mut self) -> Pause {
        let pause = self.poller.turn();
        system::pass_tick();
        pause
    }

    pub fn rounds(&mut self, n: usize) {
        for _ in 0..n {
            self.round();
        }
    }

    /// Makes rounds until a condition is true.
    pub fn until(&mut self, mut condition: impl FnMut() -> bool) {
        domains::wait_until(|| {
            let is_true = condition();
            if !is_true {
                self.round();
            }
            is_true
        });
    }

    /// Makes rounds until an operation is done, and returns its output.
    pub fn done<F: Future>(&mut self, operation: F) -> F::Output {
        let mut operation = Begun::new(operation);
        let mut output = None;
        self.until(|| match operation.poll() {
            Poll::Ready(done) => {
                output = Some(done);
                true
            }
            Poll::Pending => false,
        });
        output.unwrap()
    }

    pub fn listen(&mut self, port: u16) -> TcpListener {
        let listener = TcpListener::bind(port).unwrap();
        self.round();
        listener
    }

    /// Makes a network with a listener on port 80, and a connection through it.
    pub fn connected() -> (Self, TcpListener, TcpStream, TcpStream) {
        let mut net = Self::new();
        let listener = net.listen(80);
        let (one, other) = net.pair(&listener, 80);
        (net, listener, one, other)
    }

    /// Returns the two ends of a new connection: the one that connected, and the one that was accepted.
    pub fn pair(&mut self, listener: &TcpListener, port: u16) -> (TcpStream, TcpStream) {
        let one = self.done(TcpStream::connect(here(port))).unwrap();
        let (other, _) = self.done(listener.accept()).unwrap();
        (one, other)
    }

    pub fn buffer(&self, bytes: &[u8]) -> Buffer {
        self.buffers.with(bytes)
    }

    /// Returns a buffer of this many zeros.
    pub fn room(&self, length: usize) -> Buffer {
        self.buffer(&vec![0; length])
    }

    pub fn buffers(&self) -> usize {
        self.buffers.count()
    }

    pub fn write_all(&mut self, stream: &TcpStream, bytes: &[u8]) {
        let buffer = self.buffer(bytes);
        self.done(stream.write_all(buffer)).0.unwrap();
    }

    /// Reads exactly this many bytes.
    pub fn read(&mut self, stream: &TcpStream, length: usize) -> Vec<u8> {
        let mut read = Vec::new();
        while read.len() < length {
            let buffer = self.room(length - read.len());
            let (some, buffer) = self.done(stream.read(buffer));
            let some = some.unwrap();
            assert!(some > 0, "the end after {} of {length}", read.len());
            read.extend_from_slice(&buffer.bytes[..some]);
        }
        read
    }

    /// Asserts that both directions of the connection still work.
    pub fn assert_both_directions_work(&mut self, one: &TcpStream, other: &TcpStream) {
        for (from, to) in [(one, other), (other, one)] {
            self.write_all(from, b"it goes on");
            assert_eq!(self.read(to, 10), b"it goes on");
        }
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        assert_eq!(self.buffers(), 0, "buffers that are not dropped");
        self.rounds(20);
        system::pass(LINGER);
        self.rounds(20);
        assert_eq!(stack::sockets(), 0, "sockets that are not closed");
        assert!(self.poller.has_nothing_to_watch());
        assert_eq!(priority::waiting(), 0, "waiters that are counted and gone");
    }
}

/// A port of this machine.
pub fn here(port: u16) -> SocketAddr {
    let address = wire::OWN_ADDRESS.unwrap().parse().unwrap();
    SocketAddr::new(address, port)
}

/// A waker that notes each wake, and calls a closure.
struct Told {
    was_woken: AtomicBool,
    calls: Box<dyn Fn() + Send + Sync>,
}

impl Wake for Told {
    fn wake(self: Arc<Self>) {
        self.was_woken.store(true, SeqCst);
        (self.calls)();
    }
}

/// An operation that is polled by hand.
pub struct Begun<F> {
    operation: Pin<Box<F>>,
    told: Arc<Told>,
}

impl<F: Future> Begun<F> {
    pub fn new(operation: F) -> Self {
        Self::calling(operation, || {})
    }

    /// Begins an operation each wake of which calls a closure.
    pub fn calling(operation: F, calls: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            operation: Box::pin(operation),
            told: Arc::new(Told {
                was_woken: AtomicBool::new(false),
                calls: Box::new(calls),
            }),
        }
    }

    /// Polls an operation that has to wait.
    pub fn wait(&mut self) {
        assert!(self.poll().is_pending());
    }

    pub fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(self.told.clone());
        self.operation
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
    }

    /// Returns true if it was woken since the last call.
    pub fn was_woken(&self) -> bool {
        self.told.was_woken.swap(false, SeqCst)
    }

    /// Drops the operation, after which its waker must be gone, too.
    pub fn cancel(self) {
        let Self { operation, told } = self;
        drop(operation);
        assert_eq!(Arc::strong_count(&told), 1, "its waker is still held");
    }
}
