//! ArceOS's network card.

use alloc::vec::Vec;

use axdriver::AxNetDevice;
use axdriver::prelude::{NetBufPtr, NetDriverOps};

/// The address of the image, as given to the build (`AX_IP`).
pub const OWN_ADDRESS: Option<&str> = option_env!("AX_IP");
/// The address of the gateway, as given to the build (`AX_GW`).
pub const GATEWAY: Option<&str> = option_env!("AX_GW");

/// Why there is no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoNetwork {
    /// The machine has no card that ArceOS knows.
    NoCard,
    /// The image was built without an address (`AX_IP`), or with one that is not IPv4.
    NoAddress,
}

impl core::fmt::Display for NoNetwork {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NoCard => "no network card; with this kit: make serve",
            Self::NoAddress => "AX_IP and AX_GW were no IPv4 addresses when this was built",
        })
    }
}

impl core::error::Error for NoNetwork {}

/// The network card of the machine.
pub struct Wire(AxNetDevice);

impl Wire {
    /// Finds the card on the bus and takes it.
    pub fn find() -> Result<Self, NoNetwork> {
        let card = axdriver::init_drivers().net.take_one();
        card.map(Self).ok_or(NoNetwork::NoCard)
    }

    pub fn address(&self) -> [u8; 6] {
        self.0.mac_address().0
    }

    /// Returns true if the card would take a packet.
    pub fn has_room(&mut self) -> bool {
        self.0.recycle_tx_buffers().is_ok() && self.0.can_transmit()
    }

    /// Receives the next packet, if there is one. It is copied, so that the device has its buffer back at once.
    pub fn receive(&mut self, into: &mut Vec<u8>) -> bool {
        let Ok(received) = self.0.receive() else {
            return false;
        };
        into.clear();
        into.extend_from_slice(received.packet());
        self.0
            .recycle_rx_buffer(received)
            .expect("it is the device's own");
        true
    }

    /// Sends a packet of this length, which `fill` writes. The card must have room.
    pub fn send<R>(&mut self, length: usize, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        let filled = self.0.alloc_tx_buffer(length).map(|mut buffer: NetBufPtr| {
            let result = fill(buffer.packet_mut());
            // If the device does not take the packet, it is lost, as on a wire.
            let _ = self.0.transmit(buffer);
            result
        });
        filled.expect("there is room")
    }
}
