//! Every policy of the list and the registry's, by name.

use std::sync::LazyLock;

use axsched_ext::{
    BaseScheduler,
    balance::{run_balanced, run_together},
    clock::VirtualClock,
    delegated::{DelegatedScheduler, Outside},
    event::{Adapter, Policy as Inside},
    for_each_policy,
    model::{Config, Failure, ModelTask, Program, Report, run},
    pbg::{PbgScheduler, PbgTask, PerThread},
};
use axsched_upstream as stock;

/// A policy, by its name in tables.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    name: &'static str,
    run: Run,
    /// Runs the policy within the layer for several CPUs, if it can.
    balanced: Option<Run>,
    is_preemptive: bool,
    is_planned: bool,
}

/// The way in which CPUs share their work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// The CPUs share nothing, as in `axtask`: new tasks go to the CPUs in turn.
    None,
    /// The CPUs share as in [`axsched_ext::balance`], and nothing under policies without it.
    #[default]
    Balanced,
}

type Run = fn(&Config, &Program) -> Result<Report, Box<Failure>>;

/// Names the policy of a scheduler of one CPU.
trait Within {
    type Policy;
}

impl<P: Inside> Within for Adapter<P> {
    type Policy = P;
}

impl<T, C> Within for DelegatedScheduler<T, C> {
    type Policy = Outside<T>;
}

/// Adds the layer for several CPUs to a policy. PBG has its own.
macro_rules! shared {
    ($policy:expr, pbg $scheduler:ty) => {
        $policy
    };
    ($policy:expr, $module:ident $scheduler:ty) => {
        Policy {
            balanced: Some(run_balanced::<<$scheduler as Within>::Policy>),
            ..$policy
        }
    };
}

macro_rules! ours {
    ($($feature:literal $module:ident $task:ident $scheduler:ty;)*) => {
        /// Returns the library's policies, in the order of its list.
        fn ours() -> Vec<Policy> {
            use axsched_ext::*;
            type T = ModelTask;
            type C = VirtualClock;
            vec![$(shared!(
                Policy::new(stringify!($module), |config, main| {
                    run(config, main, |_| <$scheduler>::new(), $task::new)
                }),
                $module $scheduler
            )),*]
        }
    };
}
for_each_policy!(ours);

static POLICIES: LazyLock<Vec<Policy>> = LazyLock::new(|| {
    let mut all: Vec<Policy> = Vec::new();
    for policy in ours() {
        match policy.name {
            // Its kernel needs no preemption.
            "fifo" => all.push(policy.cooperative()),
            // There are no agents here, so it would be RR.
            "delegated" => {}
            "pbg" => {
                let pbg = Policy {
                    balanced: Some(run_together),
                    is_planned: true,
                    ..Policy::new("pbg", pbg)
                };
                all.push(pbg);
                all.push(
                    Policy {
                        name: "pbg-coop",
                        ..pbg
                    }
                    .cooperative(),
                );
            }
            _ => all.push(policy),
        }
    }
    all.extend([
        Policy::new("stock-fifo", |config, main| {
            let made = |_| Stock(stock::FifoScheduler::new());
            run(config, main, made, stock::FifoTask::new)
        })
        .cooperative(),
        Policy::new("stock-rr", |config, main| {
            let made = |_| Stock(stock::RRScheduler::<_, 5>::new());
            run(config, main, made, stock::RRTask::new)
        }),
        Policy::new("stock-cfs", |config, main| {
            let made = |_| Stock(stock::CFScheduler::new());
            run(config, main, made, stock::CFSTask::new)
        }),
    ]);
    all
});

/// Returns all policies, in the order of tables.
pub fn policies() -> &'static [Policy] {
    &POLICIES
}

impl Policy {
    const fn new(name: &'static str, run: Run) -> Self {
        Self {
            name,
            run,
            balanced: None,
            is_preemptive: true,
            is_planned: false,
        }
    }

    const fn cooperative(self) -> Self {
        Self {
            is_preemptive: false,
            ..self
        }
    }

    /// Returns the policy of this name, such as `rr`.
    pub fn named(name: &str) -> Option<&'static Self> {
        policies().iter().find(|policy| policy.name == name)
    }

    /// Returns its name in tables.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns true if ticks preempt, which depends on the build of its kernel.
    pub const fn is_preemptive(&self) -> bool {
        self.is_preemptive
    }

    /// Returns true if it follows a plan, for which it needs a recording.
    pub const fn is_planned(&self) -> bool {
        self.is_planned
    }

    /// Returns true if CPUs can share their work in this way under it.
    pub const fn can_share(&self, sharing: Sharing) -> bool {
        self.shared(sharing).is_some()
    }

    /// Returns true if it follows its plan on `cpus` CPUs. If they share nothing, PBG refuses and
    /// its base policy runs.
    pub const fn is_planned_on(&self, cpus: usize, sharing: Sharing) -> bool {
        self.is_planned && (cpus == 1 || self.can_share(sharing))
    }

    const fn shared(&self, sharing: Sharing) -> Option<Run> {
        match sharing {
            Sharing::None => None,
            Sharing::Balanced => self.balanced,
        }
    }

    /// Runs a program. Several CPUs share their work in this way, if they [can](Self::can_share).
    pub(crate) fn run(
        &self,
        sharing: Sharing,
        config: &Config,
        main: &Program,
    ) -> Result<Report, Box<Failure>> {
        let shared = self.shared(sharing).filter(|_| config.cpus > 1);
        shared.unwrap_or(self.run)(config, main)
    }
}

/// Runs a program under PBG, whose one control for all CPUs the caller has made.
fn pbg(config: &Config, main: &Program) -> Result<Report, Box<Failure>> {
    run(
        config,
        main,
        |_| PbgScheduler::<_, VirtualClock, PerThread>::new(),
        PbgTask::new,
    )
}

/// A scheduler of the registry's `axsched`, whose trait is ours by another name.
struct Stock<S>(S);

impl<S> BaseScheduler for Stock<S>
where
    S: stock::BaseScheduler,
{
    type SchedItem = S::SchedItem;

    fn init(&mut self) {
        self.0.init();
    }
    fn add_task(&mut self, task: S::SchedItem) {
        self.0.add_task(task);
    }
    fn remove_task(&mut self, task: &S::SchedItem) -> Option<S::SchedItem> {
        self.0.remove_task(task)
    }
    fn pick_next_task(&mut self) -> Option<S::SchedItem> {
        self.0.pick_next_task()
    }
    fn put_prev_task(&mut self, prev: S::SchedItem, preempt: bool) {
        self.0.put_prev_task(prev, preempt);
    }
    fn task_tick(&mut self, current: &S::SchedItem) -> bool {
        self.0.task_tick(current)
    }
    fn set_priority(&mut self, task: &S::SchedItem, priority: isize) -> bool {
        self.0.set_priority(task, priority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_two_policies_follow_a_plan() {
        let all = policies();
        for policy in all {
            let same = all.iter().filter(|other| other.name == policy.name);
            assert_eq!(same.count(), 1, "{}", policy.name);
        }
        let planned = all.iter().filter(|policy| policy.is_planned());
        assert_eq!(planned.count(), 2);
        assert!(all.len() > ours().len());
    }
}
