//! The sockets, and their limits.
//!
//! Rules:
//! 1. **SOCKETS.** There are never more than [`SOCKETS`], of all owners. Each packet is compared with all of them, so
//!    this bounds time under the lock as well as memory.
//! 2. **MEMORY.** The memory of a socket and of its connection is asked for first, with [`HEADROOM`] besides.
//!    ArceOS's global allocator ends the guest when there is none, and `try_reserve` asks the same allocator. Code
//!    that takes more in between has to ask as well.

use alloc::vec;
use alloc::vec::Vec;

use axerrno::{AxError, AxResult};
use smoltcp::iface::{SocketHandle, SocketSet, SocketStorage};
use smoltcp::socket::tcp;
use smoltcp::time::Duration;
use smoltcp::wire::IpEndpoint;

use crate::system;

/// The most bytes that a connection holds that have arrived and have not been read.
pub const RECEIVE_BUFFER: usize = 8 * 1024;
/// The most bytes that a connection holds that were written and have not been acknowledged.
pub const SEND_BUFFER: usize = 8 * 1024;
/// The number of sockets: of connections in both directions, established or not, and of those that linger. Beyond
/// them a stranger's first packet is ignored, and `connect` fails with `TooManyOpenFiles`. They take some 17 MiB at
/// most.
pub const SOCKETS: usize = 1024;
/// The bytes that must be free in one piece, beside a new socket, for the rest of the image. With less, a stranger's
/// first packet is ignored, and `connect` fails with `NoMemory`.
pub const HEADROOM: usize = 64 * 1024;
/// The bytes of an established connection beside its socket, with its places on lists.
pub const BESIDE: usize = 512;
/// A connection without a sign of life for this long is broken, whether or not anything was sent.
pub const DEAD_AFTER: Duration = Duration::from_secs(60);
/// The time between two keep-alive requests to a silent peer: without them smoltcp takes silence for death.
const ASK_AFTER: Duration = Duration::from_secs(15);

pub struct Sockets {
    set: SocketSet<'static>,
    count: usize,
    /// The most sockets that there have been at a time: the set has as many places.
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

    /// Returns the set for smoltcp, which neither adds nor removes.
    pub fn set(&mut self) -> &mut SocketSet<'static> {
        &mut self.set
    }

    /// Makes a socket to be [added](Self::add), while `coming` others are not established.
    ///
    /// # Errors
    /// `TooManyOpenFiles` (rule 1), `NoMemory` (rule 2).
    ///
    /// **Cost.** Three allocations and a look at the set's size; 16 KiB are zeroed.
    pub fn make(&self, coming: usize) -> AxResult<tcp::Socket<'static>> {
        if self.count >= SOCKETS {
            return Err(AxError::TooManyOpenFiles);
        }
        // A full vector takes up to twice its room, beside the old one.
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
        // Writes are whole messages, so waiting for more gains nothing.
        socket.set_nagle_enabled(false);
        Ok(socket)
    }

    /// Adds a socket that was just [made](Self::make), or was removed.
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

    /// Returns our end of each socket, and the peer's.
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
