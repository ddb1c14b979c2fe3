//! Where all the CPU time of a phase went.

use core::fmt;

use crate::RunLine;

/// The CPU time of a phase, from its start until the work of the last task was done, summed over
/// all CPUs.
///
/// The parts are measured one by one, so that their sum says whether the instrument
/// missed something: [`is_balanced`](Self::is_balanced).
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
    /// The time in which a CPU had nothing to do.
    pub idle_ns: u64,
    /// From the start of the phase to the end of the last task's work.
    pub makespan_ns: u64,
    /// The number of CPUs.
    pub cpus: u32,
    /// True if time is counted instructions.
    pub is_counted: bool,
}

/// The allowed difference between the sum of the parts and CPUs × makespan, in % of the latter.
pub const TOLERANCE_PERCENT: u64 = 1;

/// The time that a CPU books at the moment at which another ends the account may be booked twice or
/// not at all. It is the time between two ticks, at most.
pub const BOOKED_TWICE_NS: u128 = 10_000_000;

/// The difference that is allowed in addition, for each CPU. On one CPU the parts add up to the
/// nanosecond, except for rounding: the account ends at the last task's own reading. On several
/// CPUs the host may stop one of them between that reading and the end of the account.
const OFF_COUNTED_NS: u64 = 20_000;
const OFF_REAL_NS: u64 = 1_000_000;

/// The share of CPUs × makespan, in %, above which time outside the tasks is noted.
const NOTED_PERCENT: u128 = 2;

/// A key of the account that a line lacks. Lines of old versions have none of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoAccount(pub &'static str);

impl fmt::Display for NoAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(key) = self;
        write!(f, "expected an account of the CPU time, found no {key}")
    }
}

impl core::error::Error for NoAccount {}

impl Account {
    /// Returns the account of a phase.
    pub fn of(run: &RunLine) -> Result<Self, NoAccount> {
        Ok(Self {
            tasks_run_ns: run.tasks_run_ns.ok_or(NoAccount("tasks_run_ns"))?,
            main_run_ns: run.main_run_ns.ok_or(NoAccount("main_run_ns"))?,
            gc_run_ns: run.gc_run_ns.ok_or(NoAccount("gc_run_ns"))?,
            rest_run_ns: run.rest_run_ns.ok_or(NoAccount("rest_run_ns"))?,
            idle_ns: run.idle_ns.ok_or(NoAccount("idle_ns"))?,
            makespan_ns: run.makespan_ns,
            cpus: run.context.smp,
            is_counted: run.is_counted(),
        })
    }

    /// Returns the time that there was: CPUs × makespan.
    pub fn available_ns(&self) -> u128 {
        u128::from(self.cpus) * u128::from(self.makespan_ns)
    }

    /// Returns the sum of all parts.
    pub fn sum_ns(&self) -> u128 {
        u128::from(self.tasks_run_ns) + self.outside_ns() + u128::from(self.idle_ns)
    }

    /// Returns the time of main, `gc` and the rest, which are none of the tasks.
    pub fn outside_ns(&self) -> u128 {
        [self.main_run_ns, self.gc_run_ns, self.rest_run_ns]
            .into_iter()
            .map(u128::from)
            .sum()
    }

    /// Returns true if the parts add up to the time that there was, within [`TOLERANCE_PERCENT`] and a few
    /// microseconds for each CPU; and `BOOKED_TWICE_NS` for each but one.
    pub fn is_balanced(&self) -> bool {
        let tolerance = self.available_ns() * u128::from(TOLERANCE_PERCENT);
        let others = u128::from(self.cpus.saturating_sub(1));
        let off = self.per_cpu_ns(OFF_COUNTED_NS, OFF_REAL_NS) + others * BOOKED_TWICE_NS;
        self.sum_ns().abs_diff(self.available_ns()) * 100 <= tolerance + off * 100
    }

    /// Returns true if more than a fiftieth of the time was outside the tasks, so that the figures
    /// depend on it. An idle CPU delays no task and does not count.
    pub fn is_noted(&self) -> bool {
        self.outside_ns() * 100 > self.available_ns() * NOTED_PERCENT
    }

    /// Returns the number of CPUs times `counted` if time is counted instructions, else times
    /// `real`.
    pub fn per_cpu_ns(&self, counted: u64, real: u64) -> u128 {
        u128::from(self.cpus) * u128::from(if self.is_counted { counted } else { real })
    }

    /// Returns `part_ns` in per cent of the time that there was.
    pub fn percent(&self, part_ns: u128) -> f64 {
        match self.available_ns() {
            0 => 0.0,
            available => part_ns as f64 * 100.0 / available as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    const ACCOUNT: Account = Account {
        tasks_run_ns: 90_000_000,
        main_run_ns: 300_000,
        gc_run_ns: 600_000,
        rest_run_ns: 100_000,
        idle_ns: 9_000_000,
        makespan_ns: 100_000_000,
        cpus: 1,
        is_counted: true,
    };

    #[test]
    fn an_account_is_balanced_if_its_parts_add_up() {
        assert_eq!(ACCOUNT.sum_ns(), 100_000_000);
        assert!(ACCOUNT.is_balanced());
        for (is_counted, off) in [(true, OFF_COUNTED_NS), (false, OFF_REAL_NS)] {
            for (idle_ns, is_balanced) in [
                (8_000_000 - off, true),
                (8_000_000 - off - 1, false),
                (10_000_000 + off, true),
                (10_000_000 + off + 1, false),
            ] {
                let account = Account {
                    idle_ns,
                    is_counted,
                    ..ACCOUNT
                };
                assert_eq!(account.is_balanced(), is_balanced, "{account:?}");
            }
        }
    }

    #[test]
    fn time_outside_tasks_is_noted_above_a_fiftieth() {
        assert_eq!(ACCOUNT.outside_ns(), 1_000_000);
        assert!(!ACCOUNT.is_noted());
        for (gc_run_ns, noted) in [(1_600_000, false), (1_600_001, true)] {
            let account = Account {
                gc_run_ns,
                ..ACCOUNT
            };
            assert_eq!(account.is_noted(), noted, "{gc_run_ns}");
        }
        assert_eq!(ACCOUNT.percent(ACCOUNT.idle_ns.into()), 9.0);
    }

    #[test]
    fn available_time_is_that_of_all_cpus() {
        let two = Account {
            cpus: 2,
            idle_ns: 109_000_000,
            ..ACCOUNT
        };
        assert_eq!(two.available_ns(), 200_000_000);
        assert!(two.is_balanced());
        assert!(!Account { cpus: 1, ..two }.is_balanced());
        assert_eq!(two.percent(two.outside_ns()), 0.5);
        assert_eq!(two.per_cpu_ns(3, 4), 6);
    }

    #[test]
    fn each_further_cpu_may_be_off_by_a_tick() {
        let four = Account {
            cpus: 4,
            idle_ns: ACCOUNT.idle_ns + 300_000_000,
            is_counted: false,
            ..ACCOUNT
        };
        let with = |more| Account {
            idle_ns: four.idle_ns + more,
            ..four
        };
        // 1 % of 400 ms, 1 ms for each CPU, and 10 ms for each but one.
        assert!(four.is_balanced() && with(37_900_000).is_balanced());
        assert!(!with(38_100_000).is_balanced());
    }

    #[test]
    fn missing_account_is_an_error_that_names_the_key() {
        let run = RunLine {
            tasks_run_ns: Some(1),
            ..RunLine::default()
        };
        assert_eq!(
            Account::of(&run).map_err(|error| error.to_string()),
            Err("expected an account of the CPU time, found no main_run_ns".into())
        );
    }
}
