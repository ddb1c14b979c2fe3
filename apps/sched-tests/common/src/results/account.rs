//! Where all the CPU time of a phase went.

use super::TaskResult;

/// The CPU time of a phase, from its start until the work of the last task was done, of all
/// CPUs together.
///
/// The parts are measured one by one, so that their sum says whether the instrument
/// missed something: [`closes`](Self::closes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The tasks of the workload, until their work was done: their rows together.
    pub tasks_run_ns: u64,
    /// Main, which submits the tasks and waits for them.
    pub main_run_ns: u64,
    /// The kernel's `gc`, which reclaims ended tasks.
    pub gc_run_ns: u64,
    /// The rest: what tasks need to begin and to end, and the kernel's other helpers.
    pub rest_run_ns: u64,
    /// Nobody.
    pub idle_ns: u64,
    /// What there was: CPUs times the makespan.
    pub available_ns: u64,
    /// How many CPUs that were.
    pub cpus: u64,
}

/// The CPU time of a phase that no task's work had, of all CPUs together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unmetered {
    /// Main: it submits the tasks and waits for them.
    pub main_ns: u64,
    /// The kernel's `gc`, which reclaims ended tasks.
    pub gc_ns: u64,
    /// Nobody.
    pub idle_ns: u64,
    /// Anybody else without a meter.
    pub other_ns: u64,
}

/// An account that is off by more than one part in so many is wrong.
const CLOSES_WITHIN: u64 = 100;

/// By so much it may be off in any case, a CPU: the account ends with the last task's work,
/// and knows what that task needs to end. In real time the host may take a CPU away just there.
const CLOSES_WITHIN_NS: u64 = if real() { 1_000_000 } else { 20_000 };

const fn real() -> bool {
    !matches!(crate::platform::TIMING.as_bytes(), b"icount")
}

/// From one part in so many on, CPU time that no task has is worth a word.
const NOTED_FROM: u64 = 50;

impl Account {
    /// The tasks' part, from their rows.
    pub fn tasks_run_ns(tasks: &[TaskResult]) -> u64 {
        tasks.iter().map(|task| task.run_ns).sum()
    }

    /// The sum of all parts.
    pub const fn sum_ns(&self) -> u64 {
        self.tasks_run_ns + self.outside_ns() + self.idle_ns
    }

    /// What somebody had who is none of the tasks. Idle time is nobody's.
    pub const fn outside_ns(&self) -> u64 {
        self.main_run_ns + self.gc_run_ns + self.rest_run_ns
    }

    /// Whether the parts add up to the whole, to a hundredth.
    pub const fn closes(&self) -> bool {
        let off = self.sum_ns().abs_diff(self.available_ns);
        off <= self.available_ns / CLOSES_WITHIN + self.cpus * CLOSES_WITHIN_NS
    }

    /// Whether the tasks were kept from so much of the CPU that the figures depend on it:
    /// more than a fiftieth.
    pub const fn is_noted(&self) -> bool {
        self.outside_ns() > self.available_ns / NOTED_FROM
    }

    /// `part` in per cent of what there was.
    pub fn percent(&self, part: u64) -> f64 {
        part as f64 * 100.0 / self.available_ns.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: Account = Account {
        tasks_run_ns: 90_000_000,
        main_run_ns: 300_000,
        gc_run_ns: 600_000,
        rest_run_ns: 100_000,
        idle_ns: 9_000_000,
        available_ns: 100_000_000,
        cpus: 1,
    };

    #[test]
    fn an_account_closes_if_its_parts_add_up() {
        assert_eq!(ACCOUNT.sum_ns(), 100_000_000);
        assert!(ACCOUNT.closes());
        for (idle_ns, closes) in [
            (8_000_000 - CLOSES_WITHIN_NS, true),
            (8_000_000 - CLOSES_WITHIN_NS - 1, false),
            (10_000_000 + CLOSES_WITHIN_NS, true),
            (10_000_000 + CLOSES_WITHIN_NS + 1, false),
        ] {
            let account = Account { idle_ns, ..ACCOUNT };
            assert_eq!(account.closes(), closes, "{idle_ns}");
        }
    }

    #[test]
    fn what_is_outside_is_noted_from_a_fiftieth_on() {
        assert_eq!(ACCOUNT.outside_ns(), 1_000_000);
        assert!(!ACCOUNT.is_noted());
        for (gc_run_ns, noted) in [(1_600_000, false), (1_600_001, true)] {
            let account = Account {
                gc_run_ns,
                ..ACCOUNT
            };
            assert_eq!(account.is_noted(), noted, "{gc_run_ns}");
        }
        assert_eq!(ACCOUNT.percent(ACCOUNT.idle_ns), 9.0);
    }
}
