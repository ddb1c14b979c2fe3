//! Measures the time stamp counter's rate against the monotonic clock and
//! prints it in Hz, rounded to the MHz (the unit the guest's platform keeps).
//! A plain file for rustc: it runs before there is anything to run cargo on.

use std::arch::x86_64::_rdtsc;
use std::time::{Duration, Instant};

fn main() {
    // The median of three, in case something else has the CPU between the two
    // reads of one end. 0.1 s each: a delay of 10 us is then an error of 0.01 %.
    let mut rates = [(); 3].map(|()| measure(Duration::from_millis(100)));
    rates.sort_unstable();
    println!("{}", (rates[1] + 500_000) / 1_000_000 * 1_000_000);
}

fn measure(span: Duration) -> u64 {
    let (start, start_tsc) = (Instant::now(), tsc());
    std::thread::sleep(span);
    let (elapsed, ticks) = (start.elapsed(), tsc() - start_tsc);
    (u128::from(ticks) * 1_000_000_000 / elapsed.as_nanos()) as u64
}

fn tsc() -> u64 {
    // SAFETY: every x86_64 CPU has the instruction, and it only reads.
    unsafe { _rdtsc() }
}
