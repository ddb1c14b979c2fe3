//! Plans with priorities and deadlines: compared with every possible order, and followed by the scheduler
//! with ticks.

// This file is long because plans are compared with every order by one bench.

mod common;
#[path = "common/profiles.rs"]
mod profiles;

use std::num::NonZeroU8;
use std::sync::Arc;

use axsched_ext::BaseScheduler;
use axsched_ext::clock::VirtualClock;
use axsched_ext::pbg::stored::*;
use axsched_ext::pbg::{About, ControlSource, PbgScheduler, PbgTask, PerThread, Plan};
use axsched_ext::units::{Counts, TaskKey};
use common::proptest_config;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// A task of these tests, in its worst run.
#[derive(Clone, Debug, Default)]
struct Job {
    priority: u8,
    /// CPU time, then time blocked, and so on.
    bursts: Vec<(u64, u64)>,
    /// The difference of its other run, which was shorter.
    spared: u64,
    deadline: Option<u64>,
    spawned: u64,
}

impl Job {
    fn run(&self) -> u64 {
        self.bursts.iter().map(|burst| burst.0).sum()
    }

    fn blocked(&self) -> u64 {
        self.bursts.iter().map(|burst| burst.1).sum()
    }

    /// Returns the number of times that it blocks and is woken.
    fn blocks(&self) -> u64 {
        let (_, before) = self.bursts.split_last().expect("it has bursts");
        before.iter().filter(|burst| burst.1 > 0).count() as u64
    }
}

fn label(place: usize) -> String {
    format!("job {place}")
}

fn profile(jobs: &[Job]) -> StoredProfile {
    let twice = |most: u64, spared: u64| {
        let least = most.saturating_sub(spared);
        Figure {
            total: least + most,
            least,
            most,
        }
    };
    let task = |(ordinal, job): (usize, &Job)| StoredTask {
        key: TaskKey::labelled(&label(ordinal)),
        label: Some(Label::new(&label(ordinal)).unwrap()),
        runs: 2,
        priority: NonZeroU8::new(job.priority),
        deadline: job.deadline.map(Counts),
        figures: Figures {
            run: twice(job.run(), job.spared),
            blocked: twice(job.blocked(), job.spared),
            blocks: Figure {
                total: 2 * job.blocks(),
                least: job.blocks(),
                most: job.blocks(),
            },
            ..Figures::default()
        },
        ..profiles::task(ordinal as u32)
    };
    let profile = StoredProfile {
        header: Header {
            architecture: Architecture::HERE,
            timing: Timing::Unknown,
            frequency_hz: 0,
            runs: 2,
            ..profiles::header("deadlines")
        },
        tasks: jobs.iter().enumerate().map(task).collect(),
        order: None,
    };
    assert_eq!(profile.validate(), Ok(()));
    profile
}

/// Returns the order of a plan and the late jobs, as places among the jobs.
fn order_and_late(jobs: &[Job]) -> (Vec<usize>, Vec<usize>) {
    let profile = profile(jobs);
    let plan = Plan::of(&profile).unwrap();
    let place = |key: TaskKey| profile.tasks.iter().position(|t| t.key == key).unwrap();
    let order: Vec<_> = plan.tasks().iter().map(|task| place(task.key)).collect();
    let bands = plan.tasks().iter().map(|task| task.band as usize);
    assert!(bands.eq(0..jobs.len()), "every task has a band of its own");
    let late = plan.late().iter().map(|late| place(late.key)).collect();
    for late in plan.late() {
        let before = order.iter().take_while(|&&i| i != place(late.key));
        let job = &jobs[place(late.key)];
        let end = before.map(|&i| jobs[i].run()).sum::<u64>() + job.run() + job.blocked();
        assert_eq!(
            (late.end, Some(late.deadline.0)),
            (Counts(end), job.deadline)
        );
    }
    (order, late)
}

/// Returns the times at which the jobs of `order` end, blocked times included, by place. The first begins at
/// `start`.
fn ends(jobs: &[Job], order: &[usize], start: u64) -> Vec<u64> {
    let mut ends = vec![0; jobs.len()];
    let mut now = start;
    for &i in order {
        now += jobs[i].run();
        ends[i] = now + jobs[i].blocked();
    }
    ends
}

fn late_by(jobs: &[Job], ends: &[u64]) -> Vec<usize> {
    let late = |&i: &usize| jobs[i].deadline.is_some_and(|deadline| ends[i] > deadline);
    (0..jobs.len()).filter(late).collect()
}

/// Calls `look` with every order of `items`.
fn permutations(items: &mut [usize], fixed: usize, look: &mut impl FnMut(&[usize])) {
    if fixed == items.len() {
        return look(items);
    }
    for i in fixed..items.len() {
        items.swap(fixed, i);
        permutations(items, fixed + 1, look);
        items.swap(fixed, i);
    }
}

/// Draws from few different numbers, so that ties, tight sets and hopeless ones are common.
fn small_job() -> impl Strategy<Value = Job> {
    let deadline = proptest::option::weighted(0.7, 0..40u64);
    (0..9u64, 0..4u64, 0..3u64, deadline).prop_map(|(run, blocked, spared, deadline)| Job {
        bursts: vec![(run, blocked)],
        spared,
        deadline,
        ..Job::default()
    })
}

proptest! {
    #![proptest_config(proptest_config(400))]

    /// Rules 6 and 8 of the plan, for a second class. The first class computes for `start`.
    #[test]
    fn no_order_is_better(start in 0..10u64, jobs in vec(small_job(), 1..=7)) {
        prop_assume!(jobs.iter().any(|job| job.deadline.is_some()));
        let first = Job { priority: 1, bursts: vec![(start, 0)], ..Job::default() };
        let mut with_first = vec![first];
        with_first.extend(jobs.iter().cloned());
        let (order, late) = order_and_late(&with_first);
        prop_assert_eq!(order[0], 0);
        let order: Vec<_> = order[1..].iter().map(|i| i - 1).collect();
        let mut late: Vec<_> = late.iter().map(|i| i - 1).collect();
        late.sort_unstable();
        let planned = ends(&jobs, &order, start);
        prop_assert_eq!(&late_by(&jobs, &planned), &late);

        let mut fewest = usize::MAX;
        let mut least = u64::MAX;
        let mut all: Vec<_> = (0..jobs.len()).collect();
        permutations(&mut all, 0, &mut |order| {
            let ends = ends(&jobs, order, start);
            let these = late_by(&jobs, &ends);
            fewest = fewest.min(these.len());
            // Among the orders in which the other jobs are in time.
            if these.iter().all(|i| late.contains(i)) {
                least = least.min(ends.iter().sum());
            }
        });
        prop_assert_eq!(late.len(), fewest);
        prop_assert_eq!(planned.iter().sum::<u64>(), least);
    }
}

/// The tick of the CPU, in counts.
const TICK: u64 = 1000;

type Handle = Arc<PbgTask<usize>>;

/// The place of `main`.
const MAIN: usize = usize::MAX;

/// The state of a job.
enum State {
    /// It is spawned, or woken, at this time.
    From(u64),
    Ready,
    Ended,
}

/// One CPU whose [`PbgScheduler`] follows the plan of some jobs. Calls cost no time; jobs
/// become ready at any time, and ticks come at multiples of [`TICK`].
struct Cpu<'a> {
    scheduler: PbgScheduler<usize, VirtualClock, PerThread>,
    jobs: &'a [Job],
    /// The band of each job. The index is that of the job, as in all fields below.
    bands: Vec<u16>,
    tasks: Vec<Option<Handle>>,
    states: Vec<State>,
    /// The bursts that are left, the next one last.
    left: Vec<Vec<(u64, u64)>>,
    ends: Vec<u64>,
    main: Handle,
    current: Option<Handle>,
    now: u64,
    /// The running job before and after each tick.
    at_ticks: Vec<(Option<usize>, Option<usize>)>,
}

impl<'a> Cpu<'a> {
    fn following_the_plan_of(jobs: &'a [Job]) -> Self {
        let control = PerThread::renew();
        let mut scheduler: PbgScheduler<usize, VirtualClock, PerThread> = PbgScheduler::new();
        let main = Arc::new(PbgTask::new(MAIN));
        scheduler.add_task(Arc::new(PbgTask::new(MAIN))); // gc, which blocks at once
        scheduler.put_prev_task(main.clone(), false);
        scheduler.pick_next_task();
        let current = scheduler.pick_next_task();
        assert!(current.as_ref().is_some_and(|t| Arc::ptr_eq(t, &main)));

        let profile = profile(jobs);
        let about = About {
            program: profile.header.program,
            frequency_hz: 0,
            cpus: 1,
            timing: Timing::Unknown,
        };
        let bytes = encode(&profile).unwrap();
        assert_eq!(control.load(&bytes, &about), Ok(jobs.len()));
        let plan = control.plan().unwrap().unwrap();
        let key = |place: usize| profile.tasks[place].key;
        let band = |place| plan.tasks().iter().find(|task| task.key == key(place));
        let bands = (0..jobs.len()).map(|place| band(place).unwrap().band);
        assert_eq!(control.start_pbg(), Ok(jobs.len()));
        Self {
            scheduler,
            jobs,
            bands: bands.collect(),
            tasks: jobs.iter().map(|_| None).collect(),
            states: jobs.iter().map(|job| State::From(job.spawned)).collect(),
            left: (jobs.iter())
                .map(|job| job.bursts.iter().rev().copied().collect())
                .collect(),
            ends: vec![0; jobs.len()],
            main,
            current,
            now: 0,
            at_ticks: Vec::new(),
        }
    }

    /// Runs until all jobs have ended. Returns the end of each, counted from its spawn.
    fn run(&mut self) -> &[u64] {
        self.become_ready(); // by main, which has the CPU
        self.pick();
        let has_ended = |state: &State| matches!(state, State::Ended);
        while !self.states.iter().all(has_ended) {
            let tick = (self.now / TICK + 1) * TICK;
            let now = self.now;
            let over = self.burst().map(|(run, _)| now + *run);
            let ready = self.states.iter().filter_map(|state| match state {
                State::From(at) => Some(*at),
                _ => None,
            });
            let at = ready.chain(over).fold(tick, u64::min);
            let ran = at - self.now;
            if let Some((run, _)) = self.burst() {
                *run -= ran;
            }
            VirtualClock::advance(ran);
            self.now = at;
            if over == Some(at) {
                self.end_burst();
            }
            self.become_ready();
            if at == tick {
                self.tick();
            }
        }
        let status = PerThread::control().status().unwrap();
        assert_eq!(
            (status.matched as usize, status.diverged()),
            (self.jobs.len(), 0)
        );
        &self.ends
    }

    fn place(&self) -> Option<usize> {
        self.current.as_deref().map(|task| **task)
    }

    /// Returns what is left of the running task's burst, and the block after it.
    fn burst(&mut self) -> Option<&mut (u64, u64)> {
        let place = self.place()?;
        self.left[place].last_mut()
    }

    fn end_burst(&mut self) {
        let task = self.current.take().unwrap();
        let place = **task;
        let (_, blocked) = self.left[place].pop().unwrap();
        if self.left[place].is_empty() {
            self.states[place] = State::Ended;
            self.ends[place] = self.now + blocked - self.jobs[place].spawned;
            self.tasks[place] = None;
        } else if blocked == 0 {
            self.scheduler.put_prev_task(task, false); // it yields
        } else {
            self.states[place] = State::From(self.now + blocked);
        }
        self.pick();
    }

    fn become_ready(&mut self) {
        for place in 0..self.jobs.len() {
            if !matches!(self.states[place], State::From(at) if at == self.now) {
                continue;
            }
            self.states[place] = State::Ready;
            let idle = self.current.is_none();
            if let Some(task) = &self.tasks[place] {
                self.scheduler.put_prev_task(task.clone(), false);
            } else {
                if idle {
                    self.scheduler.put_prev_task(self.main.clone(), false);
                    self.current = self.scheduler.pick_next_task();
                    assert_eq!(self.place(), Some(MAIN));
                }
                // An interrupt or the running task spawns it, and the label counts.
                PerThread::control().label_next(&label(place)).unwrap();
                let task = Arc::new(PbgTask::new(place));
                self.tasks[place] = Some(task.clone());
                self.scheduler.add_task(task);
            }
            if idle {
                self.pick();
            }
        }
    }

    fn tick(&mut self) {
        let Some(task) = self.current.clone() else {
            return;
        };
        let before = self.place();
        if self.scheduler.task_tick(&task) {
            self.current = None;
            self.scheduler.put_prev_task(task, true);
            self.pick();
        } else {
            self.check_order();
        }
        self.at_ticks.push((before, self.place()));
    }

    fn pick(&mut self) {
        self.current = self.scheduler.pick_next_task();
        self.check_order();
    }

    /// Asserts that no ready task has a band before that of the running one.
    fn check_order(&self) {
        let ready = (0..self.jobs.len()).filter(|&i| matches!(self.states[i], State::Ready));
        let first = ready.map(|place| self.bands[place]).min();
        let runs = self.place().map(|place| self.bands[place]);
        assert_eq!(
            runs, first,
            "the band that runs, and the first that is ready"
        );
    }
}

/// Returns how much later than planned `place` may end. Each time that it or one before it in `order` becomes
/// ready, it may take a tick until a later one is preempted.
fn slack(jobs: &[Job], order: &[usize], place: usize) -> u64 {
    let rank = order.iter().position(|&other| other == place).unwrap();
    let times = order[..=rank].iter().map(|&i| jobs[i].bursts.len() as u64);
    times.sum::<u64>() * TICK
}

fn urgent(priority: u8, bursts: &[(u64, u64)], spawned: u64) -> Job {
    Job {
        priority,
        bursts: bursts.to_vec(),
        spawned,
        ..Job::default()
    }
}

#[test]
fn urgent_task_keeps_the_cpu_over_many_ticks() {
    // The longest is the most urgent, and its rest is never shorter than the others.
    let jobs = [
        urgent(3, &[(1_500, 0)], 0),
        urgent(1, &[(20_500, 0)], 0),
        urgent(2, &[(5_000, 0)], 0),
    ];
    let mut cpu = Cpu::following_the_plan_of(&jobs);
    assert_eq!(cpu.run(), [27_000, 20_500, 25_500]);
    assert_eq!(cpu.at_ticks.len(), 26);
    let kept = cpu.at_ticks.iter().all(|(before, after)| before == after);
    assert!(kept, "{:?}", cpu.at_ticks);
}

#[test]
fn more_urgent_task_takes_over_at_the_next_tick() {
    let jobs = [
        urgent(0, &[(8_000, 0)], 0),
        urgent(7, &[(19_700, 2_100), (2_000, 0)], 4_700),
    ];
    let mut cpu = Cpu::following_the_plan_of(&jobs);
    // It has the CPU from 5,000 to 24,700, and from 27,000, as it wakes at 26,800.
    assert_eq!(cpu.run(), [29_700, 24_300]);
    let ticks = cpu.at_ticks.iter();
    assert_eq!(ticks.filter(|(before, after)| before != after).count(), 2);
}

#[test]
fn deadline_is_kept_against_shorter_tasks_over_many_ticks() {
    let jobs = [
        Job {
            deadline: Some(12_000),
            ..urgent(0, &[(9_000, 0), (3_000, 0)], 0)
        },
        urgent(0, &[(1_500, 0)], 0),
        urgent(0, &[(500, 0)], 300),
    ];
    let mut cpu = Cpu::following_the_plan_of(&jobs);
    assert_eq!(cpu.run(), [12_000, 14_000, 12_200]);
}

fn any_job() -> impl Strategy<Value = Job> {
    let burst = (0..10_000u64, prop_oneof![Just(0), 0..30_000u64]);
    let spawned = prop_oneof![Just(0), 0..500_000u64];
    (0..4u8, vec(burst, 1..4), 0..5_000u64, spawned).prop_map(
        |(priority, bursts, spared, spawned)| Job {
            priority,
            bursts,
            spared,
            spawned,
            deadline: None,
        },
    )
}

/// Draws sets of jobs with an order in which all are in time. That order is drawn first, and each deadline is the
/// job's end in it, or later. Every class has some deadlines, so that all are strict.
fn feasible() -> impl Strategy<Value = Vec<Job>> {
    let slack = prop_oneof![Just(0), 0..5_000u64, 0..1_000_000u64];
    let one = (
        any_job(),
        proptest::option::weighted(0.8, slack),
        any::<u64>(),
    );
    vec(one, 1..=60).prop_map(|mut drawn| {
        drawn.sort_by_key(|(job, _, at)| (job.priority.wrapping_sub(1), *at));
        let mut now = 0;
        let mut class = None;
        for (job, slack, _) in &mut drawn {
            now += job.run();
            if class.replace(job.priority) != Some(job.priority) {
                slack.get_or_insert(0);
            }
            job.deadline = slack.map(|slack| now + job.blocked() + slack);
        }
        // They are spawned in another order.
        drawn.sort_by_key(|(_, _, at)| at.rotate_left(32));
        drawn.into_iter().map(|(job, ..)| job).collect()
    })
}

proptest! {
    #![proptest_config(proptest_config(400))]

    #[test]
    fn every_feasible_set_is_executed_in_time(jobs in feasible()) {
        let (order, late) = order_and_late(&jobs);
        prop_assert_eq!(late, Vec::<usize>::new());
        let class = |&i: &usize| jobs[i].priority.wrapping_sub(1);
        prop_assert!(order.iter().map(class).is_sorted());
        // Every task runs where it was planned, or earlier.
        let mut cpu = Cpu::following_the_plan_of(&jobs);
        let planned = ends(&jobs, &order, 0);
        for (place, (&end, planned)) in cpu.run().iter().zip(planned).enumerate() {
            let bound = planned + slack(&jobs, &order, place);
            prop_assert!(end <= bound, "{end} > {bound}");
            let deadline = jobs[place].deadline.unwrap_or(u64::MAX);
            prop_assert!(planned <= deadline, "{planned} > {deadline}");
        }
    }
}

proptest! {
    #![proptest_config(proptest_config(200))]

    /// One task has a deadline that it cannot meet. The plan names a late task, and all others are in time.
    #[test]
    fn infeasible_set_names_the_late_tasks(jobs in feasible(), which in any::<Index>()) {
        let mut jobs = jobs;
        let which = which.index(jobs.len());
        let job = &mut jobs[which];
        job.bursts[0].0 += 1; // else it may have nothing to do
        job.deadline = Some(job.run() + job.blocked() - 1);
        let (order, late) = order_and_late(&jobs);
        prop_assert!(!late.is_empty());
        let mut cpu = Cpu::following_the_plan_of(&jobs);
        let ends = cpu.run().iter().enumerate();
        let ends = ends.map(|(place, end)| end.saturating_sub(slack(&jobs, &order, place)));
        let followed = late_by(&jobs, &ends.collect::<Vec<_>>());
        prop_assert!(followed.iter().all(|i| late.contains(i)));
    }
}

proptest! {
    #![proptest_config(proptest_config(300))]

    /// The jobs have no deadlines. [`Cpu::check_order`] looks at every pick and tick.
    #[test]
    fn classes_are_followed_one_after_the_other(jobs in vec(any_job(), 1..40)) {
        Cpu::following_the_plan_of(&jobs).run();
    }
}
