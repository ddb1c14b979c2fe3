//! Names and messages that break a rule.

fn takes_in(who: u8) {}

fn closes(&self) -> bool {}

fn drain_inbox() {}

/// Whether the queue is empty.
fn is_empty() -> bool {}

/// Rule 5.
fn pick() {}

#[test]
fn who_sleeps_is_woken() {}

#[test]
fn what_waits_runs_next() {}

#[test]
fn lost_ipi_is_recovered_by_next_tick() {}

fn refuse() {
    panic!("nobody waits for the task {task} any more");
    panic!("Of the tasks that wait none is ready");
    panic!("SMP={smp}: must be 1 to 8 CPUs, a user who has more must patch");
}
