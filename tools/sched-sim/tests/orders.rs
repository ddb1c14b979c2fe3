//! Orders of tasks that wait for each other, beside the best of all orders, and bounds of them.

mod common;

use axsched_ext::{
    pbg::stored::{StoredOrder, StoredProfile},
    units::Counts,
};
use common::{
    MS, TICK_NS, costs, machine, policy,
    programs::{
        Places, Tasks, below, fork_and_join, gate, pipelines, random_tasks, record, record_twice,
        workload,
    },
};
use rand_xoshiro::{Xoshiro256PlusPlus, rand_core::SeedableRng};
use sched_sim::{
    aim::Aim,
    bound::waiting::Needs,
    orders::{Rule, groups, order, orders},
    play::{Machine, Outcome, play},
    policies::Sharing,
    search::{Found, search},
    vary::{phase_ns, varied},
    workload::Workload,
};

fn played(
    workload: &Workload,
    profile: &StoredProfile,
    order: &StoredOrder,
    cpus: usize,
    phase_ns: u64,
) -> Outcome {
    let machine = Machine {
        sharing: Sharing::Balanced,
        phase_ns,
        ..machine(cpus)
    };
    let plan = StoredProfile {
        order: Some(order.clone()),
        ..profile.clone()
    };
    play(workload, policy("pbg"), &plan, &costs(), &machine).unwrap()
}

fn of_rule(orders: &[(Rule, StoredOrder)], rule: Rule) -> &StoredOrder {
    let of = orders.iter().find(|(its, _)| *its == rule);
    &of.expect("each rule has an order").1
}

/// The part of a task that has to be done: the number of its parts.
type Done = Vec<usize>;

/// Returns the parts of all tasks that have to be done before `task` has ended. The n-th wait for a
/// task is ended by its n-th wake.
fn needed(tasks: &Tasks, task: usize) -> Done {
    let mut done = vec![0_usize; tasks.len()];
    let mut left = vec![(task, tasks[task].len())];
    while let Some((task, parts)) = left.pop() {
        for at in done[task].saturating_sub(1)..parts {
            done[task] = done[task].max(at + 1);
            // It does this part only after the wait at the end of the part before.
            let waits = |at: usize| tasks[task][at].wait;
            let Some(waker) = waits(at).filter(|_| at + 1 < parts) else {
                continue;
            };
            let n = (0..=at).filter(|&at| waits(at) == Some(waker)).count();
            let parts = tasks[waker].iter().enumerate();
            let wakes = parts.flat_map(|(at, part)| part.wakes.iter().map(move |whom| (at, *whom)));
            let mut wakes = wakes.filter(|(_, whom)| *whom == task);
            let (wake, _) = wakes.nth(n - 1).expect("each wait has a wake");
            left.push((waker, wake + 1));
        }
    }
    done
}

/// Returns the least sum of the times at which tasks end on one CPU, over all schedules. Whichever
/// tasks have ended, the parts that they need are done, and it is best to do nothing else before.
fn least_sum_ns(tasks: &Tasks) -> u64 {
    let needed: Vec<Done> = (0..tasks.len()).map(|task| needed(tasks, task)).collect();
    let work = |set: usize| {
        let of = |(task, parts): (usize, &Vec<_>)| {
            let members = (0..tasks.len()).filter(|member| set >> member & 1 == 1);
            let most = members
                .map(|member| needed[member][task])
                .max()
                .unwrap_or(0);
            let parts: &[common::programs::Part] = &parts[..most];
            parts.iter().map(|part| part.run_ns).sum::<u64>()
        };
        tasks.iter().enumerate().map(of).sum::<u64>()
    };
    let mut least = vec![u64::MAX; 1 << tasks.len()];
    least[0] = 0;
    for set in 1..least.len() {
        let last = (0..tasks.len()).filter(|task| set >> task & 1 == 1);
        let before = last.map(|task| least[set & !(1 << task)]).min();
        least[set] = before.expect("a task") + work(set);
    }
    least[least.len() - 1]
}

/// Returns the sum of the times at which tasks end on one CPU without ticks and costs, if always the
/// first task of `order` runs that can.
fn sum_ns(tasks: &Tasks, order: &[usize]) -> u64 {
    let mut at = vec![0; tasks.len()];
    let mut done = vec![0; tasks.len()];
    let mut permits = vec![vec![0_i64; tasks.len()]; tasks.len()];
    let mut is_waiting = vec![None; tasks.len()];
    let (mut now, mut sum, mut ended) = (0, 0, 0);
    while ended < tasks.len() {
        let ready = |&&task: &&usize| {
            at[task] < tasks[task].len()
                && is_waiting[task].is_none_or(|waker: usize| permits[waker][task] > 0)
        };
        let task = *order.iter().find(ready).expect("some task can run");
        if let Some(waker) = is_waiting[task].take() {
            permits[waker][task] -= 1;
        }
        let part = &tasks[task][at[task]];
        now += part.run_ns - done[task];
        done[task] = 0;
        at[task] += 1;
        for &woken in &part.wakes {
            permits[task][woken] += 1;
        }
        is_waiting[task] = part.wait;
        if at[task] == tasks[task].len() {
            sum += now;
            ended += 1;
        }
    }
    sum
}

/// Calls `visit` with each order of `rest` behind `first`.
fn permuted(first: &mut Vec<usize>, rest: &mut Vec<usize>, visit: &mut impl FnMut(&[usize])) {
    if rest.is_empty() {
        return visit(first);
    }
    for at in 0..rest.len() {
        let task = rest.remove(at);
        first.push(task);
        permuted(first, rest, visit);
        first.pop();
        rest.insert(at, task);
    }
}

/// Returns the best of all orders of tasks, one strictly after the other, without ticks and costs.
fn best_order(tasks: &Tasks) -> Vec<usize> {
    let mut best = (u64::MAX, Vec::new());
    permuted(
        &mut Vec::new(),
        &mut (0..tasks.len()).collect(),
        &mut |order| {
            let sum = sum_ns(tasks, order);
            if sum < best.0 {
                best = (sum, order.to_vec());
            }
        },
    );
    best.1
}

fn strictly(tasks: &[usize]) -> StoredOrder {
    let groups: Vec<Vec<usize>> = tasks.iter().map(|&task| vec![task]).collect();
    order(&groups, 1)
}

/// Returns the number of random programs, and their most tasks. `ORDERS=10000` takes minutes with
/// optimisation.
fn instances() -> (u64, usize) {
    match std::env::var("ORDERS") {
        Ok(count) => (count.parse().expect("ORDERS is a number"), 8),
        Err(_) => (60, 6),
    }
}

/// Returns how far the average by the rule is above others, as parts of them. The first is the mean
/// distance from the best order of each program. The second is the part of the programs that are more
/// than 5 % above the plan without waits. An edge does not count if its wake is early in the waker.
fn above(places: Places) -> [f64; 2] {
    let (count, most) = instances();
    let (mut over_best, mut over_plain) = (0.0, (0.0_f64, 0));
    let (mut gain, mut worse) = (0.0, 0);
    for seed in 0..count {
        let (tasks, profile) = record_twice(&random_tasks(places, seed, most));
        let workload = workload(&tasks);
        let average = |order: &StoredOrder| played(&workload, &profile, order, 1, 0).average_ns();
        let by_rules = orders(&profile, 1).unwrap();
        let [plain, rule] =
            [Rule::Plain, Rule::Waits].map(|rule| average(of_rule(&by_rules, rule)));
        let best = average(&strictly(&best_order(&tasks)));
        let best = best.min(rule).min(plain);
        over_best += rule / best - 1.0;
        gain += plain / best - 1.0;
        worse += u64::from(rule / plain > 1.05);
        if rule / plain - 1.0 > over_plain.0 {
            over_plain = (rule / plain - 1.0, seed);
        }
    }
    let [over_best, gain] = [over_best, gain].map(|sum| sum / count as f64);
    println!(
        "{places:?}, {count} programs: above the best {:.3} % (without waits {:.3} %), {worse} more \
         than 5 % above without waits, at most {over_plain:?}",
        over_best * 100.0,
        gain * 100.0
    );
    [over_best, worse as f64 / count as f64]
}

#[test]
fn rule_is_close_to_the_best_order_if_tasks_wait_for_results() {
    let [over_best, worse] = above(Places::Results);
    assert!(over_best < 0.001, "{over_best}");
    assert!(worse == 0.0, "{worse}");
}

#[test]
fn rule_is_close_to_the_best_order_on_average_wherever_tasks_wait() {
    let [over_best, worse] = above(Places::Anywhere);
    assert!(over_best < 0.01, "{over_best}");
    assert!(worse < 0.02, "{worse}");
}

#[test]
fn bound_is_never_above_the_least_of_all_schedules() {
    let (count, most) = instances();
    for places in [Places::Results, Places::Anywhere] {
        let (mut share, mut equal) = (0.0, 0);
        for seed in 0..count {
            let tasks = random_tasks(places, seed, most);
            let needs = Needs::of(&workload(&tasks), TICK_NS).unwrap();
            let bound = needs.average_ns(1);
            let least = least_sum_ns(&tasks) as f64 / tasks.len() as f64;
            assert!(bound <= least, "seed {seed}: {bound} {least}");
            share += bound / least;
            equal += u64::from(bound == least);
        }
        let share = share / count as f64;
        println!("{places:?}, {count} programs: bound / least {share:.4}, equal {equal}");
        assert!(share > 0.9, "{share}");
    }
}

/// The model of a test must be that of the simulator.
#[test]
fn model_without_ticks_agrees_with_the_simulator() {
    for seed in 0..40 {
        let mut tasks = random_tasks(Places::Anywhere, seed, 6);
        // A tick is short beside these.
        for part in tasks.iter_mut().flatten() {
            part.run_ns *= 50;
        }
        let workload = workload(&tasks);
        let mut profile = record(&workload);
        // A plan that the user asked for is not given up.
        profile.tasks[0].deadline = Some(Counts(u64::MAX / 2));
        let best = best_order(&tasks);
        let worst: Vec<usize> = best.iter().rev().copied().collect();
        for order in [best, worst] {
            let model = sum_ns(&tasks, &order) as f64 / tasks.len() as f64;
            let played = played(&workload, &profile, &strictly(&order), 1, 0).average_ns();
            let off = (played / model - 1.0).abs();
            assert!(off < 0.02, "seed {seed}, {order:?}: {model} {played}");
        }
    }
}

#[test]
fn no_run_is_below_the_bound_of_any_aim() {
    let (count, most) = instances();
    for seed in 0..count.min(1_000) {
        let tasks = random_tasks(Places::Anywhere, seed, most);
        let workload = workload(&tasks);
        let profile = record(&workload);
        let needs = Needs::of(&workload, TICK_NS).unwrap();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let due = |random: &mut _| Some((below(random, 400) as u64 * MS) as f64);
        let deadlines: Vec<_> = tasks.iter().map(|_| due(&mut random)).collect();
        for cpus in [1, 2, 3] {
            let mut all: Vec<StoredOrder> = orders(&profile, cpus)
                .unwrap()
                .into_iter()
                .map(|(_, order)| order)
                .collect();
            all.push(strictly(&best_order(&tasks)));
            for order in &all {
                let outcome = played(&workload, &profile, order, cpus, 0);
                for (name, aim) in Aim::ALL {
                    let value = aim.value(&outcome, &workload, &deadlines);
                    let bound = aim.bound(&workload, Some(&needs), &deadlines, cpus);
                    assert!(
                        bound <= value,
                        "seed {seed}, {name}, {cpus} CPUs: {bound} {value}"
                    );
                }
            }
        }
    }
}

/// Returns the gain of the best order that rules and a search find. A gain is over the plan without
/// waits, as a part of its average, in runs whose times differ by up to each spread.
fn gains(tasks: &Tasks, cpus: usize, spreads: &[f64]) -> Vec<f64> {
    let workload = workload(tasks);
    let profile = record(&workload);
    let average = |order: &StoredOrder| played(&workload, &profile, order, cpus, 0).average_ns();
    let by_rules = orders(&profile, cpus).unwrap();
    let starts = by_rules.iter().map(|(_, order)| Found {
        groups: groups(order),
        value: average(order),
    });
    let start = starts.min_by(|one, other| one.value.total_cmp(&other.value));
    let judge = |groups: &[Vec<usize>]| Some(average(&order(groups, cpus)));
    let found = search(&start.expect("an order"), 200, 1, judge);
    let found = order(&found[0].groups, cpus);
    let mean = |order: &StoredOrder, spread: f64| {
        let each = (0..24).map(|seed| {
            let varied = varied(&workload, spread, seed);
            played(&varied, &profile, order, cpus, phase_ns(TICK_NS, seed)).average_ns()
        });
        each.sum::<f64>() / 24.0
    };
    let plain = of_rule(&by_rules, Rule::Plain);
    let gain = |&spread: &f64| 1.0 - mean(&found, spread) / mean(plain, spread);
    spreads.iter().map(gain).collect()
}

#[test]
fn orders_keep_three_quarters_of_their_gain_if_times_change() {
    let programs = [
        ("pipelines", pipelines()),
        ("fork and join", fork_and_join()),
        ("gate", gate()),
    ];
    for (name, tasks) in programs {
        for cpus in [1, 2, 4] {
            let gains = gains(&tasks, cpus, &[0.0, 0.25, 1.0]);
            println!("{name} on {cpus}: {gains:.4?}");
            // A gain of less than 1 % is noise.
            let keeps = |kept: &f64| gains[0] < 0.01 || *kept >= 0.75 * gains[0];
            assert!(gains.iter().all(keeps), "{name} on {cpus}: {gains:?}");
        }
    }
}

#[test]
fn order_by_the_rule_is_the_plan_that_pbg_makes() {
    for seed in 0..20 {
        let workload = workload(&random_tasks(Places::Results, seed, 8));
        let profile = record(&workload);
        let by_rules = orders(&profile, 1).unwrap();
        let machine = Machine {
            sharing: Sharing::Balanced,
            ..machine(1)
        };
        let own = play(&workload, policy("pbg"), &profile, &costs(), &machine).unwrap();
        let ordered = played(&workload, &profile, of_rule(&by_rules, Rule::Waits), 1, 0);
        assert_eq!(own, ordered, "seed {seed}");
    }
}

#[test]
fn rules_order_a_chain_beside_short_tasks_each_in_its_way() {
    // 0 starts the chain 1 to 4 and the short tasks 5 to 12. 13 joins them.
    let profile = record(&workload(&fork_and_join()));
    let by_rules = orders(&profile, 2).unwrap();
    let rank = |rule, task: usize| of_rule(&by_rules, rule).groups[task];
    for rule in [Rule::CriticalPath, Rule::LongPaths] {
        assert!(rank(rule, 4) < rank(rule, 12), "{rule:?}");
    }
    assert!(rank(Rule::Strict, 12) < rank(Rule::Strict, 4));
    assert!(
        of_rule(&by_rules, Rule::Plain)
            .groups
            .iter()
            .all(|group| *group == 0)
    );
    assert!(
        orders(&profile, 1)
            .unwrap()
            .iter()
            .all(|(rule, _)| *rule != Rule::LongPaths)
    );
}
