//! The network: ArceOS's card, smoltcp's TCP, and one lock around both.
//!
//! Rules:
//! 1. **LOCK.** One lock is around the interface, the card and all sockets. It is held for one received packet, one
//!    sweep of sent packets, or one socket's bytes. No task waits under it, and no code of a caller runs under it: no
//!    waker and no destructor.
//! 2. A listening socket exists only for a connection that is being established. It is made when the first packet is
//!    seen, before smoltcp sees that packet. So any number may arrive at a time, up to [`BACKLOG`] that are not
//!    accepted, including half-open ones, and as far as `sockets.rs` has sockets and memory. A peer whose packet is
//!    ignored tries again.
//! 3. A connection that is reset before it is established is gone, and its memory with it.
//! 4. A socket without an owner stays until the peer has all that was written and has ended its stream, or [`LINGER`]
//!    has passed, or [`LINGERING`] others have come after it. In the last two cases the peer is sent a reset:
//!    otherwise it would use a connection without an owner.
//! 5. **FLOOD.** A first packet without a place gets the socket of another connection to the same port that is not
//!    established. That is one that was reset, or else the oldest half-open one. This takes no memory. So a handshake
//!    must end before as many others have begun as there are half-open connections, and within [`HANDSHAKE`]. Their
//!    number is [`BACKLOG`] less those that wait to be accepted, or lower if `sockets.rs` has no more. An established
//!    connection is never driven out. SYN cookies are no alternative, because smoltcp cannot answer without a socket.

// This file is long because everything that the one lock guards is here.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;

use axerrno::{AxError, AxResult};
use kspin::SpinNoPreempt;
use smoltcp::iface::{Config, Interface, PollIngressSingleResult, PollResult, SocketHandle};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{self, State};
use smoltcp::time::Instant;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, HardwareAddress, IpAddress, IpCidr,
    IpEndpoint, IpListenEndpoint, IpProtocol, Ipv4Address, Ipv4Packet, TcpPacket,
};

use crate::ephemeral::Ephemeral;
use crate::operation::Terms;
use crate::poller_wakeup;
use crate::sockets::{DEAD_AFTER, Sockets};
use crate::system;
use crate::wire::{self, NoNetwork, Wire};

/// The connections of a listener that are not accepted, including half-open ones. A stranger's first packet beyond
/// them takes the place of the oldest half-open one; without one it is ignored.
pub const BACKLOG: usize = 512;
/// The limit of a handshake, from the first packet on. A client sends that packet four times in it.
pub const HANDSHAKE: core::time::Duration = core::time::Duration::from_secs(10);
/// The limit of a socket without an owner.
pub const LINGER: core::time::Duration = core::time::Duration::from_secs(5);
/// The number of sockets without an owner.
pub const LINGERING: usize = 256;
/// The length of the network prefix of an address.
const PREFIX: u8 = 24;
/// An Ethernet frame without its checksum.
const FRAME: usize = 1514;

static STACK: SpinNoPreempt<Option<Stack>> = SpinNoPreempt::new(None);

struct Stack {
    interface: Interface,
    card: Card,
    sockets: Sockets,
    ports: Vec<Port>,
    /// The sockets without an owner, the oldest first.
    lingering: VecDeque<(Instant, SocketHandle)>,
    ephemeral: Ephemeral,
    /// The number of listens so far.
    listens: u64,
}

/// A port with a listener.
struct Port {
    number: u16,
    /// The [`Listen`] of the port: the next one may have the same port number.
    listen: u64,
    /// The connections that are not established, or not fetched, in the order of their first packets.
    coming: Vec<SocketHandle>,
    /// The number of connections that are fetched and not accepted.
    fetched: usize,
}

fn now() -> Instant {
    Instant::from_micros(system::now().as_micros() as i64)
}

/// Finds and takes the card, unless that is done. Blocks meanwhile.
pub fn start() -> Result<(), NoNetwork> {
    if STACK.lock().is_some() {
        return Ok(());
    }
    let address = |text: Option<&str>| text.and_then(|text| text.parse::<Ipv4Address>().ok());
    let (Some(own), Some(gateway)) = (address(wire::OWN_ADDRESS), address(wire::GATEWAY)) else {
        return Err(NoNetwork::NoAddress);
    };
    let wire = Wire::find()?;
    let mut config = Config::new(HardwareAddress::Ethernet(EthernetAddress(wire.address())));
    config.random_seed = system::now().as_nanos() as u64;
    let mut card = Card {
        wire,
        packet: Vec::with_capacity(FRAME),
    };
    let mut interface = Interface::new(config, &mut card, now());
    interface.update_ip_addrs(|addresses| {
        addresses
            .push(IpCidr::new(own.into(), PREFIX))
            .expect("there is room for one");
    });
    interface
        .routes_mut()
        .add_default_ipv4_route(gateway)
        .expect("there is room for one");
    let mut stack = STACK.lock();
    assert!(
        stack.is_none(),
        "two tasks have started the network at a time"
    );
    *stack = Some(Stack {
        interface,
        card,
        sockets: Sockets::new(),
        ports: Vec::new(),
        lingering: VecDeque::new(),
        ephemeral: Ephemeral::new(),
        listens: 0,
    });
    Ok(())
}

fn with<R>(f: impl FnOnce(&mut Stack) -> R) -> R {
    f(STACK
        .lock()
        .as_mut()
        .expect("the network was started before the first socket was made"))
}

/// Receives one packet. Returns none without a packet, else whether a socket may have changed.
pub fn receive() -> Option<bool> {
    with(|stack| {
        if !stack.card.fetch() {
            return None;
        }
        if let Some((from, to)) = first_of_connection(&stack.card.packet) {
            stack.admit(from, to);
        }
        let Stack {
            interface,
            card,
            sockets,
            ..
        } = stack;
        let result = interface.poll_ingress_single(now(), card, sockets.set());
        card.packet.clear();
        Some(matches!(
            result,
            PollIngressSingleResult::SocketStateChanged
        ))
    })
}

/// Sends all due packets, and what timers demand. Returns true if a socket may have changed.
pub fn transmit() -> bool {
    with(|stack| {
        let Stack {
            interface,
            card,
            sockets,
            ..
        } = stack;
        interface.poll_egress(now(), card, sockets.set()) == PollResult::SocketStateChanged
    })
}

/// Removes sockets without an owner that are closed, and resets those whose time is over.
pub fn clear_lingering() {
    with(|stack| {
        let now = now();
        let Stack {
            lingering, sockets, ..
        } = stack;
        let surplus = lingering.len().saturating_sub(LINGERING);
        let mut at = 0;
        lingering.retain(|(since, handle)| {
            let socket = sockets.get_mut(*handle);
            let is_over = matches!(socket.state(), State::Closed | State::TimeWait);
            let is_late = at < surplus || now >= *since + LINGER.into();
            at += 1;
            if is_over {
                sockets.remove(*handle);
            } else if is_late {
                // The next sweep sends the reset, and the next look after that finds the socket closed. If the card has
                // no room, the reset is lost like any packet. The next packet of the peer is answered by another one.
                socket.abort();
            }
            !is_over
        });
    })
}

/// Returns true if there is any socket, established or not, with an owner or not.
pub fn has_sockets() -> bool {
    with(|stack| !stack.sockets.has_none())
}

/// Returns the ends of a connection that this packet begins, if it begins one.
fn first_of_connection(packet: &[u8]) -> Option<(IpEndpoint, IpEndpoint)> {
    let frame = EthernetFrame::new_checked(packet).ok()?;
    if frame.ethertype() != EthernetProtocol::Ipv4 {
        return None;
    }
    let ip = Ipv4Packet::new_checked(frame.payload()).ok()?;
    if ip.next_header() != IpProtocol::Tcp {
        return None;
    }
    let tcp = TcpPacket::new_checked(ip.payload()).ok()?;
    let from = IpEndpoint::new(ip.src_addr().into(), tcp.src_port());
    let to = IpEndpoint::new(ip.dst_addr().into(), tcp.dst_port());
    (tcp.syn() && !tcp.ack() && !tcp.rst()).then_some((from, to))
}

impl Port {
    /// Takes the socket of a connection that is not established (rule 5). The connection can only begin anew: its peer
    /// is sent nothing, and is reset with its next packet.
    ///
    /// **Cost.** A look at [`BACKLOG`] sockets at most.
    #[cold]
    fn make_room(&mut self, sockets: &mut Sockets) -> Option<tcp::Socket<'static>> {
        let of_state = |wanted: &[State]| {
            let is_one = |handle: &SocketHandle| wanted.contains(&sockets.get(*handle).state());
            self.coming.iter().position(is_one)
        };
        let at = of_state(&[State::Listen, State::Closed])
            .or_else(|| of_state(&[State::SynReceived]))?;
        // Removed and added again: its place may be among the neighbours of another connection.
        let mut socket = sockets.remove(self.coming.remove(at));
        socket.abort();
        Some(socket)
    }
}

impl Stack {
    /// Makes the socket of a new connection, or lets its packet be ignored (rule 2).
    fn admit(&mut self, from: IpEndpoint, to: IpEndpoint) {
        let Some(at) = self.ports.iter().position(|port| port.number == to.port) else {
            return; // smoltcp refuses it
        };
        let its_own = (Some(to), Some(from));
        if self.sockets.ends().any(|ends| ends == its_own) {
            return; // the packet has come twice
        }
        let coming = self.unestablished();
        let Self { sockets, ports, .. } = self;
        let port = &mut ports[at];
        let has_place = port.coming.len() + port.fetched < BACKLOG;
        let made = has_place.then(|| sockets.make(coming).ok()).flatten();
        let Some(mut socket) = made.or_else(|| port.make_room(sockets)) else {
            self.card.packet.clear();
            return;
        };
        socket.set_timeout(Some(HANDSHAKE.into()));
        socket
            .listen(IpListenEndpoint {
                addr: Some(to.addr),
                port: to.port,
            })
            .expect("it is new or aborted, and the port is not 0");
        port.coming.push(sockets.add(socket));
    }

    /// Returns the number of connections that are not established.
    fn unestablished(&self) -> usize {
        self.ports.iter().map(|port| port.coming.len()).sum()
    }

    fn socket(&mut self, socket: &Socket) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(socket.0)
    }

    fn linger(&mut self, handle: SocketHandle) {
        self.sockets.get_mut(handle).close();
        self.lingering.push_back((now(), handle));
    }
}

/// A listener on a port, until this is closed or dropped.
pub struct Listen(u64);

impl Listen {
    pub fn new(port: u16) -> AxResult<Self> {
        if port == 0 {
            return Err(AxError::InvalidInput);
        }
        with(|stack| {
            if stack.ports.iter().any(|other| other.number == port) {
                return Err(AxError::AddrInUse);
            }
            stack.listens += 1;
            stack.ports.push(Port {
                number: port,
                listen: stack.listens,
                coming: Vec::new(),
                fetched: 0,
            });
            Ok(Self(stack.listens))
        })
    }

    /// Moves the established connections, with their peers, into a list. Adds none once it is closed.
    pub fn fetch(&self, into: &mut Vec<(Socket, SocketAddr)>) {
        with(|stack| {
            let Stack { sockets, ports, .. } = stack;
            let Some(port) = ports.iter_mut().find(|port| port.listen == self.0) else {
                return;
            };
            port.coming.retain(|handle| {
                let socket = sockets.get_mut(*handle);
                match (socket.state(), socket.remote_endpoint()) {
                    (State::SynReceived, _) => true,
                    // The connection was reset. Its socket listens again if it was not established, and is closed
                    // otherwise.
                    (State::Listen | State::Closed, _) | (_, None) => {
                        sockets.remove(*handle);
                        false
                    }
                    (_, Some(remote)) => {
                        port.fetched += 1;
                        socket.set_timeout(Some(DEAD_AFTER));
                        into.push((Socket(*handle), address(remote)));
                        false
                    }
                }
            });
        });
    }

    /// Takes a fetched connection out of the backlog.
    pub fn accepted(&self) {
        with(|stack| {
            if let Some(port) = stack.ports.iter_mut().find(|port| port.listen == self.0) {
                port.fetched -= 1;
            }
        });
    }

    /// Ends the listening. The port is free.
    pub fn close(&self) {
        with(|stack| {
            if let Some(at) = stack.ports.iter().position(|port| port.listen == self.0) {
                let port = stack.ports.swap_remove(at);
                port.coming
                    .into_iter()
                    .for_each(|handle| stack.linger(handle));
            }
        });
    }
}

impl Drop for Listen {
    fn drop(&mut self) {
        self.close();
    }
}

fn address(endpoint: IpEndpoint) -> SocketAddr {
    let IpAddress::Ipv4(address) = endpoint.addr;
    SocketAddr::new(address.into(), endpoint.port)
}

/// A TCP socket. When it is dropped, it lingers (rule 4).
pub struct Socket(SocketHandle);

impl Socket {
    /// Begins a connection to this address.
    pub fn connect(remote: SocketAddr) -> AxResult<Self> {
        let SocketAddr::V4(remote) = remote else {
            return Err(AxError::Unsupported);
        };
        with(|stack| {
            let coming = stack.unestablished();
            let mut socket = stack.sockets.make(coming)?;
            let local = stack.free_port().ok_or(AxError::AddrInUse)?;
            let Stack {
                interface, sockets, ..
            } = stack;
            socket
                .connect(interface.context(), (*remote.ip(), remote.port()), local)
                .map_err(|_| AxError::ConnectionRefused)?;
            Ok(Self(sockets.add(socket)))
        })
    }

    /// Returns true if it is connected, or an error if it will not be.
    pub fn is_connected(&self) -> AxResult<bool> {
        with(|stack| match stack.socket(self).state() {
            State::SynSent | State::SynReceived => Ok(false),
            State::Closed => Err(AxError::ConnectionRefused),
            _ => Ok(true),
        })
    }

    /// Reads some of what has come. Returns 0 at the end of the stream.
    pub fn receive(&self, into: &mut [u8]) -> AxResult<usize> {
        with(|stack| {
            let socket = stack.socket(self);
            match socket.recv_slice(into) {
                Ok(0) => Err(AxError::WouldBlock),
                Ok(length) => Ok(length),
                Err(tcp::RecvError::Finished) => Ok(0),
                // Closed by us, or broken.
                Err(tcp::RecvError::InvalidState) => Err(AxError::ConnectionReset),
            }
        })
    }

    /// Takes some of these bytes for sending.
    pub fn send(&self, bytes: &[u8]) -> AxResult<usize> {
        with(|stack| match stack.socket(self).send_slice(bytes) {
            Ok(0) => Err(AxError::WouldBlock),
            Ok(length) => Ok(length),
            Err(tcp::SendError::InvalidState) => Err(AxError::ConnectionReset),
        })
    }

    /// Ends our stream; the peer is told after the bytes already written.
    pub fn close(&self) {
        with(|stack| stack.socket(self).close());
    }

    pub fn peer(&self) -> Option<SocketAddr> {
        with(|stack| stack.socket(self).remote_endpoint().map(address))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        with(|stack| stack.linger(self.0));
        // The peer must be told, though there may be no waiter.
        poller_wakeup::ring(Terms::NONE.priority());
    }
}

impl Stack {
    /// Returns a free port for an outgoing connection.
    fn free_port(&mut self) -> Option<u16> {
        let Self {
            ephemeral,
            sockets,
            ports,
            ..
        } = self;
        ephemeral.take(|number| {
            let mut ends = sockets.ends();
            ends.any(|(local, _)| local.is_some_and(|local| local.port == number))
                || ports.iter().any(|port| port.number == number)
        })
    }
}

/// Looks which of these sockets can be read, and which written; a broken one can be both.
pub fn readiness<'a>(sockets: impl Iterator<Item = &'a Socket>, mut look: impl FnMut(bool, bool)) {
    with(|stack| {
        for socket in sockets {
            let socket = stack.socket(socket);
            let connecting = matches!(socket.state(), State::SynSent | State::SynReceived);
            let readable = socket.can_recv() || !(connecting || socket.may_recv());
            let writable = socket.can_send() || !(connecting || socket.may_send());
            look(readable, writable);
        }
    });
}

struct Card {
    wire: Wire,
    /// The packet that smoltcp sees next; empty if there is none.
    packet: Vec<u8>,
}

impl Card {
    /// Reads the next packet into `packet`.
    fn fetch(&mut self) -> bool {
        // A packet may demand an answer: without room for one it waits in the card.
        self.wire.has_room() && self.wire.receive(&mut self.packet)
    }
}

impl Device for Card {
    type RxToken<'a> = Packet<'a>;
    type TxToken<'a> = Room<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Self::RxToken<'_>, Self::TxToken<'_>)> {
        let Self { wire, packet } = self;
        (!packet.is_empty()).then_some((Packet(packet), Room(wire)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Self::TxToken<'_>> {
        self.wire.has_room().then_some(Room(&mut self.wire))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.max_transmission_unit = FRAME;
        capabilities.medium = Medium::Ethernet;
        capabilities
    }
}

/// A received packet.
struct Packet<'a>(&'a [u8]);

impl RxToken for Packet<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

/// Room for a packet to send.
struct Room<'a>(&'a mut Wire);

impl TxToken for Room<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        self.0.send(length, f)
    }
}

/// Returns the number of sockets.
#[cfg(test)]
pub fn sockets() -> usize {
    with(|stack| stack.sockets.count())
}

/// Gives the test the cable.
#[cfg(test)]
pub fn with_wire<R>(f: impl FnOnce(&mut Wire) -> R) -> R {
    with(|stack| f(&mut stack.card.wire))
}

/// Removes the network of a failed test.
#[cfg(test)]
pub fn abandon() {
    *STACK.lock() = None;
}
