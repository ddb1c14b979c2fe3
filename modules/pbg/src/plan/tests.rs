//! Plans rule by rule.

// This file is long because the rules share their profiles.

use core::num::NonZeroU8;

use proptest::prelude::*;

use super::*;
use pbg_profile::samples::{child_of_root, of, phase, profile as any_profile, woken};
use pbg_profile::{
    Ended, Figure, MAX_PHASES, PhaseOrder, Phases, StoredOrder, StoredPhase, Waker, Wakes,
};

const MAX: u64 = u64::MAX;

/// Returns the order of a plan, as places in the profile.
fn places(plan: &Plan, profile: &StoredProfile) -> Vec<usize> {
    let place = |task: &PlannedTask| {
        let of_key = |stored: &StoredTask| stored.key == task.key;
        profile.tasks.iter().position(of_key).unwrap()
    };
    plan.tasks().iter().map(place).collect()
}

fn column<A>(plan: &Plan, field: impl Fn(&PlannedTask) -> A) -> Vec<A> {
    plan.tasks().iter().map(field).collect()
}

/// Returns a profile of children of the root that run for `runs`, each changed by `change`.
fn changed(runs: &[u64], change: impl Fn(usize, &mut StoredTask)) -> StoredProfile {
    let task = |(i, &run): (usize, &u64)| {
        let mut task = child_of_root(i as u32, run);
        change(i, &mut task);
        task
    };
    of(runs.iter().enumerate().map(task).collect())
}

/// Returns a profile of tasks with these run times and deadlines.
fn with_latest(tasks: &[(u64, Option<u64>)]) -> StoredProfile {
    let runs: Vec<_> = tasks.iter().map(|task| task.0).collect();
    changed(&runs, |i, task| task.deadline = tasks[i].1.map(Counts))
}

#[test]
fn rule_1_expected_is_the_mean_and_promises_are_checked_with_the_most() {
    let twice = |least, most| Figure {
        total: least + most,
        least,
        most,
    };
    let mut profile = changed(&[0, 0], |i, task| {
        task.runs = 2;
        task.figures.run = [twice(10, 21), twice(2, 40)][i];
        task.figures.yields = twice(3, 8);
    });
    profile.header.runs = 2;
    let plan = Plan::of(&profile).unwrap();
    assert_eq!(column(&plan, |t| (t.run.0, t.most.0)), [(15, 21), (21, 40)]);
    assert_eq!(column(&plan, |t| t.yields), [8, 8]);
    for (deadline, late) in [(40, 0), (39, 1)] {
        profile.tasks[1].deadline = Some(Counts(deadline));
        assert_eq!(Plan::of(&profile).unwrap().late().len(), late);
    }
}

#[test]
fn rule_2_priorities_are_strict() {
    let runs = [1, 100, 7, 50, 3, 200];
    let priorities = [0, 255, 2, 1, 2, 1];
    for deadline in [None, Some(Counts(1000))] {
        let profile = changed(&runs, |i, task| {
            task.priority = NonZeroU8::new(priorities[i]);
            task.deadline = deadline.filter(|_| priorities[i] == 2);
        });
        let plan = Plan::of(&profile).unwrap();
        assert_eq!(places(&plan, &profile), [3, 5, 4, 2, 1, 0]);
        let bands = match deadline {
            None => [0, 0, 1, 1, 2, 3],
            Some(_) => [0, 0, 1, 2, 3, 4],
        };
        assert_eq!(column(&plan, |t| t.band), bands);
        assert!(plan.late().is_empty());
    }
}

fn steps_of(change: impl Fn(&mut StoredTask)) -> Vec<(u64, u64)> {
    let profile = changed(&[1000], |_, task| change(task));
    let mut steps = Vec::new();
    push_steps(&profile.tasks[0], &mut steps);
    let plan = Plan::of(&profile).unwrap();
    let planned = &plan.tasks()[0];
    if planned.weight == Weight::WHOLE {
        let job = Step {
            times: 1,
            run: planned.run,
        };
        assert_eq!(plan.steps(), [job]);
    } else {
        assert_eq!(plan.steps(), steps);
    }
    assert_eq!(planned.steps, 0..plan.steps().len() as u32);
    let first = planned.weight.before(plan.steps()[0].run, planned.run);
    assert_eq!(planned.sort_key, first);
    steps.iter().map(|s| (s.times, s.run.0)).collect()
}

#[test]
fn rule_3_bursts_are_from_block_to_block() {
    use Ended::{Block, Exit, Preemption, Yield};
    let as_run = |runs: u32, list: &[(Ended, u64, u64)]| {
        steps_of(|task| {
            task.runs = runs;
            let phases = list.iter().map(|&(ended, n, run)| phase(ended, n, run, 0));
            task.phases.list = phases.collect();
        })
    };
    // Never blocks: one burst, however often it yields or is preempted.
    assert_eq!(as_run(1, &[(Exit, 1, 1000)]), [(1, 1000)]);
    let yields = [(Yield, 50, 500), (Preemption, 2, 300), (Exit, 1, 200)];
    assert_eq!(as_run(1, &yields), [(1, 1000)]);
    // Until the record ended.
    assert_eq!(as_run(1, &yields[..2]), [(1, 800)]);
    let open = [(Block, 2, 80), (Yield, 3, 30)];
    assert_eq!(as_run(1, &open), [(2, 40), (1, 30)]);
    // Equal bursts stay together; yields count to the first after them.
    let mixed = [
        (Block, 4, 100),
        (Yield, 10, 60),
        (Block, 3, 90),
        (Yield, 5, 5),
        (Block, 1, 20),
        (Exit, 1, 7),
    ];
    let steps = [(4, 25), (1, 90), (2, 30), (1, 25), (1, 7)];
    assert_eq!(as_run(1, &mixed), steps);
    // The same three times, and once more in four runs.
    let thrice = mixed.map(|(ended, n, run)| (ended, 3 * n, 3 * run));
    assert_eq!(as_run(3, &thrice), steps);
    assert_eq!(
        as_run(4, &[(Block, 9, 90), (Exit, 4, 40)]),
        [(2, 10), (1, 10)]
    );
    assert_eq!(
        as_run(4, &[(Block, 1, 10), (Exit, 4, 40)]),
        [(1, 10), (1, 10)]
    );
    // No more than phases, whatever they say.
    let alternating = [(Yield, MAX, MAX), (Block, MAX, MAX)];
    let alternating: Vec<_> = alternating.into_iter().cycle().take(MAX_PHASES).collect();
    assert_eq!(as_run(1, &alternating).len(), MAX_PHASES);
}

#[test]
fn rule_3_of_unknown_order_all_bursts_are_equal() {
    let by_ending = |runs: u32, list: &[(Ended, u64)]| {
        steps_of(|task| {
            task.runs = runs;
            let list = list.iter().map(|&(ended, n)| phase(ended, n, 1, 0));
            task.phases = Phases {
                order: PhaseOrder::ByEnding,
                list: list.collect(),
            };
        })
    };
    use Ended::{Block, Exit, Yield};
    assert_eq!(
        by_ending(1, &[(Yield, 9), (Block, 4), (Exit, 1)]),
        [(5, 200)]
    );
    assert_eq!(by_ending(1, &[(Yield, 9), (Block, 4)]), [(4, 250)]); // one is the exit
    assert_eq!(by_ending(1, &[(Yield, 9)]), [(1, 1000)]);
    assert_eq!(by_ending(2, &[(Block, 8), (Exit, 2)]), [(5, 100)]);

    let no_phases = |blocks, blocked| {
        steps_of(|task| {
            task.figures.blocks = Figure::once(blocks);
            task.figures.blocked = Figure::once(blocked);
        })
    };
    assert_eq!(no_phases(0, 0), [(1, 1000)]);
    assert_eq!(no_phases(1, 0), [(1, 1000)]); // the exit, as it never came back
    assert_eq!(no_phases(3, 77), [(4, 250)]);
    assert_eq!(no_phases(MAX, MAX), [(MAX, 0)]);
}

/// A change to a task of 1,000 that blocks `blocks` times for 100 each, in equal
/// bursts.
fn blocking(blocks: u64) -> impl Fn(&mut StoredTask) {
    move |task| {
        let run = 1000 * blocks / (blocks + 1);
        task.figures.blocked = Figure::once(blocks * 100);
        task.phases.list = vec![
            phase(Ended::Block, blocks, run, blocks * 100),
            phase(Ended::Exit, 1, 1000 - run, 0),
        ];
    }
}

#[test]
fn rule_4_shortest_first_by_a_burst_and_a_part_of_what_follows() {
    let mut profile = changed(&[900, 300, 500, 300, 0], |_, _| {});
    let plan = Plan::of(&profile).unwrap();
    assert_eq!(places(&plan, &profile), [4, 1, 3, 2, 0]);
    assert_eq!(column(&plan, |t| t.band), [0; 5]);
    assert_eq!(column(&plan, |t| t.weight), [Weight::WHOLE; 5]);
    // The longest of all blocks: it has 1000, in bursts of 50.
    profile.tasks[0] = changed(&[1000], |_, task| blocking(19)(task))
        .tasks
        .remove(0);
    for (blocked, order, key) in [
        (0, [4, 1, 3, 2, 0], 1000),    // a job, however often it blocks
        (1000, [4, 1, 3, 2, 0], 783),  // 1000/1296 of the 950 that follow, and 50
        (9_000, [4, 1, 3, 0, 2], 308), // 1000/3671
        (64_000, [4, 0, 1, 3, 2], 97), // 1/20
        (MAX, [4, 0, 1, 3, 2], 50),    // nothing
    ] {
        profile.tasks[0].figures.blocked = Figure::once(blocked);
        let plan = Plan::of(&profile).unwrap();
        assert_eq!(places(&plan, &profile), order, "{blocked}");
        let place = order.iter().position(|&place| place == 0).unwrap();
        assert_eq!(plan.tasks()[place].sort_key, Counts(key), "{blocked}");
    }
}

/// From one number of blocks to the next the order changes by little, and in the right direction.
#[test]
fn rule_4_has_no_cliff() {
    let before = |blocks: u64| {
        let profile = changed(&[1_000_000], |_, task| {
            blocking(blocks)(task);
            task.figures.blocked.total *= 1000;
            task.figures.run.total = 1_000_000;
            task.phases
                .list
                .iter_mut()
                .for_each(|phase| phase.run.0 *= 1000);
        });
        Plan::of(&profile).unwrap().tasks()[0].sort_key.0
    };
    assert_eq!(before(0), 1_000_000);
    for blocks in 1..1000 {
        let (fewer, more) = (before(blocks - 1), before(blocks));
        assert!(more <= fewer, "{blocks}: {fewer}, then {more}");
        assert!(fewer - more <= fewer / 16, "{blocks}: {fewer}, then {more}");
    }
}

#[test]
fn rule_4_a_weight_is_a_part_at_any_size() {
    let of = |run, blocked, blocks| Weight::of(Counts(run), Counts(blocked), blocks);
    for whole in [of(0, 0, 0), of(7, 1000, 0), of(7, 0, 1000), of(7, 63, 1)] {
        assert_eq!(whole, Weight::WHOLE);
    }
    assert_eq!(of(1000, 1000, BLOCKS_IN_FULL), Weight(1 << 15));
    assert_eq!(of(0, MAX, MAX), Weight(0));
    assert_eq!(of(MAX, MAX, BLOCKS_IN_FULL), Weight(1 << 15));
    for weight in [Weight(0), Weight(1 << 15), Weight::WHOLE] {
        assert_eq!(weight.before(Counts(MAX), Counts(MAX)), Counts(MAX));
    }
    assert_eq!(Weight(0).before(Counts(3), Counts(99)), Counts(3));
    assert_eq!(Weight::WHOLE.before(Counts(3), Counts(99)), Counts(99));
    assert_eq!(Weight(1 << 14).before(Counts(8), Counts(40)), Counts(16));
}

#[test]
fn rule_5_equal_is_by_arrival() {
    // Meant to be twice 6400, once 3200: noise of up to 100 is no difference.
    let profile = changed(&[6500, 6401, 3200, 6400, 3250, 6450], |_, _| {});
    let plan = Plan::of(&profile).unwrap();
    assert_eq!(places(&plan, &profile), [2, 4, 0, 1, 3, 5]);
    let keys = [3200, 3200, 6400, 6400, 6400, 6400];
    assert_eq!(column(&plan, |t| t.sort_key.0), keys);
    // One more count makes a difference. A chain of neighbours is cut and is not one group.
    let profile = changed(&[6501, 6400, 6602, 6560, 6500], |_, _| {});
    let plan = Plan::of(&profile).unwrap();
    assert_eq!(places(&plan, &profile), [1, 4, 0, 2, 3]);
    let keys = [6400, 6400, 6501, 6501, 6501];
    assert_eq!(column(&plan, |t| t.sort_key.0), keys);
    // Below 64 counts only equals are equal; at the top nothing overflows.
    let profile = changed(&[MAX, 63, MAX - 1, 62, 1, 0, 62], |_, _| {});
    let plan = Plan::of(&profile).unwrap();
    assert_eq!(places(&plan, &profile), [5, 4, 3, 6, 1, 0, 2]);
}

/// Tasks that are meant to be equal keep the order of arrival under any noise within the
/// tolerance.
#[test]
fn rule_5_noise_changes_no_order() {
    proptest!(|(noise in prop::collection::vec(0..=1000u64, 1..60))| {
        let runs: Vec<_> = noise.iter().map(|noise| 64_000 + noise).collect();
        let profile = changed(&runs, |_, _| {});
        let plan = Plan::of(&profile).unwrap();
        prop_assert!(places(&plan, &profile).is_sorted());
    });
}

#[test]
fn rule_6_the_order_in_time_has_the_least_turnaround() {
    // The order of deadlines has 50 + 60 + 63 + 73 = 246, and Smith's 3 + 53 + 63 + 73 = 192.
    // Shortest first would have 3 + 13 + 23 + 73, but 50 must end by 60.
    let tasks = [(50, Some(60)), (10, Some(70)), (3, None), (10, None)];
    let profile = with_latest(&tasks);
    let plan = Plan::of(&profile).unwrap();
    assert_eq!(places(&plan, &profile), [2, 0, 1, 3]);
    assert_eq!(column(&plan, |t| t.band), [0, 1, 2, 3]);
    // With room, shortest first; equals by arrival.
    let room = with_latest(&[(50, Some(73)), (10, Some(73)), (3, None), (10, None)]);
    assert_eq!(places(&Plan::of(&room).unwrap(), &room), [2, 1, 3, 0]);
    assert!(plan.late().is_empty());
}

#[test]
fn rule_7_in_time_counts_the_classes_before_and_the_time_blocked() {
    let deadline_of_second = |deadline: u64, priority: u8, blocked: u64| {
        let profile = changed(&[30, 20], |i, task| {
            if i == 0 {
                task.priority = NonZeroU8::new(7);
            } else {
                task.priority = NonZeroU8::new(priority);
                task.deadline = Some(Counts(deadline));
                task.figures.blocked = Figure::once(blocked);
            }
        });
        let plan = Plan::of(&profile).unwrap();
        plan.late()
            .iter()
            .map(|late| late.end.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(deadline_of_second(50, 8, 0), []);
    assert_eq!(deadline_of_second(49, 8, 0), [50]);
    assert_eq!(deadline_of_second(20, 7, 0), []); // it may be first
    assert_eq!(deadline_of_second(19, 6, 0), [20]);
    assert_eq!(deadline_of_second(55, 8, 5), []);
    assert_eq!(deadline_of_second(54, 8, 5), [55]);
    assert_eq!(deadline_of_second(5, 6, 6), [26]); // blocked for longer than that
    assert_eq!(deadline_of_second(MAX - 1, 6, MAX), [MAX]);
    assert_eq!(deadline_of_second(MAX, 6, MAX), []); // none
}

#[test]
fn stored_order_is_taken_in_place_of_deadlines_and_names_late_tasks() {
    let mut profile = with_latest(&[(30, Some(30)), (20, None), (10, Some(55))]);
    assert_eq!(places(&Plan::of(&profile).unwrap(), &profile), [0, 2, 1]);
    profile.order = Some(StoredOrder {
        cpus: 1,
        groups: vec![2, 0, 1],
    });
    let plan = Plan::of(&profile).unwrap();
    assert_eq!(places(&plan, &profile), [1, 2, 0]);
    assert_eq!(column(&plan, |task| task.band), [0, 1, 2]);
    let late = Late {
        key: profile.tasks[0].key,
        deadline: Counts(30),
        end: Counts(60),
    };
    assert_eq!(plan.late(), [late]);
    assert!(plan.is_asked_for());
}

#[test]
fn rule_8_as_few_as_can_be_are_late_and_named() {
    // 40 by 40 leaves no room for the three others, which have room together.
    let tasks = [
        (40, Some(40)),
        (10, Some(40)),
        (10, Some(45)),
        (20, Some(50)),
    ];
    let profile = with_latest(&tasks);
    let plan = Plan::of(&profile).unwrap();
    assert_eq!(places(&plan, &profile), [1, 2, 3, 0]);
    let late = Late {
        key: profile.tasks[0].key,
        deadline: Counts(40),
        end: Counts(80),
    };
    assert_eq!(plan.late(), [late]);
    // Where it has lost its deadline, a late task goes by its length: it may
    // go before those that have time.
    let profile = with_latest(&[(5, Some(4)), (50, Some(90))]);
    let plan = Plan::of(&profile).unwrap();
    assert_eq!(places(&plan, &profile), [0, 1]);
    assert_eq!(plan.late()[0].end, Counts(5));
}

#[test]
fn deadline_sums_beyond_64_bits_make_no_task_early() {
    let tasks = [
        (MAX, Some(MAX - 1)),
        (MAX, Some(MAX)),
        (1, Some(1)),
        (MAX, None),
    ];
    let profile = with_latest(&tasks);
    let plan = Plan::of(&profile).unwrap();
    assert_eq!(places(&plan, &profile), [2, 0, 1, 3]);
    let named: Vec<_> = plan
        .late()
        .iter()
        .map(|l| (l.deadline.0, l.end.0))
        .collect();
    assert_eq!(named, [(MAX - 1, MAX)]);
}

#[test]
fn the_largest_profile_has_a_plan() {
    let n = pbg_profile::MAX_TASKS as u64;
    let runs: Vec<u64> = (0..n).map(|i| i * 7919 % n).collect();
    let profile = changed(&runs, |_, task| task.deadline = Some(Counts(n * n / 4)));
    let plan = Plan::of(&profile).unwrap();
    assert_eq!(plan.tasks().len() as u64, n);
    // Equal deadlines, so the longest are given up: 0 + 1 + … + k ≤ n²/4.
    let kept = (0..n).take_while(|k| k * (k + 1) / 2 <= n * n / 4).count();
    assert_eq!(plan.late().len(), n as usize - kept);
    assert!(column(&plan, |t| t.run).is_sorted());
}

proptest! {
    #[test]
    fn any_profile_has_a_plan_with_every_task_once(profile in any_profile()) {
        prop_assert_eq!(profile.validate(), Ok(()));
        let plan = Plan::of(&profile).unwrap();
        prop_assert_eq!(Plan::of(&profile.clone()).unwrap(), plan.clone());
        let mut once = places(&plan, &profile);
        let classes = once.iter().map(|&place| {
            profile.tasks[place].priority.map_or(256, |p| u16::from(p.get()))
        });
        let by_rank: Vec<_> = classes.zip(plan.tasks()).collect();
        once.sort_unstable();
        prop_assert!(once.into_iter().eq(0..profile.tasks.len()));

        for (class, task) in &by_rank {
            let steps = task.steps.start as usize..task.steps.end as usize;
            prop_assert!((1..=MAX_PHASES).contains(&steps.len()));
            prop_assert!(plan.steps()[steps.clone()].iter().all(|step| step.times > 0));
            let first = task.weight.before(plan.steps()[steps][0].run, task.run);
            prop_assert!(task.weight <= Weight::WHOLE);
            prop_assert!(task.sort_key <= first);
            prop_assert!(first.0 - task.sort_key.0 <= task.sort_key.0 / TIE_FRACTION);
            prop_assert!(task.run <= task.most);
            prop_assert!(*class > 0);
        }
        prop_assert_eq!(plan.tasks().first().map_or(0, |task| task.band), 0);
        for pair in by_rank.windows(2) {
            let [(class, task), (next_class, next)] = pair else { unreachable!() };
            prop_assert!(class <= next_class);
            prop_assert!(next.band == task.band || next.band == task.band + 1);
            prop_assert!(class == next_class || task.band < next.band);
            prop_assert!(task.band < next.band || task.sort_key <= next.sort_key);
        }
        for late in plan.late() {
            let task = profile.tasks.iter().find(|task| task.key == late.key).unwrap();
            prop_assert_eq!(Some(late.deadline), task.deadline);
            prop_assert!(late.end > late.deadline);
        }
    }
}

/// Returns a task that waits for another, given by index, until that one exits.
fn waiting_for(waker: u16, run: u64) -> impl Fn(&mut StoredTask) {
    move |task| {
        let mut block = phase(Ended::Block, 1, 0, 1);
        block.woken_by = Waker::Task(waker);
        task.phases.list = vec![block, phase(Ended::Exit, 1, run, 0)];
    }
}

/// Makes the exit of a task wake these others.
fn exit_wakes(task: &mut StoredTask, run: u64, others: &[u16]) {
    let woken = others
        .iter()
        .map(|&other| woken(Waker::Task(other), 1, run));
    let exit = StoredPhase {
        wakes: Wakes::of(woken),
        ..phase(Ended::Exit, 1, run, 0)
    };
    match task.phases.list.last_mut() {
        Some(last) if last.ended == Ended::Exit => *last = exit,
        _ => task.phases.list.push(exit),
    }
}

/// Returns a profile of a long task for which three short ones wait, and one of middle length.
fn with_key_task() -> StoredProfile {
    changed(&[60, 30, 10, 10, 10], |i, task| match i {
        0 => exit_wakes(task, 60, &[2, 3, 4]),
        1 => {}
        _ => waiting_for(0, 10)(task),
    })
}

#[test]
fn rule_9_tasks_go_behind_those_that_they_wait_for() {
    let profile = with_key_task();
    let plan = Plan::of(&profile).unwrap();
    assert_eq!(places(&plan, &profile), [0, 2, 3, 4, 1]);
    assert_eq!(column(&plan, |t| t.band), [0, 1, 2, 3, 4]);
    assert!(!plan.is_asked_for());
}

#[test]
fn rule_9_order_of_the_profile_stands_before_the_waits() {
    let mut profile = with_key_task();
    profile.order = Some(StoredOrder {
        cpus: 4,
        groups: vec![1, 0, 0, 0, 1],
    });
    let plan = Plan::of(&profile).unwrap();
    assert_eq!(places(&plan, &profile), [2, 3, 1, 4, 0]);
    assert_eq!(column(&plan, |t| t.band), [0, 0, 0, 1, 1]);
    assert!(!plan.is_asked_for(), "the user has not asked for it");
}

#[test]
fn rule_9_priorities_stand_before_groups_and_deadlines_in_place_of_them() {
    let mut profile = with_key_task();
    profile.tasks[4].priority = NonZeroU8::new(1);
    let plan = Plan::of(&profile).unwrap();
    assert_eq!(places(&plan, &profile), [4, 0, 2, 3, 1]);
    assert!(plan.is_asked_for());
    profile.tasks[1].deadline = Some(Counts(1000));
    let plan = Plan::of(&profile).unwrap();
    assert_eq!(places(&plan, &profile), [4, 2, 3, 1, 0]);
}

/// Returns a profile of two stages that run for 10 and 30, and of a task of 20.
fn with_stages() -> StoredProfile {
    changed(&[10, 20, 30], |i, task| {
        if let Some(other) = [Some(2), None, Some(0)][i] {
            let mut block = phase(Ended::Block, 16, task.figures.run.total, 1);
            block.woken_by = Waker::Task(other);
            task.phases.list = vec![block];
        }
    })
}

#[test]
fn rule_10_band_of_stages_alone_is_among_stages() {
    let mut profile = with_stages();
    let among = |profile: &StoredProfile| {
        let plan = Plan::of(profile).unwrap();
        let found = column(&plan, |t| (t.band, t.is_among_stages));
        (places(&plan, profile), found)
    };
    let (order, found) = among(&profile);
    assert_eq!(order, [0, 2, 1]);
    assert_eq!(found, [(0, true), (0, true), (1, false)]);
    profile.order = Some(StoredOrder {
        cpus: 4,
        groups: vec![0, 1, 0],
    });
    assert_eq!(among(&profile), (order, found));
    profile.order = Some(StoredOrder {
        cpus: 4,
        groups: vec![0, 0, 0],
    });
    let (_, found) = among(&profile);
    assert_eq!(found, [(0, false); 3], "one of the band is no stage");
    for i in [0, 2] {
        profile.tasks[i].phases.list[0].intervals = 15;
    }
    profile.order = None;
    let (_, found) = among(&profile);
    assert!(found.iter().all(|(_, is_among)| !is_among), "too few waits");
}

/// Returns a profile of 256 tasks, three in four of which wait for an earlier one to exit.
fn random_waits(numbers: &[(u64, u16)]) -> StoredProfile {
    let mut profile = changed(&[0; 256], |i, task| {
        let run = 1000 + numbers[i].0;
        task.figures.run = Figure::once(run);
        if i > 0 && i % 4 != 0 {
            waiting_for(numbers[i].1 % i as u16, run)(task);
        }
    });
    for i in 0..256 {
        let waits = |j: &u16| {
            let first = profile.tasks[usize::from(*j)].phases.list.first();
            first.is_some_and(|first| first.woken_by == Waker::Task(i as u16))
        };
        let others: Vec<u16> = (0..256).filter(waits).collect();
        let run = profile.tasks[i].figures.run.total;
        exit_wakes(&mut profile.tasks[i], run, &others);
    }
    profile
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// The cost of rule 9 for 256 tasks with random waits. The largest of 10,000 was 4,699.
    #[test]
    fn rule_9_takes_a_bounded_number_of_steps(
        numbers in prop::collection::vec((0..100_000u64, any::<u16>()), 256)
    ) {
        let profile = random_waits(&numbers);
        let steps = sched_core::steps::of(|| Plan::of(&profile).unwrap());
        prop_assert!((1000..10_000).contains(&steps), "{steps} steps");
    }
}
