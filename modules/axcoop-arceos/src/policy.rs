//! What the scheduler is told of a worker, where it wants to know: under `sched_coop`.

use axcoop::DomainId;

/// The calling task serves this domain from now on. Under any policy but `sched_coop` this is nothing.
pub fn serves(domain: DomainId) {
    if let Some(coop) = axsched::coop_of(&**axtask::current()) {
        coop.serve(domain);
    }
}

/// It serves none any more, and has the priority that it had before.
pub fn serves_none() {
    if let Some(coop) = axsched::coop_of(&**axtask::current()) {
        coop.serves_none();
    }
}
