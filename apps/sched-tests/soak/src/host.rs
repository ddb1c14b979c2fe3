//! On the host there is no scheduler of ours.

/// Says how to run it on a guest, and fails.
pub fn main() {
    eprintln!("soak watches a guest: make soak LAB='--minutes 1' SMP=4 FEATURES=sched_rr");
    std::process::exit(1);
}
