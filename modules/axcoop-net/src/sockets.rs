//! The sockets, and what they may take.
//!
//! Rules:
//! 1. **SOCKETS.** There are never more than [`SOCKETS`], whoever they are of: each packet is compared with
//!    all of them, so this bounds time under the lock as well as memory.
//! 2. **MEMORY.** What a socket takes, and what its connection will take beside it, is asked for first, and
//!    [`HEADROOM`] besides: ArceOS's global allocator ends the guest when there is none, and `try_reserve`
//!    asks the same one. Who takes more than that in between has to ask as well.

use alloc::vec;
use alloc::vec::Vec;

use axerrno::{AxError, AxResult};
use smoltcp::iface::{SocketHandle, SocketSet, SocketStorage};
use smoltcp::socket::tcp;
use smoltcp::time::Duration;
use smoltcp::wire::IpEndpoint;

use crate::system;

/// Bytes that a connection keeps of what has come and nobody has read.
pub const RECEIVE_BUFFER: usize = 8 * 1024;
/// Bytes that it keeps of what was written and the peer does not have yet.
pub const SEND_BUFFER: usize = 8 * 1024;
/// Sockets in all: of connections in both directions, accepted or on their way in, and of those that linger.
/// Beyond them a stranger's first packet is ignored, and to connect is `TooManyOpenFiles`. They take some
/// 17 MiB at most.
pub const SOCKETS: usize = 1024;
/// Bytes that have to be free in one piece, beside what a new socket takes: for whatever else the image
/// does. With less a stranger's first packet is ignored, and to connect is `NoMemory`.
pub const HEADROOM: usize = 64 * 1024;
/// Bytes that a connection takes beside its socket once it is in, with its places on lists.
pub const BESIDE: usize = 512;
/// After so long without a sign of life a connection is broken, whether or not anything was sent.
pub const DEAD_AFTER: Duration = Duration::from_secs(60);
/// How often a silent peer is asked for one: without that smoltcp takes silence for death.
const ASK_AFTER: Duration = Duration::from_secs(15);

pub struct Sockets {
    set: SocketSet<'static>,
    count: usize,
    /// As many as there have been at a time: so many places the set has.
    places: usize,
}

impl Sockets {
    pub const fn has_none(&self) -> bool {
        self.count == 0
    }

    pub fn new() -> Self {
        Self {
            set: SocketSet::new(Vec::new()),
            count: 0,
            places: 0,
        }
    }

    /// What smoltcp works on; nobody else adds or removes.
    pub fn set(&mut self) -> &mut SocketSet<'static> {
        &mut self.set
    }

    /// A socket to be [added](Self::add), while so many are on their way in.
    ///
    /// # Errors
    /// `TooManyOpenFiles` (rule 1), `NoMemory` (rule 2).
    ///
    /// **Cost.** Three allocations and a look at the set's size; 16 KiB are zeroed.
    pub fn make(&self, coming: usize) -> AxResult<tcp::Socket<'static>> {
        if self.count >= SOCKETS {
            return Err(AxError::TooManyOpenFiles);
        }
        // A vector that is full takes up to twice its room, beside what it has.
        let place = size_of::<SocketStorage<'_>>();
        let places = match self.count == self.places {
            true => 2 * (self.places + 2) * place,
            false => 0,
        };
        let own = RECEIVE_BUFFER + SEND_BUFFER + places;
        if !system::has_memory(own + (coming + 1) * BESIDE + HEADROOM) {
            return Err(AxError::NoMemory);
        }
        let buffer = |length| tcp::SocketBuffer::new(vec![0; length]);
        let mut socket = tcp::Socket::new(buffer(RECEIVE_BUFFER), buffer(SEND_BUFFER));
        socket.set_timeout(Some(DEAD_AFTER));
        socket.set_keep_alive(Some(ASK_AFTER));
        // What is written is written whole; to wait for more is of no use.
        socket.set_nagle_enabled(false);
        Ok(socket)
    }

    /// One that was [made](Self::make) for it just now, or that was removed.
    pub fn add(&mut self, socket: tcp::Socket<'static>) -> SocketHandle {
        self.count += 1;
        self.places = self.places.max(self.count);
        self.set.add(socket)
    }

    pub fn remove(&mut self, handle: SocketHandle) -> tcp::Socket<'static> {
        self.count -= 1;
        let smoltcp::socket::Socket::Tcp(socket) = self.set.remove(handle);
        socket
    }

    pub fn get(&self, handle: SocketHandle) -> &tcp::Socket<'static> {
        self.set.get(handle)
    }

    pub fn get_mut(&mut self, handle: SocketHandle) -> &mut tcp::Socket<'static> {
        self.set.get_mut(handle)
    }

    /// Our end of each, and the peer's.
    pub fn ends(&self) -> impl Iterator<Item = (Option<IpEndpoint>, Option<IpEndpoint>)> {
        self.set.iter().map(|(_, socket)| {
            let smoltcp::socket::Socket::Tcp(socket) = socket;
            (socket.local_endpoint(), socket.remote_endpoint())
        })
    }

    #[cfg(test)]
    pub fn count(&self) -> usize {
        assert_eq!(self.count, self.set.iter().count());
        assert!(self.places >= self.count);
        self.count
    }
}
