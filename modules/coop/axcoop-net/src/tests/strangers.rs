//! The rules of `stack.rs` about strangers. The tests play them packet by packet, because no stack behaves like them.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::task::Poll;
use std::time::Duration;
use std::vec;
use std::vec::Vec;

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr, IpProtocol, Ipv4Address, Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr,
    TcpSeqNumber,
};

use super::{Begun, Net, here};
use crate::stack::{self, with_wire};
use crate::{BACKLOG, HANDSHAKE, LINGER, LINGERING, TcpListener, TcpStream, system, wire};

/// A machine that a test plays packet by packet.
pub struct Stranger {
    address: Ipv4Address,
    card: EthernetAddress,
}

/// A packet that a stranger was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The port of the stranger.
    pub port: u16,
    pub control: TcpControl,
    number: TcpSeqNumber,
    ack: Option<TcpSeqNumber>,
}

/// The sequence number of each of its first packets.
pub const FIRST: TcpSeqNumber = TcpSeqNumber(1000);

impl Told {
    /// Returns true if it is this kind of packet to this port.
    pub fn is_packet(&self, port: u16, control: TcpControl) -> bool {
        (self.port, self.control) == (port, control)
    }
}

impl Stranger {
    /// Sets up a listener on port 80, and a stranger that has asked for its card.
    pub fn set_up() -> (Net, TcpListener, Self) {
        let mut net = Net::new();
        let listener = net.listen(80);
        (net, listener, Self::new())
    }

    /// Makes a stranger that names its card, by asking for ours as a machine does before it connects.
    pub fn new() -> Self {
        let stranger = Self::silent(200);
        let asks = ArpRepr::EthernetIpv4 {
            operation: ArpOperation::Request,
            source_hardware_addr: stranger.card,
            source_protocol_addr: stranger.address,
            target_hardware_addr: EthernetAddress([0; 6]),
            target_protocol_addr: own(),
        };
        let packet = stranger.frame(EthernetProtocol::Arp, asks.buffer_len(), |payload| {
            asks.emit(&mut ArpPacket::new_unchecked(payload));
        });
        with_wire(|wire| wire.inject(packet));
        stranger
    }

    /// Makes a stranger that does not name its card, and does not answer requests for it.
    fn silent(number: u8) -> Self {
        Self {
            address: Ipv4Address::new(10, 9, 8, number),
            card: EthernetAddress([2, 0, 0, 0, 1, number]),
        }
    }

    fn frame(
        &self,
        ethertype: EthernetProtocol,
        length: usize,
        emit: impl FnOnce(&mut [u8]),
    ) -> Vec<u8> {
        let ethernet = EthernetRepr {
            src_addr: self.card,
            dst_addr: EthernetAddress(wire::CARD),
            ethertype,
        };
        let mut packet = vec![0; ethernet.buffer_len() + length];
        ethernet.emit(&mut EthernetFrame::new_unchecked(&mut packet[..]));
        emit(&mut packet[ethernet.buffer_len()..]);
        packet
    }

    /// Sends a packet without data from one of its ports to one of ours.
    pub fn send(
        &self,
        (from, to): (u16, u16),
        control: TcpControl,
        number: TcpSeqNumber,
        ack: Option<TcpSeqNumber>,
    ) {
        let tcp = TcpRepr {
            src_port: from,
            dst_port: to,
            control,
            seq_number: number,
            ack_number: ack,
            window_len: 4096,
            window_scale: None,
            max_seg_size: None,
            sack_permitted: false,
            sack_ranges: [None; 3],
            timestamp: None,
            payload: &[],
        };
        let ip = Ipv4Repr {
            src_addr: self.address,
            dst_addr: own(),
            next_header: IpProtocol::Tcp,
            payload_len: tcp.buffer_len(),
            hop_limit: 64,
        };
        let sums = ChecksumCapabilities::default();
        let length = ip.buffer_len() + tcp.buffer_len();
        let packet = self.frame(EthernetProtocol::Ipv4, length, |payload| {
            ip.emit(&mut Ipv4Packet::new_unchecked(&mut *payload), &sums);
            tcp.emit(
                &mut TcpPacket::new_unchecked(&mut payload[ip.buffer_len()..]),
                &self.address.into(),
                &own().into(),
                &sums,
            );
        });
        with_wire(|wire| wire.inject(packet));
    }

    /// Sends the first packet of a connection.
    pub fn send_first(&self, from: u16, to: u16) {
        self.send((from, to), TcpControl::Syn, FIRST, None);
    }

    /// Completes a handshake with the answer to a packet. Acknowledges an end likewise, without ending its own stream.
    pub fn complete(&self, told: Told, to: u16) {
        let ack = Some(told.number + 1);
        self.send((told.port, to), TcpControl::None, FIRST + 1, ack);
    }
}

fn own() -> Ipv4Address {
    wire::OWN_ADDRESS.unwrap().parse().unwrap()
}

impl Net {
    /// Makes two rounds, and returns the packets sent to strangers.
    pub fn told(&mut self) -> Vec<Told> {
        self.rounds(2);
        with_wire(|wire| wire.sent_to_strangers())
            .iter()
            .filter_map(|packet| {
                let frame = EthernetFrame::new_checked(&packet[..]).unwrap();
                if frame.ethertype() != EthernetProtocol::Ipv4 {
                    return None;
                }
                let ip = Ipv4Packet::new_checked(frame.payload()).unwrap();
                let (from, to) = (ip.src_addr().into(), ip.dst_addr().into());
                let tcp = TcpPacket::new_checked(ip.payload()).unwrap();
                let tcp =
                    TcpRepr::parse(&tcp, &from, &to, &ChecksumCapabilities::default()).unwrap();
                Some(Told {
                    port: tcp.dst_port,
                    control: tcp.control,
                    number: tcp.seq_number,
                    ack: tcp.ack_number,
                })
            })
            .collect()
    }

    /// Connects a stranger from each of these ports.
    pub fn come(&mut self, stranger: &Stranger, from: impl Iterator<Item = u16>, to: u16) {
        let from: Vec<_> = from.collect();
        // As many as the poller receives in a round.
        for ports in from.chunks(32) {
            ports.iter().for_each(|port| stranger.send_first(*port, to));
            let told = self.told();
            for told in &told {
                assert_eq!(told.control, TcpControl::Syn);
                stranger.complete(*told, to);
            }
            let answered: Vec<_> = told.iter().map(|told| told.port).collect();
            assert_eq!(answered, ports);
        }
        assert_eq!(self.told(), []);
    }

    /// Begins a connection from this port, and returns the answer.
    fn half_open(&mut self, stranger: &Stranger, port: u16) -> Told {
        stranger.send_first(port, 80);
        self.told()[0]
    }

    /// Begins connections from these ports, one a round.
    fn fill_backlog(&mut self, stranger: &Stranger, ports: RangeInclusive<u16>) {
        for port in ports {
            stranger.send_first(port, 80);
            self.round();
        }
        self.told();
        assert_eq!(stack::sockets(), BACKLOG);
    }

    fn accept(&mut self, listener: &TcpListener) -> (TcpStream, SocketAddr) {
        self.done(listener.accept()).unwrap()
    }
}

/// The port of the last connection that a full backlog holds.
const LAST: u16 = BACKLOG as u16;

/// Ports of a stranger.
pub fn ports(n: usize) -> impl Iterator<Item = u16> {
    (1..).take(n)
}

#[test]
fn rule_2_full_backlog_refuses_connections_until_one_is_accepted() {
    let (mut net, listener, stranger) = Stranger::set_up();
    net.come(&stranger, ports(BACKLOG), 80);
    assert_eq!(stack::sockets(), BACKLOG);
    stranger.send_first(5000, 80);
    assert_eq!(net.told(), []);
    assert_eq!(stack::sockets(), BACKLOG);
    let (first, peer) = net.accept(&listener);
    assert_eq!(peer.port(), 1, "in the order in which they came");
    stranger.send_first(5000, 80);
    assert_eq!(net.told()[0].control, TcpControl::Syn);
    assert_eq!(stack::sockets(), BACKLOG + 1);
    drop(first);
}

/// The peer acknowledges our end and does not end itself.
#[test]
fn rule_4_peer_that_does_not_end_is_reset() {
    let (mut net, listener, stranger) = Stranger::set_up();
    net.come(&stranger, 1..2, 80);
    drop(net.accept(&listener));
    let told = net.told();
    let [end] = told[..] else {
        panic!("it was told {told:?}");
    };
    assert_eq!(end.control, TcpControl::Fin);
    stranger.complete(end, 80);
    assert_eq!(net.told(), []);
    system::pass(LINGER - Duration::from_millis(20));
    assert_eq!(net.told(), [], "before its time");
    assert_eq!(stack::sockets(), 1);
    system::pass(Duration::from_millis(20));
    net.rounds(10);
    let reset = Told {
        port: 1,
        control: TcpControl::Rst,
        number: end.number + 1,
        ack: Some(FIRST + 1),
    };
    assert_eq!(net.told(), [reset]);
    assert_eq!(stack::sockets(), 0);
}

#[test]
fn rule_4_oldest_of_too_many_lingering_connections_are_reset() {
    let (mut net, listener, stranger) = Stranger::set_up();
    net.come(&stranger, ports(LINGERING + 2), 80);
    for _ in 0..LINGERING + 2 {
        drop(net.done(listener.accept()).unwrap());
    }
    net.rounds(10);
    let resets: Vec<_> = net
        .told()
        .into_iter()
        .filter(|told| told.control == TcpControl::Rst)
        .map(|told| told.port)
        .collect();
    assert_eq!(resets, [1, 2]);
    assert_eq!(stack::sockets(), LINGERING);
}

/// First packets without a handshake, from machines that do not answer: a genuine peer still connects at once.
#[test]
fn rule_5_flood_keeps_no_genuine_peer_out() {
    let mut net = Net::new();
    let listener = net.listen(80);
    // So that our card is known, like that of a gateway: smoltcp asks for one address a second.
    drop(net.pair(&listener, 80));
    net.rounds(50);
    assert_eq!(stack::sockets(), 0);
    for number in 0..3 * BACKLOG {
        let stranger = Stranger::silent(50 + (number % 100) as u8);
        stranger.send_first(1 + number as u16, 80);
        if number % 32 == 0 {
            net.round();
        }
    }
    net.rounds(20);
    assert_eq!(stack::sockets(), BACKLOG);
    let mut connects = Begun::new(TcpStream::connect(here(80)));
    connects.wait();
    net.rounds(20);
    let Poll::Ready(Ok(connected)) = connects.poll() else {
        panic!("the genuine peer is kept out");
    };
    let (accepted, _) = net.accept(&listener);
    net.assert_both_directions_work(&connected, &accepted);
}

/// A handshake may take until a full backlog of others has begun after it.
#[test]
fn rule_5_oldest_half_open_connection_makes_room() {
    let (mut net, listener, stranger) = Stranger::set_up();
    let first = net.half_open(&stranger, 1);
    let second = net.half_open(&stranger, 2);
    net.fill_backlog(&stranger, 3..=LAST + 1);
    // One more than there is room for has come, and not two.
    stranger.complete(second, 80);
    assert_eq!(net.told(), []);
    assert_eq!(net.accept(&listener).1.port(), 2);
    stranger.complete(first, 80);
    let told = net.told();
    assert!(told.iter().any(|told| told.is_packet(1, TcpControl::Rst)));
    let mut accepts = Begun::new(listener.accept());
    assert!(accepts.poll().is_pending(), "the others stay half-open");
}

/// A connection that was reset makes room before one that may still complete.
#[test]
fn rule_5_reset_connection_makes_room_first() {
    let (mut net, listener, stranger) = Stranger::set_up();
    let first = net.half_open(&stranger, 1);
    net.fill_backlog(&stranger, 2..=LAST);
    // In one round, before an accept looks.
    stranger.send((LAST, 80), TcpControl::Rst, FIRST + 1, None);
    stranger.send_first(5000, 80);
    net.round();
    stranger.complete(first, 80);
    net.rounds(3);
    assert_eq!(net.accept(&listener).1.port(), 1);
}

/// Not even before an accept has looked.
#[test]
fn rule_5_established_connection_is_not_driven_out() {
    let (mut net, listener, stranger) = Stranger::set_up();
    let first = net.half_open(&stranger, 1);
    net.fill_backlog(&stranger, 2..=LAST);
    // In one round.
    stranger.complete(first, 80);
    stranger.send_first(5000, 80);
    net.rounds(3);
    assert_eq!(net.accept(&listener).1.port(), 1);
    assert_eq!(stack::sockets(), BACKLOG);
}

#[test]
fn rule_5_handshake_is_reset_after_its_time() {
    let (mut net, listener, stranger) = Stranger::set_up();
    let first = net.half_open(&stranger, 1);
    let second = net.half_open(&stranger, 2);
    system::pass(HANDSHAKE - Duration::from_millis(20));
    net.told();
    stranger.complete(first, 80);
    assert_eq!(net.told(), []);
    system::pass(Duration::from_millis(20));
    net.rounds(10);
    assert_eq!(stack::sockets(), 1);
    assert!(net.told().last().unwrap().is_packet(2, TcpControl::Rst));
    stranger.complete(second, 80);
    let told = net.told();
    assert!(told[0].is_packet(2, TcpControl::Rst));
    // An established connection has no such limit.
    let (accepted, peer) = net.accept(&listener);
    assert_eq!(peer.port(), 1);
    system::pass(HANDSHAKE + Duration::from_millis(20));
    net.rounds(10);
    assert!(accepted.peer_addr().is_some());
}

/// The memory of the half-open connection that makes room is enough.
#[test]
fn rule_5_oldest_half_open_connection_makes_room_without_memory() {
    let (mut net, listener, stranger) = Stranger::set_up();
    for port in 1..=3 {
        stranger.send_first(port, 80);
    }
    assert_eq!(net.told().len(), 3);
    system::set_free(0);
    stranger.send_first(4, 80);
    let told = net.told();
    assert!(told[0].is_packet(4, TcpControl::Syn));
    assert_eq!(stack::sockets(), 3);
    stranger.complete(told[0], 80);
    net.told();
    let (_, peer) = net.accept(&listener);
    assert_eq!(peer.port(), 4);
}
