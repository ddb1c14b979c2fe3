//! What the scheduler is told of a worker, where it wants to know: under `sched_coop`.

use axcoop::DomainId;

/// The calling task serves this domain from now on, to its end. Under any policy but `sched_coop`
/// this is nothing.
pub fn serves(domain: DomainId) {
    if let Some(coop) = axsched::coop_of(&**axtask::current()) {
        coop.serve(domain);
    }
}
