//! The names and stack sizes of the domains, for the code that starts and names their workers.

use axcoop::{DOMAINS, DomainId};
use kspin::SpinNoIrq;

/// The default stack size of a worker.
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

/// Stores the name and the stack size of a domain.
pub(crate) fn say(id: DomainId, name: &'static str, stack_bytes: usize) {
    SAID.lock()[id.index()] = Said { name, stack_bytes };
}

/// Returns the name of a domain, empty if it was never opened.
pub fn name(id: DomainId) -> &'static str {
    SAID.lock()[id.index()].name
}

/// Returns the stack size of its workers.
pub(crate) fn stack_bytes(id: DomainId) -> usize {
    SAID.lock()[id.index()].stack_bytes
}
