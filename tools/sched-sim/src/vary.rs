//! Random changes of a workload: every task computes for longer or shorter than recorded.

use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};

use crate::workload::Workload;

/// Returns the workload with each task's computing made longer or shorter by a factor of its own.
///
/// `spread` is how much longer at most: 0.5 is up to 1.5 times as long. A task is as likely to
/// take longer as shorter: the factor is either even between 1 and 1 + `spread`, or one over
/// such a number. Yields and waits stay as many, and waits as long. The same `seed` gives the
/// same workload on any machine.
pub fn varied(workload: &Workload, spread: f64, seed: u64) -> Workload {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut varied = workload.clone();
    for job in &mut varied.jobs {
        let longer = 1.0 + spread * even(random.next_u64());
        job.scale(match random.next_u64() >> 63 {
            0 => longer,
            _ => 1.0 / longer,
        });
    }
    varied
}

/// Returns the time from a tick to the begin of a run with this seed, where a tick has `tick_ns` nanoseconds.
pub fn phase_ns(tick_ns: u64, seed: u64) -> u64 {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    // So that it differs from the first number of `varied`.
    random.jump();
    (even(random.next_u64()) * tick_ns as f64) as u64
}

/// Returns a number from 0 to 1, evenly distributed.
fn even(random: u64) -> f64 {
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Arrival, Job, Then, Work};

    fn workload(tasks: usize) -> Workload {
        let work = Work::new(2, 1e6, Then::Yield);
        let job = Job {
            name: "job".to_owned(),
            label: None,
            parent: None,
            arrival: Arrival::After(0.0),
            steps: vec![work; 3],
        };
        Workload {
            gc_look_ns: None,
            jobs: vec![job; tasks],
        }
    }

    #[test]
    fn factor_is_as_likely_above_1_as_below_and_within_the_spread() {
        let many = workload(10_000);
        for spread in [0.0, 0.25, 3.0] {
            let varied = varied(&many, spread, 7);
            let factors: Vec<f64> = varied.jobs.iter().map(|job| job.run_ns() / 6e6).collect();
            let within = 1.0 / (1.0 + spread) - 1e-9..=1.0 + spread + 1e-9;
            assert!(factors.iter().all(|factor| within.contains(factor)));
            if spread > 0.0 {
                let above = factors.iter().filter(|factor| **factor > 1.0).count();
                assert!((4_800..5_200).contains(&above), "{above}");
                let mean = factors.iter().filter(|f| **f > 1.0).sum::<f64>() / above as f64;
                assert!((mean / (1.0 + spread / 2.0) - 1.0).abs() < 0.02, "{mean}");
            }
            assert!(varied.jobs.iter().all(|job| {
                let factor = job.steps[0].run_ns;
                job.steps
                    .iter()
                    .all(|work| work.run_ns == factor && work.times == 2)
            }));
        }
    }

    #[test]
    fn same_seed_gives_the_same_and_another_something_else() {
        let [a, b, c] = [1, 1, 2].map(|seed| varied(&workload(5), 0.5, seed));
        assert_eq!(a, b);
        assert_ne!(a, c);
        assert_eq!(phase_ns(1_000, 1), phase_ns(1_000, 1));
        let phases: Vec<_> = (0..1_000).map(|seed| phase_ns(1_000, seed)).collect();
        assert!(phases.iter().all(|phase| *phase < 1_000));
        let mean = phases.iter().sum::<u64>() / 1_000;
        assert!((450..550).contains(&mean), "{mean}");
    }
}
