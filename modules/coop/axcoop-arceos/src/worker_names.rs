//! The names and stack sizes of the domains, for the code that starts and names their workers.

use axcoop::{DOMAINS, DomainId};
use kspin::SpinNoIrq;

/// The default stack size of a worker.
pub(crate) const STACK_BYTES: usize = 64 * 1024;

#[derive(Clone, Copy)]
struct Settings {
    name: &'static str,
    stack_bytes: usize,
}

static SETTINGS: SpinNoIrq<[Settings; DOMAINS]> = SpinNoIrq::new(
    [Settings {
        name: "",
        stack_bytes: STACK_BYTES,
    }; DOMAINS],
);

/// Stores the name and the stack size of a domain.
pub(crate) fn set(id: DomainId, name: &'static str, stack_bytes: usize) {
    SETTINGS.lock()[id.index()] = Settings { name, stack_bytes };
}

/// Returns the name of a domain, empty if it was never opened.
pub fn name(id: DomainId) -> &'static str {
    SETTINGS.lock()[id.index()].name
}

/// Returns the stack size of its workers.
pub(crate) fn stack_bytes(id: DomainId) -> usize {
    SETTINGS.lock()[id.index()].stack_bytes
}
