//! Local ports of outgoing connections.
//!
//! Rules:
//! 1. Each port is the one after the last, among the dynamic ports (RFC 6335, 49152 to 65535), in a circle.
//! 2. A port in use is skipped. If all are in use, there is none.

const FIRST: u16 = 0xc000;

pub(crate) struct Ephemeral {
    next: u16,
}

impl Ephemeral {
    pub(crate) const fn new() -> Self {
        Self { next: FIRST }
    }

    pub(crate) fn take(&mut self, is_used: impl Fn(u16) -> bool) -> Option<u16> {
        (FIRST..=u16::MAX).find_map(|_| {
            let port = self.next;
            self.next = port.checked_add(1).unwrap_or(FIRST);
            (!is_used(port)).then_some(port)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_1_ports_are_taken_in_a_circle() {
        let mut ports = Ephemeral::new();
        assert!((FIRST..=u16::MAX).all(|port| ports.take(|_| false) == Some(port)));
        assert_eq!(ports.take(|_| false), Some(FIRST));
    }

    #[test]
    fn rule_2_used_port_is_skipped() {
        let mut ports = Ephemeral::new();
        assert_eq!(ports.take(|port| port <= FIRST + 1), Some(FIRST + 2));
        assert_eq!(ports.take(|port| port != FIRST + 1), Some(FIRST + 1));
        assert_eq!(ports.take(|_| true), None);
        assert_eq!(ports.take(|_| false), Some(FIRST + 2));
    }
}
