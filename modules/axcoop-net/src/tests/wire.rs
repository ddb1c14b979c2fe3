//! A cable from the card to itself: what this machine sends to its own address comes back. What it sends to
//! another card is a stranger's, whom a test plays.

use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

// Of no machines that there are.
pub const OWN_ADDRESS: Option<&str> = Some("10.9.8.7");
pub const GATEWAY: Option<&str> = Some("10.9.8.1");

/// There is always one here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoNetwork {
    /// See above.
    NoAddress,
}

/// The card's own address.
pub const CARD: [u8; 6] = [2, 0, 0, 0, 0, 1];

#[derive(Default)]
pub struct Wire {
    comes: VecDeque<Vec<u8>>,
    to_strangers: Vec<Vec<u8>>,
}

impl Wire {
    pub fn find() -> Result<Self, NoNetwork> {
        Ok(Self::default())
    }

    pub fn address(&self) -> [u8; 6] {
        CARD
    }

    pub fn has_room(&mut self) -> bool {
        true
    }

    pub fn receive(&mut self, into: &mut Vec<u8>) -> bool {
        let Some(packet) = self.comes.pop_front() else {
            return false;
        };
        *into = packet;
        true
    }

    pub fn send<R>(&mut self, length: usize, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut packet = vec![0; length];
        let result = fill(&mut packet);
        const TO_ALL: [u8; 6] = [255; 6];
        if packet[..6] == CARD || packet[..6] == TO_ALL {
            self.comes.push_back(packet);
        } else {
            self.to_strangers.push(packet);
        }
        result
    }

    /// A stranger sends this packet.
    pub fn comes(&mut self, packet: Vec<u8>) {
        self.comes.push_back(packet);
    }

    /// What strangers were sent since this was asked last.
    pub fn sent_to_strangers(&mut self) -> Vec<Vec<u8>> {
        core::mem::take(&mut self.to_strangers)
    }
}
