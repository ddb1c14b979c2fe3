//! The rules of `stack.rs` about strangers, who are played packet by packet: they do what no stack does.

use std::net::SocketAddr;
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
use crate::stack::{self, on_wire};
use crate::{BACKLOG, HANDSHAKE, LINGER, LINGERING, TcpListener, TcpStream, system, wire};

/// A machine of which nobody knows anything.
pub struct Stranger {
    address: Ipv4Address,
    card: EthernetAddress,
}

/// What it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// To this port.
    pub port: u16,
    pub control: TcpControl,
    number: TcpSeqNumber,
    ack: Option<TcpSeqNumber>,
}

/// The number of each of its first packets.
pub const FIRST: TcpSeqNumber = TcpSeqNumber(1000);

impl Stranger {
    /// One that says who it is, as who is about to connect does to find us.
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
        on_wire(|wire| wire.comes(packet));
        stranger
    }

    /// One that does not, and does not answer whoever asks.
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

    /// It sends a packet without data from one of its ports to one of ours.
    pub fn sends(
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
        on_wire(|wire| wire.comes(packet));
    }

    /// The first packet of a connection.
    pub fn begins(&self, from: u16, to: u16) {
        self.sends((from, to), TcpControl::Syn, FIRST, None);
    }

    /// The last one of a handshake, after what it was told then.
    pub fn completes(&self, told: Told, to: u16) {
        let ack = Some(told.number + 1);
        self.sends((told.port, to), TcpControl::None, FIRST + 1, ack);
    }

    /// It acknowledges what it was told, an end, and does not end itself.
    fn acknowledges(&self, told: Told, to: u16) {
        self.completes(told, to);
    }
}

fn own() -> Ipv4Address {
    wire::OWN_ADDRESS.unwrap().parse().unwrap()
}

impl Net {
    /// What strangers are told in some rounds.
    pub fn told(&mut self) -> Vec<Told> {
        self.rounds(2);
        on_wire(|wire| wire.sent_to_strangers())
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

    /// The stranger connects from each of these ports.
    pub fn come(&mut self, stranger: &Stranger, from: impl Iterator<Item = u16>, to: u16) {
        let from: Vec<_> = from.collect();
        // As many as the poller takes in at a time.
        for ports in from.chunks(32) {
            ports.iter().for_each(|port| stranger.begins(*port, to));
            let told = self.told();
            for told in &told {
                assert_eq!(told.control, TcpControl::Syn);
                stranger.completes(*told, to);
            }
            let answered: Vec<_> = told.iter().map(|told| told.port).collect();
            assert_eq!(answered, ports);
        }
        assert_eq!(self.told(), []);
    }

    fn accept(&mut self, listener: &TcpListener) -> (TcpStream, SocketAddr) {
        self.done(listener.accept()).unwrap()
    }
}

/// Ports of a stranger.
pub fn ports(n: usize) -> impl Iterator<Item = u16> {
    (1..).take(n)
}

#[test]
fn rule_2_nobody_comes_in_beyond_the_backlog_until_one_is_accepted() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let stranger = Stranger::new();
    net.come(&stranger, ports(BACKLOG), 80);
    assert_eq!(stack::sockets(), BACKLOG);
    stranger.begins(5000, 80);
    assert_eq!(net.told(), []);
    assert_eq!(stack::sockets(), BACKLOG);
    let (first, peer) = net.accept(&listener);
    assert_eq!(peer.port(), 1, "in the order in which they came");
    stranger.begins(5000, 80);
    assert_eq!(net.told()[0].control, TcpControl::Syn);
    assert_eq!(stack::sockets(), BACKLOG + 1);
    drop(first);
}

/// Its peer acknowledges our end, and does not end: it is told that nobody is there any more.
#[test]
fn rule_4_a_peer_that_does_not_end_is_reset() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let stranger = Stranger::new();
    net.come(&stranger, 1..2, 80);
    drop(net.accept(&listener));
    let told = net.told();
    let [end] = told[..] else {
        panic!("it was told {told:?}");
    };
    assert_eq!(end.control, TcpControl::Fin);
    stranger.acknowledges(end, 80);
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
fn rule_4_of_too_many_that_linger_the_oldest_are_reset() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let stranger = Stranger::new();
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

/// First packets that nothing follows, of machines that nobody finds: who means it comes in, and at once.
#[test]
fn rule_5_a_flood_keeps_nobody_out() {
    let mut net = Net::new();
    let listener = net.listen(80);
    // So that its card is known, as that of a gateway is: smoltcp asks for one a second.
    drop(net.pair(&listener, 80));
    net.rounds(50);
    assert_eq!(stack::sockets(), 0);
    for number in 0..3 * BACKLOG {
        let stranger = Stranger::silent(50 + (number % 100) as u8);
        stranger.begins(1 + number as u16, 80);
        if number % 32 == 0 {
            net.round();
        }
    }
    net.rounds(20);
    assert_eq!(stack::sockets(), BACKLOG);
    let mut connects = Begun::new(TcpStream::connect(here(80)));
    assert!(connects.poll().is_pending());
    net.rounds(20);
    let Poll::Ready(connected) = connects.poll() else {
        panic!("it is kept out");
    };
    let connected = connected.unwrap();
    let (accepted, _) = net.accept(&listener);
    net.goes_on(&connected, &accepted);
}

/// How long who connects may take: until so many others have begun after it.
#[test]
fn rule_5_the_oldest_half_open_one_makes_room() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let stranger = Stranger::new();
    stranger.begins(1, 80);
    let first = net.told()[0];
    stranger.begins(2, 80);
    let second = net.told()[0];
    for port in 3..=BACKLOG as u16 + 1 {
        stranger.begins(port, 80);
        net.round();
    }
    assert_eq!(stack::sockets(), BACKLOG);
    net.told();
    // One more than there is room for has come, and not two.
    stranger.completes(second, 80);
    assert_eq!(net.told(), []);
    assert_eq!(net.accept(&listener).1.port(), 2);
    stranger.completes(first, 80);
    let told = net.told();
    let reset = told
        .iter()
        .find(|told| told.port == 1)
        .expect("it is to know");
    assert_eq!(reset.control, TcpControl::Rst);
    let mut accepts = Begun::new(listener.accept());
    assert!(accepts.poll().is_pending(), "those that are in stay in");
}

/// What was never a connection makes room before what may become one.
#[test]
fn rule_5_what_was_reset_makes_room_first() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let stranger = Stranger::new();
    stranger.begins(1, 80);
    let first = net.told()[0];
    for port in 2..=BACKLOG as u16 {
        stranger.begins(port, 80);
        net.round();
    }
    net.told();
    assert_eq!(stack::sockets(), BACKLOG);
    // In one round, before anybody looks.
    let last = BACKLOG as u16;
    stranger.sends((last, 80), TcpControl::Rst, FIRST + 1, None);
    stranger.begins(5000, 80);
    net.round();
    stranger.completes(first, 80);
    net.rounds(3);
    assert_eq!(net.accept(&listener).1.port(), 1);
}

/// Also before anybody has looked at who is in.
#[test]
fn rule_5_who_is_in_is_not_driven_out() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let stranger = Stranger::new();
    stranger.begins(1, 80);
    let first = net.told()[0];
    for port in ports(BACKLOG).skip(1) {
        stranger.begins(port, 80);
        net.round();
    }
    net.told();
    assert_eq!(stack::sockets(), BACKLOG);
    // In one round.
    stranger.completes(first, 80);
    stranger.begins(5000, 80);
    net.rounds(3);
    assert_eq!(net.accept(&listener).1.port(), 1);
    assert_eq!(stack::sockets(), BACKLOG);
}

#[test]
fn rule_5_a_handshake_has_its_time() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let stranger = Stranger::new();
    stranger.begins(1, 80);
    let first = net.told()[0];
    stranger.begins(2, 80);
    let second = net.told()[0];
    system::pass(HANDSHAKE - Duration::from_millis(20));
    net.told();
    stranger.completes(first, 80);
    assert_eq!(net.told(), []);
    system::pass(Duration::from_millis(20));
    net.rounds(10);
    assert_eq!(stack::sockets(), 1);
    let told = net.told();
    let last = told.last().map(|told| (told.port, told.control));
    assert_eq!(last, Some((2, TcpControl::Rst)));
    stranger.completes(second, 80);
    let told = net.told();
    assert_eq!((told[0].port, told[0].control), (2, TcpControl::Rst));
    // Once it is in it has as long as any.
    let (accepted, peer) = net.accept(&listener);
    assert_eq!(peer.port(), 1);
    system::pass(HANDSHAKE + Duration::from_millis(20));
    net.rounds(10);
    assert!(accepted.peer_addr().is_some());
}

/// While a half-open one can make room, its memory is enough.
#[test]
fn rule_5_without_memory_the_oldest_half_open_one_makes_room() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let stranger = Stranger::new();
    for port in 1..=3 {
        stranger.begins(port, 80);
    }
    assert_eq!(net.told().len(), 3);
    system::set_free(0);
    stranger.begins(4, 80);
    let told = net.told();
    assert_eq!((told[0].port, told[0].control), (4, TcpControl::Syn));
    assert_eq!(stack::sockets(), 3);
    stranger.completes(told[0], 80);
    net.told();
    let (_, peer) = net.accept(&listener);
    assert_eq!(peer.port(), 4);
}
