//! The cost of the instrument. Two tasks yield to each other, n times and 2n times, with a meter
//! and without. The differences are the price of a context switch and that of the meter in it. With
//! `TRACE=` they include the trace. Under icount a nanosecond is an instruction.

use sched_tests_common::platform::{Gate, await_tick_phase, now_ns, open_account, println, spawn};

use super::verdict;

const TASKS: u64 = 2;
const YIELDS: u64 = 100_000;

/// Runs the case.
pub fn run() {
    await_tick_phase();
    let plain_ps = per_switch_ps(plain);
    let metered_ps = per_switch_ps(metered);
    let row = |what, ps: u64| println!("{what:32}{:>6}.{:03} ns", ps / 1_000, ps % 1_000);
    row("a context switch without a meter", plain_ps);
    row("a context switch with a meter", metered_ps);
    row("the meter in it", metered_ps.saturating_sub(plain_ps));
    println!("");
    verdict(0 < plain_ps && plain_ps <= metered_ps);
}

/// Returns the time of a switch in picoseconds, because timer ticks add a fraction of a nanosecond.
fn per_switch_ps(run: fn(u64)) -> u64 {
    let time = |yields| {
        let begin_ns = now_ns();
        run(yields);
        now_ns() - begin_ns
    };
    let (short_ns, long_ns) = (time(YIELDS), time(2 * YIELDS));
    (long_ns - short_ns) * 1_000 / (TASKS * YIELDS)
}

fn plain(yields: u64) {
    let tasks = [(); TASKS as usize].map(|()| axtask::spawn(move || yield_often(yields)));
    for task in tasks {
        task.join();
    }
}

fn metered(yields: u64) {
    open_account(); // and with `TRACE=events` the log
    let gate = Gate::opened();
    let tasks = [(); TASKS as usize].map(|()| spawn("yields", &gate, move || yield_often(yields)));
    for task in tasks {
        task.join();
    }
}

fn yield_often(yields: u64) {
    for _ in 0..yields {
        axtask::yield_now();
    }
}
