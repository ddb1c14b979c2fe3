//! The rules of `sockets.rs`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::thread_local;
use std::vec::Vec;

use smoltcp::wire::TcpControl;

use super::strangers::{FIRST, Stranger, ports};
use super::{Net, here};
use crate::sockets::BESIDE;
use crate::stack;
use crate::{BACKLOG, Error, HEADROOM, RECEIVE_BUFFER, SEND_BUFFER, SOCKETS, TcpStream, system};

thread_local! {
    /// Bytes that this thread has allocated.
    static HELD: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, which counts bytes.
struct Counting;

// SAFETY: every call is handed on to `System` as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size() as isize);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as isize);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn rule_1_sockets_are_bounded() {
    let (mut net, listener, stranger) = Stranger::set_up();
    let mut accepted = Vec::new();
    for begin in (0..SOCKETS).step_by(BACKLOG) {
        let some = ports(SOCKETS).skip(begin).take(BACKLOG);
        net.come(&stranger, some, 80);
        for _ in begin..SOCKETS.min(begin + BACKLOG) {
            accepted.push(net.done(listener.accept()).unwrap().0);
        }
    }
    assert_eq!(stack::sockets(), SOCKETS);
    stranger.send_first(5000, 80);
    assert_eq!(net.told(), []);
    let connects = net.done(TcpStream::connect(here(81)));
    assert!(matches!(connects, Err(Error::TooManyOpenFiles)));
    assert_eq!(stack::sockets(), SOCKETS);
    // The others go on, and one that closes makes room.
    stranger.send((1, 80), TcpControl::Rst, FIRST + 1, None);
    net.rounds(3);
    drop(accepted.swap_remove(0));
    net.rounds(10);
    assert_eq!(stack::sockets(), SOCKETS - 1);
    stranger.send_first(5000, 80);
    let told = net.told();
    assert!(
        told.iter()
            .any(|told| told.is_packet(5000, TcpControl::Syn))
    );
}

#[test]
fn rule_2_first_packet_is_not_answered_without_memory() {
    let (mut net, _listener, stranger) = Stranger::set_up();
    net.told();
    for free in [0, HEADROOM, HEADROOM + RECEIVE_BUFFER + SEND_BUFFER] {
        system::set_free(free);
        let held = HELD.get();
        stranger.send_first(1, 80);
        net.round();
        assert!(HELD.get() - held < RECEIVE_BUFFER as isize, "{free}");
        assert_eq!(net.told(), [], "{free}");
        assert_eq!(stack::sockets(), 0);
    }
    // The stranger tries again.
    system::set_free(usize::MAX);
    stranger.send_first(1, 80);
    assert_eq!(net.told()[0].control, TcpControl::Syn);
}

#[test]
fn rule_2_connect_fails_without_memory() {
    let mut net = Net::new();
    system::set_free(HEADROOM);
    let connects = net.done(TcpStream::connect(here(80)));
    assert!(matches!(connects, Err(Error::NoMemory)));
    assert_eq!(stack::sockets(), 0);
}

/// The bytes asked for are for the socket and for all that its connection allocates later, and leave [`HEADROOM`] to the
/// rest of the system.
#[test]
fn rule_2_connection_takes_no_more_than_was_asked_for() {
    let (mut net, listener, stranger) = Stranger::set_up();
    net.told();
    let mut told = Vec::with_capacity(BACKLOG);
    for port in ports(BACKLOG) {
        let before = HELD.get();
        stranger.send_first(port, 80);
        net.round();
        let asked = system::asked();
        told.extend(net.told());
        let taken = (HELD.get() - before) as usize;
        // To the connections that are under way already, and to the rest of the system.
        let promised = usize::from(port - 1) * BESIDE + HEADROOM;
        assert!(
            taken + promised <= asked,
            "{port}: {taken} and {promised} of {asked} bytes"
        );
    }
    let half_open = HELD.get();
    told.iter().for_each(|told| stranger.complete(*told, 80));
    net.rounds(BACKLOG / 16);
    // Some packets were sent twice, because the handshakes took so long.
    net.told();
    let taken = (HELD.get() - half_open) as usize;
    let promised = BACKLOG * BESIDE;
    assert!(taken <= promised, "{taken} of {promised} bytes");
    drop((net.done(listener.accept()).unwrap(), told));
}
