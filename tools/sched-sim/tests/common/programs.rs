//! Programs of tasks that wait for each other, as workloads, and their recordings.

use axsched_ext::{
    clock::VirtualClock,
    model::{Config, run},
    pbg::{
        About, ControlSource, PbgScheduler, PbgTask, PerThread,
        stored::{Label, Program, StoredProfile, StoredTask, Timing, merge},
    },
    units::TaskKey,
};
use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};
use sched_sim::{
    programs::{Programs, START},
    time::{Clock, set_now},
    workload::{Arrival, Job, Peer, Then, Wakes, Work, Workload},
};

use super::{MS, TICK_NS};

/// A part of a task: it computes, wakes others, and then waits for one.
#[derive(Clone, Debug, Default)]
pub struct Part {
    pub run_ns: u64,
    /// At most two tasks, which it wakes at its end.
    pub wakes: Vec<usize>,
    pub wait: Option<usize>,
}

/// The parts of each task. All tasks are there at the start.
pub type Tasks = Vec<Vec<Part>>;

/// Returns a number below `count`.
pub fn below(random: &mut Xoshiro256PlusPlus, count: usize) -> usize {
    ((u128::from(random.next_u64()) * count as u128) >> 64) as usize
}

/// The places of waits and wakes in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// A task waits before it computes, for the result of another at its end.
    Results,
    /// Waits and wakes are anywhere, two thirds of the wakes at the end.
    Anywhere,
}

/// Returns 2 to `most` tasks with random times of 1 to 400 ms and random waits. No task waits for one
/// that waits for it.
pub fn random_tasks(places: Places, seed: u64, most: usize) -> Tasks {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut pick = |count| below(&mut random, count);
    let count = 2 + pick(most - 1);
    let longest = [40, 400][pick(2)];
    let mut tasks: Tasks = (0..count)
        .map(|_| {
            let part = |run_ms| Part {
                run_ns: run_ms as u64 * MS,
                ..Part::default()
            };
            let mut parts: Vec<Part> = (0..1 + pick(3)).map(|_| part(1 + pick(longest))).collect();
            // It may wait before it computes.
            parts.insert(0, part(0));
            parts
        })
        .collect();
    // A task may wait for those before it in this list.
    let mut list: Vec<usize> = (0..count).collect();
    for at in (1..count).rev() {
        list.swap(at, pick(at + 1));
    }
    for _ in 0..pick(2 * count) {
        let (first, second) = (pick(count), pick(count));
        if first == second {
            continue;
        }
        let (waker, waiter) = (list[first.min(second)], list[first.max(second)]);
        let last = tasks[waker].len() - 1;
        let (at, before) = match places {
            Places::Results => (last, 0),
            Places::Anywhere if pick(3) > 0 => (last, pick(tasks[waiter].len() - 1)),
            Places::Anywhere => (1 + pick(last), pick(tasks[waiter].len() - 1)),
        };
        let is_free = tasks[waiter][before].wait.is_none();
        if is_free && tasks[waker][at].wakes.len() < 2 {
            tasks[waker][at].wakes.push(waiter);
            tasks[waiter][before].wait = Some(waker);
        }
    }
    tasks
}

/// Returns the workload of these tasks.
pub fn workload(tasks: &Tasks) -> Workload {
    let job = |(number, parts): (usize, &Vec<Part>)| {
        let steps = parts.iter().map(|part| {
            let mut work = Work::new(1, part.run_ns as f64, Then::Yield);
            for (wakes, &whom) in work.wakes.iter_mut().zip(&part.wakes) {
                *wakes = Wakes {
                    count: 1,
                    whom: Some(Peer::Task(whom)),
                    after_ns: part.run_ns as f64,
                };
            }
            work.then = part.wait.map_or(Then::Exit, Then::Wait);
            work
        });
        Job {
            name: format!("t{number}"),
            label: None,
            parent: None,
            arrival: Arrival::After(0.0),
            steps: steps.collect(),
        }
    };
    Workload {
        jobs: tasks.iter().enumerate().map(job).collect(),
        gc_look_ns: None,
    }
}

/// Returns the tasks in this order.
fn sorted(tasks: &Tasks, order: &[usize]) -> Tasks {
    let place = |task: usize| order.iter().position(|&other| other == task);
    let there = |task: usize| place(task).expect("the order has all tasks");
    let moved = |part: &Part| Part {
        wakes: part.wakes.iter().copied().map(there).collect(),
        wait: part.wait.map(there),
        ..part.clone()
    };
    let of = |&task: &usize| tasks[task].iter().map(moved).collect();
    order.iter().map(of).collect()
}

/// Returns the merged recordings of tasks that main spawns in their order, and in the opposite one,
/// and the tasks in the order of the profile. A wait that does not happen in one recording happens in
/// the other.
pub fn record_twice(tasks: &Tasks) -> (Tasks, StoredProfile) {
    let forward: Vec<usize> = (0..tasks.len()).collect();
    let backward: Vec<usize> = forward.iter().rev().copied().collect();
    let recorded = [forward, backward].map(|order| {
        let mut profile = record(&workload(&sorted(tasks, &order)));
        for (task, number) in profile.tasks.iter_mut().zip(order) {
            let name = number.to_string();
            task.key = TaskKey::labelled(&name);
            task.label = Some(Label::new(&name).expect("it is short"));
        }
        profile
    });
    let profile = merge(&recorded).expect("they have the same tasks");
    let number = |task: &StoredTask| task.label?.as_str().parse().ok();
    let order: Option<Vec<usize>> = profile.tasks.iter().map(number).collect();
    (sorted(tasks, &order.expect("all have numbers")), profile)
}

/// Returns the recording that PBG makes of a workload under round robin, on one CPU.
pub fn record(workload: &Workload) -> StoredProfile {
    Clock::of_frequency(1_000_000_000).install();
    let control = PerThread::renew();
    let config = Config {
        tick_period: TICK_NS,
        call_cost: 100,
        switch_cost: 40,
        on_time: set_now,
        on_call: |what| {
            if what == START {
                PerThread::control().measure_start().expect("it begins");
            }
        },
        repick_after_yield: true,
        time_limit: Some(u64::MAX / 4),
        breaks_deadlocks: true,
        is_checked: false,
        ..Config::default()
    };
    let main = Programs::new(workload, true).main(TICK_NS, 0);
    let made = |_| PbgScheduler::<_, VirtualClock, PerThread>::new();
    run(&config, &main, made, PbgTask::new).expect("it ends");
    control
        .measure_end_by::<VirtualClock>()
        .expect("it measured");
    let about = About {
        program: Program::scaled("by hand", 1),
        frequency_hz: 1_000_000_000,
        cpus: 1,
        timing: Timing::Counted,
    };
    let profile = control.profile(&about).expect("there is memory");
    PerThread::retire();
    profile.expect("a measurement")
}

fn part(run_ms: u64, wakes: &[usize], wait: Option<usize>) -> Part {
    Part {
        run_ns: run_ms * MS,
        wakes: wakes.to_vec(),
        wait,
    }
}

/// The items of a pipeline, and those that fit between two of its stages.
const ITEMS: usize = 60;
const ROOM: usize = 2;

/// Returns four pipelines of three stages. The order of their longest stages is not that of their
/// work.
pub fn pipelines() -> Tasks {
    let stages_ms = [[9, 1, 1], [5, 5, 5], [2, 3, 1], [4, 4, 3]];
    let mut tasks = Tasks::new();
    for stages_ms in stages_ms {
        let first = tasks.len();
        for (stage, run_ms) in stages_ms.into_iter().enumerate() {
            let before = stage.checked_sub(1).map(|stage| first + stage);
            let after = (stage < 2).then_some(first + stage + 1);
            let mut parts = Vec::new();
            for item in 0..ITEMS {
                parts.extend(before.map(|before| part(0, &[], Some(before))));
                // It takes an item, which makes room, and waits for room for its own.
                let room = after.filter(|_| item >= ROOM);
                let taken: Vec<usize> = before.into_iter().collect();
                parts.push(part(run_ms, &taken, room));
                let handed: Vec<usize> = after.into_iter().collect();
                parts.push(part(0, &handed, None));
            }
            tasks.push(parts);
        }
    }
    tasks
}

/// Returns a program that forks and joins, with a long chain beside short tasks.
pub fn fork_and_join() -> Tasks {
    let mut tasks = vec![vec![part(20, &[], None)]];
    // Each wakes its two successors at its end: a chain and a fan.
    for number in 1..=4 {
        let next = if number < 4 {
            vec![number + 1]
        } else {
            vec![13]
        };
        tasks.push(vec![part(0, &[], Some(number - 1)), part(120, &next, None)]);
    }
    tasks[0][0].wakes = vec![1, 5];
    for number in 5..=12 {
        let next = if number < 12 {
            vec![number + 1]
        } else {
            vec![13]
        };
        let waits = part(0, &[], Some(if number == 5 { 0 } else { number - 1 }));
        tasks.push(vec![waits, part(5, &next, None), part(35, &[], None)]);
    }
    let mut join = vec![part(0, &[], Some(4)), part(0, &[], Some(12))];
    join.push(part(10, &[], None));
    tasks.push(join);
    tasks
}

/// Returns a program in which a short task lets many others go on, beside tasks of medium length.
pub fn gate() -> Tasks {
    let mut tasks = vec![vec![part(10, &[1, 2], None)]];
    for number in 1..=8 {
        let next: Vec<usize> = [2 * number + 1, 2 * number + 2]
            .into_iter()
            .filter(|&next| next <= 8)
            .collect();
        let waits = part(0, &[], Some((number - 1) / 2));
        tasks.push(vec![waits, part(4, &next, None), part(6, &[], None)]);
    }
    for _ in 0..6 {
        tasks.push(vec![part(9, &[], None), part(9, &[], None)]);
    }
    tasks
}
