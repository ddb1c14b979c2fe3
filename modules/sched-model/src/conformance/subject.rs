//! The scheduler under test, and the tools of the rules.

use std::{fmt, ops::Deref, sync::Arc};

use super::{Broken, Coverage, Load, Promises};
use crate::model::{self, Config, Line, ModelScheduler, ModelTask, Program, Report};

pub(super) type Holds = Result<(), Broken>;

/// The scheduler under test.
pub(super) struct Subject<'a, S: ModelScheduler> {
    pub(super) promises: &'a Promises,
    pub(super) make: &'a mut dyn FnMut(usize) -> S,
    pub(super) wrap: &'a mut dyn FnMut(ModelTask) -> S::Task,
    pub(super) coverage: Coverage,
}

impl<S: ModelScheduler> Subject<'_, S> {
    pub(super) fn tasks(&mut self, n: usize) -> Vec<Arc<S::Task>> {
        let task = |id| Arc::new((self.wrap)(ModelTask::new(id, "t")));
        (0..n).map(task).collect()
    }

    /// Returns a scheduler with `n` tasks in it, and the tasks.
    pub(super) fn filled(&mut self, n: usize) -> (S, Vec<Arc<S::Task>>) {
        let mut scheduler = (self.make)(0);
        let tasks = self.tasks(n);
        tasks
            .iter()
            .for_each(|task| scheduler.add_task(task.clone()));
        (scheduler, tasks)
    }

    /// Returns the machine that most rules use, with the bounds that were promised.
    pub(super) fn config(&self) -> Config {
        Config {
            repick_after_yield: self.promises.repick_after_yield,
            max_gc_streak: self.promises.max_gc_streak,
            on_time: self.promises.on_time,
            ..Config::default()
        }
    }

    /// Runs a program on a machine, under the promised bound on waiting.
    pub(super) fn run(&mut self, config: Config, program: Program) -> Result<Report, Broken> {
        let max_wait = (self.promises.max_wait)(&Load::of(&program, &config));
        self.run_unbounded(Config { max_wait, ..config }, program)
    }

    pub(super) fn run_unbounded(
        &mut self,
        config: Config,
        program: Program,
    ) -> Result<Report, Broken> {
        match model::run(&config, &program, &mut *self.make, &mut *self.wrap) {
            Ok(report) => {
                let coverage = &mut self.coverage;
                coverage.runs += 1;
                coverage.tasks += report.tasks.len() as u64;
                coverage.dispatches += report.dispatches;
                coverage.yields += report.tasks.iter().map(|t| t.yields).sum::<u64>();
                if config.line == Line::Axtask03 {
                    coverage.preemptions += report.tasks.iter().map(|t| t.preemptions).sum::<u64>();
                }
                coverage.wake_spins += report.wake_spins;
                Ok(report)
            }
            Err(failure) => Err(Broken::InModel {
                config: Box::new(config),
                program,
                failure,
            }),
        }
    }

    /// Runs a program on 1, 2 and 4 CPUs, as far as that many are allowed, of each line of ArceOS.
    pub(super) fn run_everywhere(&mut self, config: Config, program: Program) -> Holds {
        for line in Line::ALL {
            for cpus in [1, 2, 4] {
                if cpus <= self.promises.max_cpus {
                    let config = Config {
                        line,
                        cpus,
                        ..config.clone()
                    };
                    self.run(config, program.clone())?;
                }
            }
        }
        Ok(())
    }
}

fn name(task: Option<&Arc<impl Deref<Target = ModelTask>>>) -> String {
    task.map_or("None".into(), |task| task.label().to_string())
}

pub(super) fn expect(
    call: &str,
    expected: impl fmt::Display,
    found: impl fmt::Display,
    ok: bool,
) -> Holds {
    if ok {
        return Ok(());
    }
    Err(Broken::ByHand {
        call: call.into(),
        expected: expected.to_string(),
        found: found.to_string(),
    })
}

/// Checks that `found` is exactly `expected`, the same allocation.
pub(super) fn expect_task<W: Deref<Target = ModelTask>>(
    call: &str,
    expected: Option<&Arc<W>>,
    found: Option<&Arc<W>>,
) -> Holds {
    let same = expected.map(Arc::as_ptr) == found.map(Arc::as_ptr);
    expect(call, name(expected), name(found), same)
}

/// Picks until nothing is left, and expects exactly `tasks`, in any order.
pub(super) fn expect_drains<S: ModelScheduler>(scheduler: &mut S, tasks: &[Arc<S::Task>]) -> Holds {
    let mut left = tasks.to_vec();
    while let Some(first) = left.first() {
        let one_of = format!(
            "{} or another of {} ready tasks",
            name(Some(first)),
            left.len()
        );
        let found = scheduler.pick_next_task();
        let place = left
            .iter()
            .position(|task| found.as_ref().is_some_and(|f| Arc::ptr_eq(f, task)));
        match place {
            Some(place) => drop(left.swap_remove(place)),
            None => expect("pick_next_task", one_of, name(found.as_ref()), false)?,
        }
    }
    expect_task("pick_next_task", None, scheduler.pick_next_task().as_ref())
}
