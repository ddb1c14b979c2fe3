//! The order of tasks that wait for each other: groups of tasks, one strictly after the other.
//!
//!  1. **Components.** Tasks that wait for each other in a cycle are one component, for example the
//!     stages of a pipeline. No order among them is right, so they stay together.
//!  2. **Density.** A component has the CPU time of its tasks, and their number. The density of a
//!     set is the time for each task. A set is closed if it has every component that one of its own
//!     has to wait for.
//!  3. **Blocks.** The closed set with the least density goes first, and is a block. The next block
//!     is the one of those that are left, and so on.
//!  4. **Within a block** its components go in an order in which none is before one that it waits
//!     for. If several may be next, the one with the least density goes first.
//!  5. **Groups.** Each component is a group. Consecutive components of one task that has no edges
//!     are one group together, because plain shortest first orders them better: by the time that
//!     remains.
//!  6. **Short waiters.** A component joins the group before it in its block if that group wakes it.
//!     The waker must have more left to do then than the density of the component. If the waker has
//!     joined by this rule, what its own waker has left counts too. The waiter blocks until its
//!     wake, and then goes first.
//!
//! **Source.** Sidney, Decomposition algorithms for single-machine sequencing with precedence
//! relations and deferral costs, 1975. Every best order of tasks that cannot be taken from the CPU
//! takes the blocks one after the other. Any order within a block is at most twice as long as the
//! best. If a component has no edges, it is a block, and the rule is shortest first.
//!
//! The blocks are found by halving (Fujishige, Lexicographically optimal base of a polymatroid,
//! 1980). If a closed set of less than the density of the whole exists, it is cut off, and both
//! parts are cut in the same way. Otherwise the whole is a block. The cut with the least sum of
//! time − density × number is a minimum cut (Picard, Maximal closure of a graph, 1976), found by
//! augmenting paths.
//!
//! **Cost.** A profile without edges costs one pass over its phases. Otherwise the searches take at
//! most 256 steps a component, and one search more. A part that is not cut by then stays one block.
//! The sorts take n log n comparisons. The memory is at most 150 bytes a task and 40 an edge.

// This file is long because the steps of one rule share the graph and its sums.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;

use pbg_record::error::{Error, reserved};
use sched_core::steps;

/// A task as the rule sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its CPU time, in counts. This is its length if it has edges.
    pub run: u64,
    /// The time that is before it by plain shortest first. This is its length if it has no edges.
    pub alone: u64,
}

/// An edge from a waker to a waiter, both below the number of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The waker, which goes first.
    pub before: u16,
    /// The waiter, which goes behind it.
    pub after: u16,
    /// The waker's CPU time after its last wake of the waiter, in counts.
    pub rest: u64,
}

/// Returns the group of each task, from 0 without gaps; the tasks of group 0 go first.
///
/// # Errors
/// Returns [`Error::NoMemory`] if there is no memory for the graph.
pub fn groups(tasks: &[Task], mut edges: Vec<Edge>) -> Result<Vec<u16>, Error> {
    let mut groups = filled(0, tasks.len())?;
    if edges.is_empty() {
        return Ok(groups);
    }
    let (graph, component, sums, has_edges) = contracted(tasks, &mut edges)?;
    let count = sums.len();
    let mut joined: Vec<u16> = reserved(count)?;
    let mut plain: Vec<u16> = reserved(count)?;
    for node in 0..count as u16 {
        let list = if has_edges[usize::from(node)] {
            &mut joined
        } else {
            &mut plain
        };
        list.push(node);
    }
    plain.sort_unstable_by_key(|&node| (sums[usize::from(node)].time, node));
    let blocks = Blocks::new(&graph, &sums)?.find(&mut joined)?;
    let mut plain = plain.into_iter().peekable();

    // The group of each component, in the order of the components. Next comes the time that its
    // group still needs when it has ended.
    let mut group_of = filled(0u16, count)?;
    let mut left = filled(0u64, count)?;
    let (mut next, mut is_open) = (0, false);
    for block in blocks {
        let block = &joined[block.range()];
        let density = Sum::of(block, &sums).density();
        while let Some(node) = plain.next_if(|&node| sums[usize::from(node)].density() < density) {
            group_of[usize::from(node)] = next;
            is_open = true;
        }
        next += u16::from(core::mem::take(&mut is_open)); // the plain ones are a group
        let first = next;
        for &node in block {
            let density = sums[usize::from(node)].density();
            let to = edges.partition_point(|edge| edge.after < node);
            let to = edges[to..].iter().take_while(|edge| edge.after == node);
            // A waker of this block has its group already.
            let last = to.filter(|edge| {
                let group = group_of[usize::from(edge.before)];
                group >= first && group + 1 == next
            });
            let rest = last.map(|edge| edge.rest.max(left[usize::from(edge.before)]));
            let joined = rest.max().filter(|&rest| u128::from(rest) << 16 > density);
            next += u16::from(joined.is_none());
            group_of[usize::from(node)] = next - 1;
            left[usize::from(node)] = joined.unwrap_or(0);
        }
    }
    plain.for_each(|node| group_of[usize::from(node)] = next);
    for (group, component) in groups.iter_mut().zip(component) {
        *group = group_of[usize::from(component)];
    }
    Ok(groups)
}

/// A graph of components, the component of each task, the sum of each component, and which of them
/// have edges at their tasks.
type Contracted = (Graph, Vec<u16>, Vec<Sum>, Vec<bool>);

/// Returns the graph of the components (rule 1), and makes the edges those between components, by
/// the component behind.
fn contracted(tasks: &[Task], edges: &mut Vec<Edge>) -> Result<Contracted, Error> {
    let graph = Graph::new(tasks.len(), edges)?;
    let (component, count) = graph.components()?;
    let mut sums = filled(Sum::default(), count)?;
    let mut has_edges = filled(false, count)?;
    for (node, task) in tasks.iter().enumerate() {
        let at = usize::from(component[node]);
        let is_alone = graph.is_alone(node as u16);
        has_edges[at] |= !is_alone;
        let time = if is_alone { task.alone } else { task.run };
        sums[at].add(Sum { time, tasks: 1 });
    }
    drop(graph);
    let of = |node: u16| component[usize::from(node)];
    for edge in &mut *edges {
        (edge.before, edge.after) = (of(edge.before), of(edge.after));
    }
    edges.retain(|edge| edge.before != edge.after);
    edges.sort_unstable_by_key(|edge| edge.after);
    Ok((Graph::new(count, edges)?, component, sums, has_edges))
}

fn filled<A: Clone>(value: A, len: usize) -> Result<Vec<A>, Error> {
    let mut vec = reserved(len)?;
    vec.resize(len, value);
    Ok(vec)
}

/// The edges of a graph, by either end.
struct Graph {
    /// Each edge as the node before and the node after, sorted by the node after.
    edges: Vec<(u16, u16)>,
    /// Where the edges to a node begin, and behind the last node the number of edges.
    to: Vec<u32>,
    /// The indices of the edges, sorted by the node before.
    by_before: Vec<u32>,
    /// Where the edges from a node begin in `by_before`, and behind the last node their number.
    from: Vec<u32>,
}

impl Graph {
    fn new(nodes: usize, list: &[Edge]) -> Result<Self, Error> {
        let mut edges: Vec<(u16, u16)> = reserved(list.len())?;
        edges.extend(list.iter().map(|edge| (edge.before, edge.after)));
        edges.sort_unstable_by_key(|&(before, after)| (after, before));
        edges.dedup();
        let mut by_before: Vec<u32> = reserved(edges.len())?;
        by_before.extend(0..edges.len() as u32);
        by_before.sort_unstable_by_key(|&edge| edges[edge as usize]);
        let starts = |node: &dyn Fn(usize) -> u16| {
            let mut starts = filled(0, nodes + 1)?;
            for at in 0..edges.len() {
                starts[usize::from(node(at)) + 1] = at as u32 + 1;
            }
            // A node without edges begins where the one before it ends.
            for node in 1..=nodes {
                starts[node] = starts[node].max(starts[node - 1]);
            }
            Ok(starts)
        };
        let to = starts(&|at| edges[at].1)?;
        let from = starts(&|at| edges[by_before[at] as usize].0)?;
        Ok(Self {
            edges,
            to,
            by_before,
            from,
        })
    }

    /// Returns the edges to a node.
    fn to(&self, node: u16) -> Range<usize> {
        let node = usize::from(node);
        self.to[node] as usize..self.to[node + 1] as usize
    }

    /// Returns the edges from a node.
    fn from(&self, node: u16) -> impl Iterator<Item = usize> {
        let node = usize::from(node);
        let range = self.from[node] as usize..self.from[node + 1] as usize;
        self.by_before[range].iter().map(|&edge| edge as usize)
    }

    fn is_alone(&self, node: u16) -> bool {
        self.to(node).is_empty() && self.from(node).next().is_none()
    }

    /// Returns the component of each node, and the number of components (rule 1). No component has
    /// to wait for one of a higher number.
    ///
    /// This is Tarjan's algorithm (Depth-first search and linear graph algorithms, 1972) with a
    /// list in place of recursion. It follows the edges backwards.
    fn components(&self) -> Result<(Vec<u16>, usize), Error> {
        const UNSEEN: u16 = u16::MAX;
        let nodes = self.to.len() - 1;
        let mut component = filled(UNSEEN, nodes)?;
        let mut order = filled(UNSEEN, nodes)?;
        let mut lowest = filled(UNSEEN, nodes)?;
        let mut open: Vec<u16> = reserved(nodes)?;
        let mut path: Vec<(u16, u32)> = reserved(nodes)?;
        let (mut seen, mut components) = (0, 0);
        for first in 0..nodes as u16 {
            if order[usize::from(first)] == UNSEEN {
                path.push((first, self.to[usize::from(first)]));
            }
            while let Some((node, next)) = path.last_mut() {
                let (node, here) = (*node, usize::from(*node));
                if order[here] == UNSEEN {
                    (order[here], lowest[here]) = (seen, seen);
                    seen += 1;
                    open.push(node);
                }
                if *next < self.to[here + 1] {
                    let there = self.edges[*next as usize].0;
                    *next += 1;
                    let place = usize::from(there);
                    if order[place] == UNSEEN {
                        path.push((there, self.to[place]));
                    } else if component[place] == UNSEEN {
                        lowest[here] = lowest[here].min(order[place]);
                    }
                    continue;
                }
                path.pop();
                if let Some(&(parent, _)) = path.last() {
                    let parent = usize::from(parent);
                    lowest[parent] = lowest[parent].min(lowest[here]);
                }
                if lowest[here] == order[here] {
                    while let Some(member) = open.pop() {
                        component[usize::from(member)] = components;
                        if member == node {
                            break;
                        }
                    }
                    components += 1;
                }
            }
        }
        Ok((component, usize::from(components)))
    }
}

/// The time and the number of tasks of a set (rule 2).
#[derive(Clone, Copy, Default)]
struct Sum {
    /// At most 2^64 − 1, like every total of a profile.
    time: u64,
    tasks: u32,
}

impl Sum {
    /// Returns the sum of a set of nodes.
    fn of(nodes: &[u16], sums: &[Self]) -> Self {
        let mut sum = Self::default();
        nodes
            .iter()
            .for_each(|&node| sum.add(sums[usize::from(node)]));
        sum
    }

    const fn add(&mut self, other: Self) {
        self.time = self.time.saturating_add(other.time);
        self.tasks += other.tasks;
    }

    /// Returns the density, in parts of a count.
    const fn density(self) -> u128 {
        ((self.time as u128) << 16) / self.tasks as u128
    }

    /// Returns how much this set is below the density of `whole`, times the tasks of both. The sum
    /// of a set is that of its parts.
    const fn gain(self, whole: Self) -> i128 {
        whole.time as i128 * self.tasks as i128 - self.time as i128 * whole.tasks as i128
    }
}

/// A part of a list of nodes.
#[derive(Clone, Copy)]
struct Part {
    start: u16,
    end: u16,
}

impl Part {
    /// Returns the part from `start` to before `end`. Both are at most the number of tasks.
    const fn of(start: usize, end: usize) -> Self {
        Self {
            start: start as u16,
            end: end as u16,
        }
    }

    fn range(self) -> Range<usize> {
        self.start.into()..self.end.into()
    }
}

/// The search for blocks (rule 3) in a graph without cycles.
struct Blocks<'a> {
    graph: &'a Graph,
    sums: &'a [Sum],
    /// The part that a node is in: the place of its first node.
    part: Vec<u16>,
    /// A node's gain, less what is set off.
    gain: Vec<i128>,
    /// How much of the gain behind an edge is set off against the loss before it.
    flow: Vec<i128>,
    /// The edge by which the search came to a node.
    by: Vec<u32>,
    /// True for a node that the search has reached, or that is cut off.
    is_reached: Vec<bool>,
    reached: Vec<u16>,
    /// The steps that the searches may still take.
    steps_left: usize,
}

/// The most steps of all searches, for each node. Random graphs of 256 tasks take 20.
const STEPS_PER_NODE: usize = 256;

/// The search began at this node.
const START: u32 = u32::MAX;

impl<'a> Blocks<'a> {
    fn new(graph: &'a Graph, sums: &'a [Sum]) -> Result<Self, Error> {
        let nodes = sums.len();
        Ok(Self {
            graph,
            sums,
            part: filled(0, nodes)?,
            gain: filled(0, nodes)?,
            flow: filled(0, graph.edges.len())?,
            by: filled(START, nodes)?,
            is_reached: filled(false, nodes)?,
            reached: reserved(nodes)?,
            steps_left: nodes * STEPS_PER_NODE,
        })
    }

    /// Sorts the nodes into blocks, and each block by rule 4. Returns the blocks.
    fn find(mut self, nodes: &mut [u16]) -> Result<Vec<Part>, Error> {
        let mut blocks = reserved(nodes.len())?;
        let mut parts: Vec<Part> = reserved(nodes.len())?;
        let mut rest: Vec<u16> = reserved(nodes.len())?;
        parts.push(Part::of(0, nodes.len()));
        while let Some(part) = parts.pop() {
            let here = &mut nodes[part.range()];
            if !self.cut(here) {
                self.sort(here)?;
                blocks.push(part);
                continue;
            }
            // Both keep their order, so that equal profiles have equal plans.
            rest.clear();
            let mut cut = 0;
            for at in 0..here.len() {
                let node = here[at];
                if self.is_reached[usize::from(node)] {
                    here[cut] = node;
                    cut += 1;
                } else {
                    rest.push(node);
                }
            }
            here[cut..].copy_from_slice(&rest);
            let Range { start, end } = part.range();
            let last = Part::of(start + cut, end);
            rest.iter()
                .for_each(|&node| self.part[usize::from(node)] = last.start);
            parts.push(last);
            parts.push(Part::of(start, start + cut));
        }
        Ok(blocks)
    }

    /// Reaches the closed set of the most gain, the smallest of several. Returns false if no set
    /// has a gain. Then no closed set has less density than all of them. It is also false when all
    /// steps are taken, and the rest becomes one block.
    fn cut(&mut self, nodes: &[u16]) -> bool {
        let whole = Sum::of(nodes, self.sums);
        for &node in nodes {
            let here = usize::from(node);
            self.gain[here] = self.sums[here].gain(whole);
            self.is_reached[here] = false;
            self.flow[self.graph.to(node)].fill(0);
        }
        let mut is_cut = false;
        for &node in nodes {
            // A node that is cut off takes no part in a search again: no loss is left before it.
            while !self.is_reached[usize::from(node)] && self.gain[usize::from(node)] > 0 {
                if self.steps_left == 0 {
                    return false;
                }
                is_cut |= !self.set_off(node);
            }
        }
        is_cut
    }

    /// Sets the gain of a node off against a loss that has to go before it, as far as one path
    /// allows. Returns false if there is no such loss, and leaves what it has reached cut off.
    fn set_off(&mut self, from: u16) -> bool {
        let graph = self.graph;
        self.reached.clear();
        self.reach(from, START, self.part[usize::from(from)]);
        let mut at = 0;
        let loss = loop {
            let Some(&node) = self.reached.get(at) else {
                return false;
            };
            if self.gain[usize::from(node)] < 0 {
                break node;
            }
            at += 1;
            let part = self.part[usize::from(node)];
            for edge in graph.to(node) {
                self.reach(graph.edges[edge].0, edge as u32, part);
            }
            for edge in graph.from(node) {
                if self.flow[edge] > 0 {
                    self.reach(graph.edges[edge].1, edge as u32, part);
                }
            }
        };
        for &node in &self.reached {
            self.is_reached[usize::from(node)] = false;
        }
        let mut amount = self.gain[usize::from(from)].min(-self.gain[usize::from(loss)]);
        self.walk_back(loss, |flow, is_along| {
            if !is_along {
                amount = amount.min(*flow);
            }
        });
        self.walk_back(loss, |flow, is_along| {
            *flow += if is_along { amount } else { -amount }
        });
        self.gain[usize::from(from)] -= amount;
        self.gain[usize::from(loss)] += amount;
        true
    }

    fn reach(&mut self, node: u16, by: u32, part: u16) {
        steps::count(1);
        self.steps_left = self.steps_left.saturating_sub(1);
        let here = usize::from(node);
        if !self.is_reached[here] && self.part[here] == part {
            self.is_reached[here] = true;
            self.by[here] = by;
            self.reached.push(node);
        }
    }

    /// Visits the edges by which the search came to a node, and if it came from the node after.
    fn walk_back(&mut self, mut node: u16, mut visit: impl FnMut(&mut i128, bool)) {
        loop {
            let by = self.by[usize::from(node)];
            if by == START {
                return;
            }
            let (before, after) = self.graph.edges[by as usize];
            let is_along = node == before;
            visit(&mut self.flow[by as usize], is_along);
            node = if is_along { after } else { before };
        }
    }

    /// Sorts a block by rule 4.
    fn sort(&mut self, block: &mut [u16]) -> Result<(), Error> {
        if block.len() < 2 {
            return Ok(());
        }
        let graph = self.graph;
        let part = self.part[usize::from(block[0])];
        // The number of nodes that still have to go before a node.
        let mut missing: Vec<u32> = filled(0, self.sums.len())?;
        let mut next = BinaryHeap::new();
        next.try_reserve_exact(block.len())
            .map_err(|_| Error::NoMemory)?;
        let density = |node: u16| self.sums[usize::from(node)].density();
        for &node in &*block {
            let before = graph.to(node).map(|edge| graph.edges[edge].0);
            let here = before.filter(|&node| self.part[usize::from(node)] == part);
            missing[usize::from(node)] = here.count() as u32;
            if missing[usize::from(node)] == 0 {
                next.push(Reverse((density(node), node)));
            }
        }
        for place in &mut *block {
            let Reverse((_, node)) = next.pop().expect("the graph has no cycle");
            *place = node;
            for edge in graph.from(node) {
                let after = graph.edges[edge].1;
                let missing = &mut missing[usize::from(after)];
                if self.part[usize::from(after)] == part {
                    *missing -= 1;
                    if *missing == 0 {
                        next.push(Reverse((density(after), after)));
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    fn tasks(times: &[u64]) -> Vec<Task> {
        let task = |&run: &u64| Task { run, alone: run };
        times.iter().map(task).collect()
    }

    /// Returns edges of wakers that end with the wake.
    fn at_end(edges: &[(u16, u16)]) -> Vec<Edge> {
        let edge = |&(before, after): &(u16, u16)| Edge {
            before,
            after,
            rest: 0,
        };
        edges.iter().map(edge).collect()
    }

    /// Returns the groups of tasks with these times.
    fn of(times: &[u64], edges: &[(u16, u16)]) -> Vec<u16> {
        groups(&tasks(times), at_end(edges)).unwrap()
    }

    #[test]
    fn rule_1_tasks_that_wait_for_each_other_are_one_group() {
        assert_eq!(of(&[5, 1, 9], &[(0, 1), (1, 2), (2, 0)]), [0, 0, 0]);
        // 0 and 1 hand data over; 2 waits for both, and 3 for 2.
        let edges = [(0, 1), (1, 0), (1, 2), (2, 3)];
        assert_eq!(of(&[5, 5, 1, 1], &edges), [0, 0, 1, 2]);
    }

    #[test]
    fn rule_3_key_task_goes_first_if_those_behind_it_are_short() {
        // 0 releases three tasks of 1 each: (6 + 3) / 4 is less than 5, and than 3.
        let key = [(0, 2), (0, 3), (0, 4)];
        assert_eq!(of(&[6, 3, 1, 1, 1], &key), [0, 4, 1, 2, 3]);
        // Alone it would be the last.
        assert_eq!(of(&[6, 3, 1, 1, 1], &[]), [0; 5]);
        // A shorter one that releases nothing goes before all of them.
        assert_eq!(of(&[6, 2, 1, 1, 1], &key), [1, 0, 2, 3, 4]);
    }

    #[test]
    fn rule_4_block_is_in_the_order_of_its_waits() {
        // 2 needs 0 and 1, of which 1 is the shorter.
        assert_eq!(of(&[5, 4, 1], &[(0, 2), (1, 2)]), [1, 0, 2]);
    }

    #[test]
    fn rule_5_tasks_without_edges_share_groups() {
        let times = [1, 2, 10, 10, 50, 60];
        assert_eq!(of(&times, &[(2, 3)]), [0, 0, 1, 2, 3, 3]);
        // The length of one without edges is the time before it, not its run.
        let server = Task { run: 90, alone: 3 };
        let tasks = [&tasks(&[10, 10, 50])[..], &[server]].concat();
        assert_eq!(groups(&tasks, at_end(&[(0, 1)])).unwrap(), [1, 2, 3, 0]);
    }

    #[test]
    fn rule_6_waiter_that_is_shorter_than_the_rest_of_its_waker_joins_it() {
        let with = |rest: [u64; 2], times: &[u64]| {
            let mut edges = at_end(&[(0, 1), (1, 2)]);
            edges
                .iter_mut()
                .zip(rest)
                .for_each(|(edge, rest)| edge.rest = rest);
            groups(&tasks(times), edges).unwrap()
        };
        assert_eq!(with([4, 0], &[9, 4, 3]), [0, 1, 2]);
        assert_eq!(with([5, 0], &[9, 4, 3]), [0, 0, 0]);
        // The second joins a group that is not the first of its block.
        assert_eq!(with([4, 4], &[9, 4, 3]), [0, 1, 1]);
        // A component has the density of its tasks: 1 and 2 take 3 each.
        let mut edges = at_end(&[(0, 1), (1, 2), (2, 1)]);
        edges[0].rest = 4;
        assert_eq!(groups(&tasks(&[9, 5, 1]), edges.clone()).unwrap(), [0; 3]);
        edges[0].rest = 3;
        assert_eq!(groups(&tasks(&[9, 5, 1]), edges).unwrap(), [0, 1, 1]);
        // When 1 has ended, 0 still has 5 to do.
        assert_eq!(with([5, 0], &[9, 4, 5]), [0, 0, 1]);
        assert_eq!(with([6, 0], &[9, 4, 5]), [0, 0, 0]);
    }

    /// The time that 0 has left when it wakes 1 does not count for its wake of 2.
    #[test]
    fn rule_6_waiter_joins_by_what_its_own_waker_has_left() {
        let with = |rest: u64| {
            let mut edges = at_end(&[(0, 1), (0, 2)]);
            (edges[0].rest, edges[1].rest) = (6, rest);
            groups(&tasks(&[9, 2, 3]), edges).unwrap()
        };
        assert_eq!([3, 4].map(with), [[0, 0, 1], [0, 0, 0]]);
    }

    /// A waker in the block before is done when its waiter may start.
    #[test]
    fn rule_6_waiter_of_another_block_does_not_join() {
        let rest = |rest| Edge {
            rest,
            ..at_end(&[(0, 1)])[0]
        };
        assert_eq!(groups(&tasks(&[3, 4]), vec![rest(5)]).unwrap(), [0, 1]);
        assert_eq!(groups(&tasks(&[5, 4]), vec![rest(5)]).unwrap(), [0, 0]);
    }

    /// Returns the least density of a closed set of the nodes left, by trying all of them, and the
    /// union of those that have it.
    fn least(times: &[u64], edges: &[(u16, u16)], left: u32) -> u32 {
        let is_closed = |set: u32| {
            let holds = |&(before, after): &(u16, u16)| {
                set >> after & 1 == 0 || left >> before & 1 == 0 || set >> before & 1 == 1
            };
            edges.iter().all(holds)
        };
        let sum = |set: u32| {
            let of = times.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1);
            (
                of.map(|(_, time)| time).sum::<u64>(),
                u64::from(set.count_ones()),
            )
        };
        let sets = (1..1 << times.len()).filter(|set| set & !left == 0 && is_closed(*set));
        let sets: Vec<u32> = sets.collect();
        let less = |a: (u64, u64), b: (u64, u64)| (a.0 * b.1).cmp(&(b.0 * a.1));
        let best = sets
            .iter()
            .map(|&set| sum(set))
            .min_by(|&a, &b| less(a, b))
            .unwrap();
        let is_best = |set: &&u32| less(sum(**set), best).is_eq();
        sets.iter()
            .filter(is_best)
            .fold(0, |union, set| union | set)
    }

    proptest! {
        /// Trying all sets finds the same blocks (rules 2 and 3). No task is before one that it
        /// waits for (rule 4). The graphs have no cycles.
        #[test]
        fn rules_2_and_3_least_density_goes_first(
            times in prop::collection::vec(1..30u64, 1..9),
            pairs in prop::collection::vec((0..9u16, 0..9u16), 0..12),
        ) {
            let count = times.len() as u16;
            let pairs = pairs.into_iter().filter(|&(a, b)| a < b && b < count);
            let mut edges: Vec<(u16, u16)> = pairs.collect();
            edges.sort_unstable();
            edges.dedup();
            let groups = of(&times, &edges);
            for &(before, after) in &edges {
                prop_assert!(groups[usize::from(before)] < groups[usize::from(after)]);
            }
            let distinct = 1 + groups.iter().max().unwrap();
            prop_assert!((0..distinct).all(|group| groups.contains(&group)), "no gaps");
            if edges.is_empty() {
                prop_assert!(groups.iter().all(|&group| group == 0));
                return Ok(());
            }
            let mut left = (1u32 << count) - 1;
            while left != 0 {
                let block = least(&times, &edges, left);
                let last = |set: u32| {
                    let members = (0..count).filter(move |i| set >> i & 1 == 1);
                    members.map(|i| groups[usize::from(i)])
                };
                let rest = left & !block;
                if rest != 0 {
                    // A group may hold plain tasks of several blocks.
                    prop_assert!(last(block).max().unwrap() <= last(rest).min().unwrap());
                }
                left = rest;
            }
        }
    }

    /// Each task of a layer of 64 waits for all 64 of the layer before. The searches take all
    /// steps, and the order still keeps all waits.
    #[test]
    fn searches_end_after_the_most_steps() {
        let count = 32 * 64u16;
        let layers = (64..count).flat_map(|after| {
            let layer = after / 64 - 1;
            (layer * 64..layer * 64 + 64).map(move |before| (before, after))
        });
        let edges: Vec<(u16, u16)> = layers.collect();
        let times: Vec<u64> = (0..count)
            .map(|i| 1 + u64::from(i.wrapping_mul(40_503)) % 977)
            .collect();
        let mut all = Vec::new();
        let steps = steps::of(|| all = of(&times, &edges));
        let search = usize::from(count) + 2 * edges.len();
        assert!(
            steps <= usize::from(count) * STEPS_PER_NODE + search,
            "{steps}"
        );
        assert!(
            steps > usize::from(count) * STEPS_PER_NODE / 2,
            "{steps}: no limit is reached"
        );
        let is_kept =
            |&(before, after): &(u16, u16)| all[usize::from(before)] < all[usize::from(after)];
        assert!(edges.iter().all(is_kept));
    }

    #[test]
    fn thousands_of_tasks_in_a_row_need_no_deep_stack() {
        let times = vec![1; 4096];
        let edges: Vec<(u16, u16)> = (1..4096).map(|i| (i, i - 1)).collect();
        let groups = of(&times, &edges);
        assert!(groups.iter().rev().copied().eq(0..4096));
    }
}
