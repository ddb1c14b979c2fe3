//! Jobs and their steps, for bounds.

/// A job of a bound. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The time of its submission; `None` if that depends on how others run.
    pub submitted_ns: Option<u64>,
    /// Its steps, each with a number of repetitions.
    pub steps: Vec<(u64, Step)>,
}

/// A job computes, and then sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The time that it computes.
    pub run_ns: u64,
    /// The least time that it sleeps.
    pub sleep_ns: u64,
}

impl Job {
    /// Creates a job that computes for so long, and never sleeps.
    pub fn computing(submitted_ns: u64, run_ns: u64) -> Self {
        let step = Step {
            run_ns,
            sleep_ns: 0,
        };
        Self {
            submitted_ns: Some(submitted_ns),
            steps: vec![(1, step)],
        }
    }

    /// Returns the time of its submission.
    ///
    /// # Panics
    /// If it is not known.
    pub(super) fn submitted_at(&self) -> u64 {
        self.submitted_ns.expect("it is known")
    }

    pub(super) fn steps(&self) -> impl Iterator<Item = Step> {
        let steps = self.steps.iter();
        steps.flat_map(|&(times, step)| (0..times).map(move |_| step))
    }

    fn sum(&self, of: fn(&Step) -> u64) -> u64 {
        self.steps
            .iter()
            .map(|(times, step)| times * of(step))
            .sum()
    }

    pub(super) fn run_ns(&self) -> u64 {
        self.sum(|step| step.run_ns)
    }

    pub(super) fn sleep_ns(&self) -> u64 {
        self.sum(|step| step.sleep_ns)
    }
}
