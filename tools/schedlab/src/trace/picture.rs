//! A [`Timeline`] in the bins that `gantt` draws, as narrow as a pixel.

use sched_tests_results::TraceLine;

use super::timeline::{Interval, State, Timeline};
use crate::record::{Phase, Traced};

/// More than a chart has columns.
const BINS: usize = 2_000;

/// Returns a phase with the times of its tasks in bins.
pub fn traced((phase, timeline): &(Phase, Timeline)) -> Traced {
    let bin_ns = timeline.end_ns.div_ceil(BINS as u64).max(1);
    let trace = |(states, task): (&Vec<Interval>, _)| {
        let bins_of = |is_it: fn(State) -> bool| bins(states, bin_ns, is_it);
        TraceLine {
            context: phase.run.context.clone(),
            task,
            bin_ns,
            run_ns: bins_of(|state| matches!(state, State::Running { .. })),
            blocked_ns: bins_of(|state| state == State::Blocked),
        }
    };
    let names = phase.tasks.iter().map(|task| task.task.clone());
    let traces = timeline.states().iter().zip(names).map(trace).collect();
    (phase.clone(), traces)
}

fn bins(states: &[Interval], bin_ns: u64, is_it: fn(State) -> bool) -> Vec<u64> {
    let mut bins = vec![0; BINS];
    for interval in states.iter().filter(|interval| is_it(interval.state)) {
        let mut from_ns = interval.from_ns;
        while from_ns < interval.to_ns {
            let bin = from_ns / bin_ns;
            let to_ns = ((bin + 1) * bin_ns).min(interval.to_ns);
            bins[bin as usize] += to_ns - from_ns;
            from_ns = to_ns;
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::timeline::tests::sample;

    #[test]
    fn bins_hold_all_time_of_a_state() {
        let states = &sample().states()[0];
        let is_running = |state| matches!(state, State::Running { .. });
        let bins_of = |bin_ns, is_it| -> Vec<u64> {
            let bins = bins(states, bin_ns, is_it);
            bins[..(80 / bin_ns) as usize].to_vec()
        };
        // On the CPU from 10 to 20, 50 to 55 and 70 to 80; blocked from 20 to 40.
        assert_eq!(bins_of(16, is_running), [6, 4, 0, 5, 10]);
        assert_eq!(
            bins_of(16, |state| state == State::Blocked),
            [0, 12, 8, 0, 0]
        );
        assert_eq!(bins_of(1, is_running).iter().sum::<u64>(), 25);
    }
}
