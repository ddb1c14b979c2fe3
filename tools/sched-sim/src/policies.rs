//! Every policy of the list and the registry's, by name.

use axsched_ext::{
    BaseScheduler, CfsScheduler, CfsTask, EevdfScheduler, EevdfTask, FifoScheduler, FifoTask,
    MlfqScheduler, MlfqTask, RrScheduler, RrTask, SjfScheduler, SjfTask,
    clock::VirtualClock,
    model::{Config, Failure, Program, Report, run},
    pbg::{PbgScheduler, PbgTask, PerThread},
};
use axsched_upstream as stock;

/// A policy, as tables call it.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    name: &'static str,
    run: fn(&Config, &Program) -> Result<Report, Box<Failure>>,
    is_preemptive: bool,
    follows_plan: bool,
}

/// All policies, in the order of tables.
pub const POLICIES: [Policy; 11] = [
    Policy::new("fifo", |config, main| {
        run(config, main, |_| FifoScheduler::new(), FifoTask::new)
    })
    .cooperative(),
    Policy::new("rr", |config, main| {
        run(config, main, |_| RrScheduler::<_>::new(), RrTask::new)
    }),
    Policy::new("cfs", |config, main| {
        run(
            config,
            main,
            |_| CfsScheduler::<_, VirtualClock>::new(),
            CfsTask::new,
        )
    }),
    Policy::new("eevdf", |config, main| {
        run(
            config,
            main,
            |_| EevdfScheduler::<_, VirtualClock>::new(),
            EevdfTask::new,
        )
    }),
    Policy::new("sjf", |config, main| {
        run(
            config,
            main,
            |_| SjfScheduler::<_, VirtualClock>::new(),
            SjfTask::new,
        )
    }),
    Policy::new("mlfq", |config, main| {
        run(
            config,
            main,
            |_| MlfqScheduler::<_, VirtualClock>::new(),
            MlfqTask::new,
        )
    }),
    Policy::new("pbg", pbg).planned(),
    Policy::new("pbg-coop", pbg).planned().cooperative(),
    Policy::new("stock-fifo", |config, main| {
        run(
            config,
            main,
            |_| Stock(stock::FifoScheduler::new()),
            stock::FifoTask::new,
        )
    })
    .cooperative(),
    Policy::new("stock-rr", |config, main| {
        run(
            config,
            main,
            |_| Stock(stock::RRScheduler::<_, 5>::new()),
            stock::RRTask::new,
        )
    }),
    Policy::new("stock-cfs", |config, main| {
        run(
            config,
            main,
            |_| Stock(stock::CFScheduler::new()),
            stock::CFSTask::new,
        )
    }),
];

impl Policy {
    const fn new(
        name: &'static str,
        run: fn(&Config, &Program) -> Result<Report, Box<Failure>>,
    ) -> Self {
        Self {
            name,
            run,
            is_preemptive: true,
            follows_plan: false,
        }
    }

    const fn cooperative(self) -> Self {
        Self {
            is_preemptive: false,
            ..self
        }
    }

    const fn planned(self) -> Self {
        Self {
            follows_plan: true,
            ..self
        }
    }

    /// The policy of this name, as `rr`.
    pub fn named(name: &str) -> Option<&'static Self> {
        POLICIES.iter().find(|policy| policy.name == name)
    }

    /// As tables call it.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether ticks preempt: its kernel is built so.
    pub const fn is_preemptive(&self) -> bool {
        self.is_preemptive
    }

    /// Whether it needs a recording to follow.
    pub const fn follows_plan(&self) -> bool {
        self.follows_plan
    }

    pub(crate) fn run(&self, config: &Config, main: &Program) -> Result<Report, Box<Failure>> {
        (self.run)(config, main)
    }
}

/// PBG has one control for all CPUs, which the caller has made.
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

    macro_rules! modules {
        ($($feature:literal $module:ident $task:ident $scheduler:ty;)*) => {
            [$(stringify!($module)),*]
        };
    }

    #[test]
    fn every_policy_of_the_library_is_here() {
        for name in axsched_ext::for_each_policy!(modules) {
            assert!(Policy::named(name).is_some(), "{name}");
        }
    }
}
