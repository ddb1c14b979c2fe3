//! What the scheduler is told of a worker, where it wants to know: under `sched_coop`.

use axcoop::DomainId;

/// The calling task serves this domain from now on. Under any policy but `sched_coop` this is
/// nothing.
pub fn serves(domain: DomainId) {
    let _ = domain;
}
