//! The part of the program that runs on a guest.

mod clock;
mod lock;
mod orders;
mod random;
mod record;
mod rounds;
mod summary;
mod task;
mod watch;

use axstd::println;

/// Runs the rounds and prints the summary.
pub fn main() {
    let orders = orders::orders();
    println!(
        "soak on {} CPUs, scheduler {}, seed {}, {} s\n",
        axhal::cpu_num(),
        summary::SCHED,
        orders.seed,
        orders.seconds,
    );
    #[cfg(feature = "balanced")]
    axsched_arceos::connect().expect("no other code has connected to IPIs");
    watch::start();
    let done = rounds::run(&orders);
    println!("{}", summary::line(&orders, &done));
}
