//! Orders of a recording's tasks, each by a rule.
//!
//! An order is a list of groups, one strictly after the other. Within a group PBG orders the tasks
//! by the time that remains. No rule is best for every program and number of CPUs, so the orders
//! are played and compared.
//!
//! | rule | the groups |
//! |---|---|
//! | [`Waits`](Rule::Waits) | those that PBG makes of the wait graph, or of deadlines |
//! | [`Plain`](Rule::Plain) | one group; with deadlines, as `Waits` |
//! | [`Strict`](Rule::Strict) | each task by itself, in the order of `Waits` |
//! | [`LongStages`](Rule::LongStages) | each task by itself; of tasks that wait for each other in a cycle, the longest first |
//! | [`LongPaths`](Rule::LongPaths) | as `Waits`, but a component goes first if its path is long |
//! | [`CriticalPath`](Rule::CriticalPath) | components, by the length of their paths |
//!
//! A *component* is a set of tasks that wait for each other in a cycle, or a task that does not.
//! The *path* of a component is the longest chain of components that wait for it. Its length is the
//! sum of the components' lengths, and the length of a component is that of its longest task. A
//! path is *long* if it takes at least [`LONG`] times as long as the CPUs take for all work that is
//! left.

use std::collections::HashMap;

use axsched_ext::pbg::{
    Error, Plan,
    plan::waits::edges,
    stored::{StoredOrder, StoredProfile},
};

/// The rule of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The groups that PBG makes of the wait graph.
    Waits,
    /// All tasks by the time that remains, whatever they wait for.
    Plain,
    /// The same order, task by task.
    Strict,
    /// The longest of several tasks that wait for each other first.
    LongStages,
    /// A component with a long path first, on several CPUs.
    LongPaths,
    /// The component with the longest path first.
    CriticalPath,
}

/// A path is long from this multiple of the time in which the CPUs do all work that is left. The
/// programs in `apps/waits` gave the number: by 0.9, `forks` also puts paths first that delay short
/// tasks more than they gain.
pub const LONG: f64 = 1.2;

impl Rule {
    /// Returns its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waits => "rule",
            Self::Plain => "without waits",
            Self::Strict => "rule, task by task",
            Self::LongStages => "longest stage first",
            Self::LongPaths => "long paths first",
            Self::CriticalPath => "critical path first",
        }
    }
}

/// Returns the order by each rule for this number of CPUs, PBG's own first. The order
/// that the profile may carry is ignored.
///
/// # Errors
/// Returns [`Error::NoMemory`] if there is no memory for the plan.
pub fn orders(profile: &StoredProfile, cpus: usize) -> Result<Vec<(Rule, StoredOrder)>, Error> {
    let profile = StoredProfile {
        order: None,
        ..profile.clone()
    };
    let as_planned = bands(&profile)?;
    let has_deadlines = profile.tasks.iter().any(|task| task.deadline.is_some());
    let components = Components::of(&profile)?;
    let plain = match has_deadlines {
        true => as_planned.clone(),
        false => vec![(0..profile.tasks.len()).collect()],
    };
    let mut orders = vec![
        (Rule::Waits, as_planned),
        (Rule::Plain, plain),
        (Rule::Strict, components.by_task(|_| {})),
        (Rule::LongStages, components.longest_stage_first()),
    ];
    if cpus > 1 {
        orders.push((Rule::LongPaths, components.long_paths_first(cpus)));
    }
    orders.push((Rule::CriticalPath, components.critical_path_first()));
    let order = |(rule, groups): (Rule, Vec<Vec<usize>>)| (rule, order(&groups, cpus));
    Ok(orders.into_iter().map(order).collect())
}

/// Returns an order of these groups of tasks, each of which has a task.
pub fn order(groups: &[Vec<usize>], cpus: usize) -> StoredOrder {
    let mut of_task = vec![0; groups.iter().map(Vec::len).sum()];
    for (number, group) in groups.iter().enumerate() {
        for &task in group {
            of_task[task] = number as u16; // a profile has at most 4096 tasks
        }
    }
    StoredOrder {
        cpus: cpus as u16,
        groups: of_task,
    }
}

/// Returns the tasks of each group of an order.
pub fn groups(order: &StoredOrder) -> Vec<Vec<usize>> {
    let count = order.groups.iter().max().map_or(0, |&last| last + 1);
    let mut groups = vec![Vec::new(); usize::from(count)];
    for (task, &group) in order.groups.iter().enumerate() {
        groups[usize::from(group)].push(task);
    }
    groups
}

/// Returns the bands of PBG's plan, each with its tasks by rank.
fn bands(profile: &StoredProfile) -> Result<Vec<Vec<usize>>, Error> {
    let tasks = profile.tasks.iter().enumerate();
    let index: HashMap<_, _> = tasks.map(|(index, task)| (task.key, index)).collect();
    let plan = Plan::of(profile)?;
    let bands = plan.tasks().chunk_by(|one, next| one.band == next.band);
    let tasks = bands.map(|band| band.iter().map(|task| index[&task.key]).collect());
    Ok(tasks.collect())
}

/// The components of a recording, in the order in which PBG plans them by their waits alone. Each
/// comes after all that it waits for.
pub struct Components {
    /// The tasks of each component, by rank.
    pub tasks: Vec<Vec<usize>>,
    /// The components that wait for each component.
    pub after: Vec<Vec<usize>>,
    /// The time that each task computes, in counts.
    run: Vec<u64>,
}

impl Components {
    /// Returns the components of a profile. Its order, priorities and deadlines are ignored.
    ///
    /// # Errors
    /// Returns [`Error::NoMemory`] if there is no memory for the plan.
    pub fn of(profile: &StoredProfile) -> Result<Self, Error> {
        let mut profile = StoredProfile {
            order: None,
            ..profile.clone()
        };
        for task in &mut profile.tasks {
            (task.priority, task.deadline) = (None, None);
        }
        let runs = profile.header.runs;
        let edges = edges(&profile)?;
        let counting = || edges.iter().filter(|edge| edge.counts(runs));
        let mut has_edges = vec![false; profile.tasks.len()];
        for edge in counting() {
            has_edges[usize::from(edge.waker)] = true;
            has_edges[usize::from(edge.waiter)] = true;
        }
        let mut tasks = Vec::new();
        for band in bands(&profile)? {
            // A band without edges is no component, but tasks that do not wait.
            match has_edges[band[0]] {
                true => tasks.push(band),
                false => tasks.extend(band.into_iter().map(|task| vec![task])),
            }
        }
        let mut component = vec![0; profile.tasks.len()];
        for (number, tasks) in tasks.iter().enumerate() {
            tasks.iter().for_each(|&task| component[task] = number);
        }
        let mut after = vec![Vec::new(); tasks.len()];
        for edge in counting() {
            let ends = [edge.waker, edge.waiter].map(|task| component[usize::from(task)]);
            if ends[0] != ends[1] {
                after[ends[0]].push(ends[1]);
            }
        }
        let run = |task: &axsched_ext::pbg::stored::StoredTask| task.figures.run.mean(task.runs);
        Ok(Self {
            tasks,
            after,
            run: profile.tasks.iter().map(run).collect(),
        })
    }

    /// Returns a group for each task. `sort` sorts the tasks of a component.
    fn by_task(&self, sort: impl Fn(&mut [usize])) -> Vec<Vec<usize>> {
        let sorted = self.tasks.iter().flat_map(|tasks| {
            let mut tasks = tasks.clone();
            sort(&mut tasks);
            tasks
        });
        sorted.map(|task| vec![task]).collect()
    }

    fn longest_stage_first(&self) -> Vec<Vec<usize>> {
        self.by_task(|tasks| tasks.sort_by_key(|&task| std::cmp::Reverse(self.run[task])))
    }

    /// Returns the length of each component's path.
    fn paths(&self) -> Vec<u64> {
        let mut paths = vec![0; self.tasks.len()];
        for (number, tasks) in self.tasks.iter().enumerate().rev() {
            let length = tasks.iter().map(|&task| self.run[task]).max().unwrap_or(0);
            let after = self.after[number].iter().map(|&after| paths[after]).max();
            paths[number] = length + after.unwrap_or(0);
        }
        paths
    }

    fn critical_path_first(&self) -> Vec<Vec<usize>> {
        let paths = self.paths();
        let mut numbers: Vec<usize> = (0..self.tasks.len()).collect();
        // A component has no longer path than one that it waits for, and equal ones stay in order.
        numbers.sort_by_key(|&number| std::cmp::Reverse(paths[number]));
        self.groups(numbers)
    }

    fn long_paths_first(&self, cpus: usize) -> Vec<Vec<usize>> {
        let paths = self.paths();
        let works = self
            .tasks
            .iter()
            .map(|tasks| tasks.iter().map(|&task| self.run[task]).sum::<u64>());
        let works: Vec<u64> = works.collect();
        let mut missing = vec![0; works.len()];
        for &after in self.after.iter().flatten() {
            missing[after] += 1;
        }
        let mut left: u64 = works.iter().sum();
        let mut waiting: Vec<usize> = (0..works.len()).collect();
        let mut numbers = Vec::with_capacity(works.len());
        while !waiting.is_empty() {
            let long = LONG * left as f64 / cpus as f64;
            let ready = waiting
                .iter()
                .enumerate()
                .filter(|&(_, &number)| missing[number] == 0);
            let longest = ready.max_by_key(|&(at, &number)| (paths[number], std::cmp::Reverse(at)));
            let at = longest.filter(|&(_, &number)| paths[number] as f64 >= long);
            // The first that is left waits for none that is left.
            let number = waiting.remove(at.map_or(0, |(at, _)| at));
            self.after[number]
                .iter()
                .for_each(|&after| missing[after] -= 1);
            left -= works[number];
            numbers.push(number);
        }
        self.groups(numbers)
    }

    fn groups(&self, numbers: Vec<usize>) -> Vec<Vec<usize>> {
        numbers
            .into_iter()
            .map(|number| self.tasks[number].clone())
            .collect()
    }
}
