//! Tells the scheduler about workers, under `sched_coop`.

use axcoop::DomainId;

/// Tells the scheduler that the calling task serves this domain. Does nothing under any other policy than
/// `sched_coop`.
pub fn announce_domain(domain: DomainId) {
    if let Some(coop) = axsched::coop_of(&**axtask::current()) {
        coop.serve(domain);
    }
}

/// Tells the scheduler that the calling task serves no domain any more, and has its previous priority.
pub fn withdraw_domain() {
    if let Some(coop) = axsched::coop_of(&**axtask::current()) {
        coop.stop_serving();
    }
}
