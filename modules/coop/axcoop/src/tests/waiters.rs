//! The rules of [`waiters`](crate::sync::waiters).

use core::ptr;
use std::pin::Pin;

use crate::sync::waiters::{NoTicket, Node, Tickets, WaitState};

/// Numbers that are the same in each run (xorshift64).
fn random(state: &mut u64, below: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % below
}

/// Compares the wait queue with a vector in the order of rule 2. No permit is lost or doubled, and each goes to the
/// first waiter.
#[test]
fn rules_1_to_5_permits_are_granted_as_by_a_sorted_list() {
    const N: usize = 40;
    let mut state = 0x5eed_5eed_5eed;
    for _ in 0..200 {
        let nodes: Pin<Box<[Node]>> = Box::into_pin((0..N).map(|n| Node::new(1 + n % 3)).collect());
        let wants = |n: usize| 1 + n % 3;
        let mut tickets = Tickets::new(3);
        // Waiters by level and arrival, and the permits that are granted and taken.
        let mut waits: Vec<(usize, usize, usize)> = Vec::new();
        let (mut arrivals, mut held, mut given, mut taken) = (0, 0, 3, 0);
        let mut granted: Vec<usize> = Vec::new();
        for turn in 0..400 {
            let n = random(&mut state, N as u64) as usize;
            let level = random(&mut state, 8) as usize;
            arrivals += 1;
            let node = &nodes[n];
            match (random(&mut state, 6), node.state()) {
                (0..3, WaitState::Apart) => match tickets.take(wants(n), level) {
                    Ok(()) => {
                        assert!(waits.iter().all(|&(first, ..)| level < first));
                        taken += wants(n);
                    }
                    Err(NoTicket::Closed) => assert!(tickets.is_closed()),
                    Err(NoTicket::Wait) => {
                        // SAFETY: the nodes outlive the tickets.
                        unsafe { tickets.wait(node, level) };
                        waits.push((level, arrivals, n));
                    }
                },
                (0..2, WaitState::Waits) => {
                    tickets.move_to(node, level);
                    waits.retain(|&(.., who)| who != n);
                    waits.push((level, arrivals, n));
                }
                (2, WaitState::Waits) => {
                    tickets.remove(node);
                    waits.retain(|&(.., who)| who != n);
                }
                (0, WaitState::Granted) => {
                    tickets.remove(node);
                    granted.retain(|&who| who != n);
                    held -= wants(n);
                }
                (_, WaitState::Granted) => {
                    tickets.end_wait(node);
                    granted.retain(|&who| who != n);
                    held -= wants(n);
                    taken += wants(n);
                }
                (_, WaitState::Refused) => tickets.end_wait(node),
                _ => {
                    tickets.give(1);
                    given += 1;
                }
            }
            if turn == 350 {
                tickets.close();
            }
            waits.sort();
            while let Some(node) = tickets.grant_first() {
                let (level, _, n) = waits.remove(0);
                assert!(ptr::eq(node, &nodes[n]), "rule 2");
                assert_eq!(node.level(), level);
                if node.state() == WaitState::Granted {
                    held += wants(n);
                    granted.push(n);
                } else {
                    assert!(turn >= 350, "rule 5");
                }
            }
            tickets.assert_valid();
            assert_eq!(tickets.free() + held + taken, given, "rule 1");
            if let Some(&(.., n)) = waits.first() {
                assert!(
                    tickets.free() < wants(n),
                    "rule 1: the first waiter lacks permits"
                );
                assert!(!tickets.is_closed(), "rule 5");
            }
        }
    }
}
