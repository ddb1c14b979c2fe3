//! Rules 14 to 27, which run programs in the model.

use super::rng::Rng;
use super::subject::{Holds, Subject, expect};
use super::{Beside, Load};
use crate::model::{Config, CpuMask, Line, MaxWait, ModelScheduler, Op, Program};

/// Returns a `main` that spawns all of `children` and joins them in order.
fn family(children: impl IntoIterator<Item = Program>) -> Program {
    let mut ops: Vec<Op> = children.into_iter().map(Op::Spawn).collect();
    ops.extend((0..ops.len()).map(Op::Join));
    Program::new("main", ops)
}

pub(super) fn yielders_take_turns<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    let yielder = |(n, name): (usize, &str)| Program::repeat(name, n, &[Op::Run(1), Op::Yield]);
    let program = family([(10, "short"), (60, "long"), (30, "middle")].map(yielder));
    let report = s.run(s.config(), program.clone())?;
    for (count, name) in [(10, "short"), (60, "long"), (30, "middle")] {
        let yields = report.task(name).map_or(0, |task| task.yields);
        expect("yields in the model", count, yields, yields == count)?;
    }
    s.run_everywhere(s.config(), program)
}

pub(super) fn gc_stops_no_task<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    let dead = Program::new("dead", [Op::Run(1)]);
    let worker = Program::repeat("worker", 30, &[Op::Run(3), Op::Yield, Op::Sleep(5)]);
    let mut main = vec![Op::Spawn(dead.clone()), Op::Spawn(dead), Op::Join(0)];
    main.extend([Op::Spawn(worker.clone()), Op::Spawn(worker)]);
    // The two dead tasks are held all this time.
    main.extend([Op::Join(2), Op::DropHandle(0), Op::Run(30), Op::Join(3)]);
    s.run_everywhere(s.config(), Program::new("main", main))
}

pub(super) fn sleepers_wake<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    let sleeper = Program::repeat("sleeper", 5, &[Op::Run(2), Op::Sleep(15)]);
    let busy = Program::repeat("busy", 40, &[Op::Run(5), Op::Yield]);
    s.run_everywhere(s.config(), family([sleeper.clone(), sleeper.clone()]))?;
    s.run_everywhere(s.config(), family([sleeper.clone(), busy, sleeper]))
}

pub(super) fn the_notified_wake<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    for resched in [false, true] {
        let link = |queue: u32| {
            let timeout = None;
            let next = Op::Notify {
                queue: (queue + 1) % 5,
                resched,
            };
            Program::repeat("link", 6, &[Op::Wait { queue, timeout }, Op::Run(2), next])
        };
        let mut ops = family((0..5).map(link)).ops.to_vec();
        ops.insert(5, Op::Notify { queue: 0, resched });
        s.run_everywhere(s.config(), Program::new("main", ops))?;
    }
    Ok(())
}

pub(super) fn late_tasks_get_their_turn<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    let old = Program::repeat("old", 100, &[Op::Run(6), Op::Yield]);
    let late = Program::repeat("late", 10, &[Op::Run(6), Op::Yield]);
    let mut main = vec![Op::Spawn(old.clone()), Op::Spawn(old), Op::Sleep(400)];
    main.extend([Op::Spawn(late.clone()), Op::Spawn(late)]);
    main.extend([Op::Join(2), Op::Join(3)]);
    s.run_everywhere(s.config(), Program::new("main", main))
}

pub(super) fn families_end<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    let leaf = Program::new("leaf", [Op::Run(1)]);
    let broad = family(std::iter::repeat_n(leaf.clone(), 60));
    let deep = (0..20).fold(leaf, |child, _| {
        Program::new("node", [Op::Spawn(child), Op::Yield, Op::Join(0)])
    });
    s.run_everywhere(s.config(), broad)?;
    s.run_everywhere(s.config(), family([deep]))
}

pub(super) fn a_block_may_turn_into_a_yield<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    // The shorter the period, the oftener a tick falls between poll and park, and the notifier runs
    // just then.
    let timeout = None;
    let waiter = Program::repeat("waiter", 40, &[Op::Wait { queue: 1, timeout }]);
    let notify = Op::notify(1);
    let notifier = Program::repeat("notifier", 40, &[Op::Run(3), notify]);
    for tick_period in 7..12 {
        let config = Config {
            tick_period,
            ..s.config()
        };
        s.run_everywhere(config, family([waiter.clone(), notifier.clone()]))?;
    }
    Ok(())
}

pub(super) fn preemption_respects_the_guard<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    let guarded = [Op::PreemptOff, Op::Run(70), Op::PreemptOff, Op::Run(70)];
    let released = [
        Op::PreemptOn,
        Op::Run(70),
        Op::Yield,
        Op::PreemptOn,
        Op::Run(70),
    ];
    let task = Program::new("guarded", guarded.into_iter().chain(released));
    let other = Program::new("other", [Op::Run(300)]);
    s.run_everywhere(s.config(), family([task.clone(), other, task]))
}

pub(super) fn the_preempted_stay_ready<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    let long = Program::new("long", [Op::Run(500)]);
    for preempt in [false, true] {
        let config = Config {
            preempt,
            ..s.config()
        };
        s.run_everywhere(config, family([long.clone(), long.clone(), long.clone()]))?;
    }
    Ok(())
}

pub(super) fn migrants_arrive<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    let to = |cpu| Op::Migrate(CpuMask::one(cpu));
    let tour = [to(1), Op::Run(3), to(0), Op::Yield, Op::Sleep(3), to(1)];
    let main = || family([(); 3].map(|()| Program::repeat("migrant", 10, &tour)));
    // A helper lives for a few units. With these periods ticks fall into it, and a policy that
    // preempts on ticks preempts some of the helpers.
    for tick_period in 7..12 {
        let config = Config {
            tick_period,
            ..s.config()
        };
        s.run_everywhere(config, main())?;
    }
    Ok(())
}

pub(super) fn a_wake_may_ask_for_rescheduling<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    let mut rng = Rng(s.promises.seed ^ 24);
    for _ in 0..s.promises.random_programs / 4 {
        let config = Config {
            wake_resched: true,
            ..random_config(s, &mut rng)
        };
        let program = random_program(&mut rng, "main", &mut 12);
        s.run_unbounded(config, program)?;
    }
    Ok(())
}

/// The number of yields in a tick in rule 25, where a yield costs a call and a switch.
const YIELDS_PER_TICK: u64 = 16;

pub(super) fn a_job_gets_done_beside_yielders<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    for yielders in [1, 2, 3, 10, 100] {
        for job_ticks in [1_u64, 20, 100] {
            let config = s.config();
            let yield_cost = config.call_cost + config.switch_cost;
            let beside = Beside {
                // The job's switches are its time, too: at most one a tick.
                job_ticks: job_ticks + job_ticks.div_ceil(YIELDS_PER_TICK - 1) + 1,
                yielders: yielders + 1,
                yields_per_tick: YIELDS_PER_TICK,
            };
            let Some(bound) = (s.promises.done_beside)(&beside) else {
                return Ok(());
            };
            let tick_period = YIELDS_PER_TICK * yield_cost;
            let config = Config {
                tick_period,
                // This limit only ends a run that is far too late. The check below compares with
                // the bound.
                time_limit: Some((2 * bound + 100) * tick_period),
                ..config
            };
            let report = s.run(config, beside_yielders(job_ticks * tick_period, yielders))?;
            let took = report.task("job").and_then(|job| job.turnaround());
            let took = took.map_or(u64::MAX, |units| units.div_ceil(tick_period));
            let call = format!("a job of {job_ticks} ticks beside {yielders} yielders and gc");
            expect(
                &call,
                format!("its end after {bound} ticks at most"),
                took,
                took <= bound,
            )?;
        }
    }
    Ok(())
}

/// Returns a program with a job beside yielders. The job notifies when it is done, which the
/// yielders wait for. Meanwhile `main` holds a dead task's handle, over which `gc` spins.
fn beside_yielders(job_units: u64, yielders: u64) -> Program {
    const DONE: u32 = 0;
    let (queue, resched, look) = (DONE, false, 0);
    let job = [Op::Run(job_units), Op::Notify { queue, resched }];
    let yielder = Program::new("yielder", [Op::YieldUntil { queue, look }]);
    let mut ops = vec![Op::Spawn(Program::new("dead", [])), Op::Join(0)];
    ops.extend([Op::PreemptOff, Op::Spawn(Program::new("job", job))]);
    ops.extend((0..yielders).map(|_| Op::Spawn(yielder.clone())));
    ops.extend([Op::PreemptOn, Op::Join(1)]);
    Program::new("main", ops)
}

pub(super) fn no_task_waits_for_longer_than_promised<S: ModelScheduler>(
    s: &mut Subject<'_, S>,
) -> Holds {
    let mut rng = Rng(s.promises.seed ^ 26);
    // The ticks are long, so that the sleepers stay in step.
    let config = Config {
        tick_period: 1_000,
        ..s.config()
    };
    let crowd = crowd(config.tick_period);
    if (s.promises.max_wait)(&Load::of(&crowd, &config)) != MaxWait::default() {
        s.run_everywhere(config, crowd)?;
    }
    for _ in 0..s.promises.random_programs / 10 {
        let config = Config {
            tick_period: 15 + rng.below(20),
            switch_cost: rng.below(4),
            ..s.config()
        };
        let program = busy_program(&mut rng, config.tick_period);
        if (s.promises.max_wait)(&Load::of(&program, &config)) != MaxWait::default() {
            s.run_everywhere(config, program)?;
        }
    }
    Ok(())
}

/// Returns many hogs and half as many sleepers in step, which on several CPUs change queues at each
/// wake.
fn crowd(tick: u64) -> Program {
    let hog = Program::new("hog", [Op::Run(60 * tick)]);
    let sleeper = [Op::Run(tick + tick / 2), Op::Sleep(tick + tick / 2)];
    let sleeper = Program::repeat("sleeper", 200, &sleeper);
    let hogs = std::iter::repeat_n(hog, 32);
    family(hogs.chain(std::iter::repeat_n(sleeper, 16)))
}

/// Returns two to seven tasks that are ready most of the time, some of them late.
fn busy_program(rng: &mut Rng, tick: u64) -> Program {
    const DONE: u32 = 0;
    let (queue, resched, look) = (DONE, false, 0);
    let (mut ops, mut ending) = (Vec::new(), Vec::new());
    for child in 0..2 + rng.below(6) as usize {
        if rng.one_in(3) {
            ops.push(Op::Sleep((10 + rng.below(200)) * tick));
        }
        let kind = rng.below(5);
        let mut up_to = |ticks: u64| 1 + rng.below(ticks * tick);
        let task = match kind {
            0 => Program::new("hog", [Op::Run(up_to(600))]),
            1 => Program::repeat("worker", 60, &[Op::Run(up_to(5)), Op::Yield]),
            2 => Program::repeat("sleeper", 10, &[Op::Run(up_to(3)), Op::Sleep(up_to(60))]),
            3 => Program::new("late hog", [Op::Sleep(up_to(400)), Op::Run(up_to(300))]),
            _ => Program::new("yielder", [Op::YieldUntil { queue, look }]),
        };
        if &*task.name != "yielder" {
            ending.push(Op::Join(child));
        }
        ops.push(Op::Spawn(task));
    }
    ops.extend(ending);
    ops.push(Op::Notify { queue, resched });
    Program::new("main", ops)
}

pub(super) fn random_programs<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    let mut rng = Rng(s.promises.seed ^ 25);
    for _ in 0..s.promises.random_programs {
        let config = random_config(s, &mut rng);
        let program = random_program(&mut rng, "main", &mut 12);
        s.run(config, program)?;
    }
    Ok(())
}

fn random_config<S: ModelScheduler>(s: &Subject<'_, S>, rng: &mut Rng) -> Config {
    Config {
        line: Line::ALL[rng.below(2) as usize],
        cpus: 1 + rng.below(s.promises.max_cpus as u64) as usize,
        preempt: !rng.one_in(4),
        // The period is longer than a switch and a call. Otherwise no task makes progress under a
        // policy that preempts on every tick.
        tick_period: 7 + rng.below(20),
        switch_cost: rng.below(4),
        ..s.config()
    }
}

/// Returns a program that ends under any correct scheduler. It waits only for its own children, and
/// for notifications only for a limited time. `budget` limits the tasks.
fn random_program(rng: &mut Rng, name: &str, budget: &mut u64) -> Program {
    let mut ops = Vec::new();
    let mut spawned = 0;
    for _ in 0..rng.below(12) {
        match rng.below(13) {
            0..=2 => ops.push(Op::Run(rng.below(25))),
            3 | 4 => ops.push(Op::Yield),
            5 => ops.push(Op::Sleep(rng.below(40))),
            6 => ops.push(Op::Wait {
                queue: rng.below(2) as u32,
                timeout: Some(rng.below(60)),
            }),
            7 => ops.push(Op::Notify {
                queue: rng.below(2) as u32,
                resched: rng.one_in(2),
            }),
            8 | 9 if *budget > 0 => {
                *budget -= 1;
                let name = ["a", "b", "c", "d"][rng.below(4) as usize];
                ops.push(Op::Spawn(random_program(rng, name, budget)));
                spawned += 1;
            }
            10 if spawned > 0 => {
                let child = rng.below(spawned) as usize;
                ops.push(if rng.one_in(2) {
                    Op::Join(child)
                } else {
                    Op::DropHandle(child)
                });
            }
            11 => ops.push(Op::Migrate(CpuMask(rng.next()))),
            12 => {
                let run = Op::Run(rng.below(25));
                ops.extend([Op::PreemptOff, run.clone(), Op::Yield, run, Op::PreemptOn]);
            }
            _ => ops.push(Op::SetPriority(rng.below(50) as isize - 25)),
        }
    }
    if rng.one_in(2) {
        ops.extend((0..spawned as usize).map(Op::Join));
    }
    Program::new(name, ops)
}
