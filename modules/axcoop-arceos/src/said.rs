//! What is said of each domain when it is opened, for those that start and name its workers.

use axcoop::{DOMAINS, DomainId};
use kspin::SpinNoIrq;

/// The stack of a worker, if nothing else is said.
pub(crate) const STACK_BYTES: usize = 64 * 1024;

#[derive(Clone, Copy)]
struct Said {
    name: &'static str,
    stack_bytes: usize,
}

static SAID: SpinNoIrq<[Said; DOMAINS]> = SpinNoIrq::new(
    [Said {
        name: "",
        stack_bytes: STACK_BYTES,
    }; DOMAINS],
);

/// Remembers it.
pub(crate) fn say(id: DomainId, name: &'static str, stack_bytes: usize) {
    SAID.lock()[id.index()] = Said { name, stack_bytes };
}

/// The name of a domain, empty if it was never opened.
pub fn name(id: DomainId) -> &'static str {
    SAID.lock()[id.index()].name
}

/// The stack of each of its workers.
pub(crate) fn stack_bytes(id: DomainId) -> usize {
    SAID.lock()[id.index()].stack_bytes
}
