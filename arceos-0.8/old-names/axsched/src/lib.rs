//! The policy of the threads of a test program: one of the classes of `ax-task` 0.8, or PBG as a guest.
//!
//! | feature | policy of main and of all that it spawns |
//! |---|---|
//! | none, `stock_fifo` | FIFO, all of one rank |
//! | `stock_rr` | RR, all of one rank, with the quantum of `ax-task`, 100 ms |
//! | `stock_cfs` | fair, which is EEVDF, all of one weight |
//! | `sched_pbg` | that of `pbg-guest` |

#![no_std]

#[cfg(feature = "not_here")]
compile_error!(
    "ax-task 0.8 takes no scheduler: allowed are stock_fifo, stock_rr, stock_cfs, sched_pbg"
);

/// The name of the policy in result lines.
pub const NAME: &str = if cfg!(feature = "sched_pbg") {
    "pbg"
} else if cfg!(feature = "stock_rr") {
    "stock-rr"
} else if cfg!(feature = "stock_cfs") {
    "stock-fair"
} else {
    "stock-fifo"
};

/// Returns the policy of main and of the threads that it spawns. PBG begins with fair threads, which is the
/// default of `ax-task`.
#[cfg(target_os = "none")]
pub fn policy() -> ax_task::sched::SchedulePolicy {
    use ax_task::sched::{RtPriority, SchedulePolicy};

    // All other real-time threads are those of the system. One of them has the lowest rank, too: it calls the
    // timers that a thread asks for, and these programs ask for none.
    let rank = RtPriority::new(1).expect("1 to 99 are ranks");
    match NAME {
        "stock-fifo" => SchedulePolicy::fifo(rank),
        "stock-rr" => SchedulePolicy::round_robin(rank),
        _ => SchedulePolicy::default(),
    }
}
