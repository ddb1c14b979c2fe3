//! A comparison of the policy with a model of its rules: a list that is searched at each pick. At
//! random, coroutines become ready and are taken, workers say what they poll, and priorities are
//! donated.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::*;

const NOTHING: usize = PRIORITIES;

/// A task in the model.
#[derive(Clone)]
struct Known {
    own: usize,
    domain: Option<usize>,
    /// The level that it polls, and true if that is assumed.
    polled: (usize, bool),
    /// The priorities that are donated to it.
    donated: Vec<usize>,
    /// The number of ticks left of its slice.
    left: usize,
    stamp: u64,
    /// While it is ready, its own level or its claim. It is `NOTHING` for a fresh worker.
    standing: usize,
}

impl Known {
    fn donated(&self) -> usize {
        self.donated.iter().copied().min().unwrap_or(NOTHING)
    }

    fn current_claim(&self) -> usize {
        self.polled.0.min(self.donated())
    }
}

/// A model of the policy: the rules of the module, written a second time.
#[derive(Default)]
struct Model {
    tasks: Vec<Known>,
    ready: Vec<usize>,
    aside: Option<(usize, EnqueueReason)>,
    /// The priority and domain of each ready coroutine.
    marked: BTreeSet<(usize, usize)>,
    arrivals: u64,
    ticks: u32,
    has_ticked: bool,
    has_donated: bool,
}

impl Model {
    fn of_domain(&self, domain: usize) -> usize {
        let mut of = self.marked.iter().filter(|&&(_, d)| d == domain);
        of.next().map_or(NOTHING, |&(p, _)| p)
    }

    fn is_fresh(&self, task: usize) -> bool {
        self.tasks[task].domain.is_some() && self.tasks[task].standing == NOTHING
    }

    /// Returns the level of a ready task by rules 1 and 2.
    fn level(&self, task: usize) -> usize {
        let known = &self.tasks[task];
        let Some(domain) = known.domain else {
            return known.standing;
        };
        let serves_too = |&&other: &&usize| self.tasks[other].domain == Some(domain);
        let mut fellows = self.ready.iter().filter(serves_too);
        let is_heir = self.is_fresh(task) || !fellows.any(|&other| self.is_fresh(other));
        match is_heir {
            true => known.standing.min(self.of_domain(domain)),
            false => known.standing,
        }
    }

    /// Returns true unless another worker of the domain that is in the middle of a poll has a more
    /// urgent claim. That one comes first, though all may be as urgent by what is ready.
    fn is_first_of_midway(&self, task: usize) -> bool {
        let key = |task: usize| (self.tasks[task].standing, self.tasks[task].stamp);
        let domain = self.tasks[task].domain;
        let is_midway = |task: usize| self.tasks[task].domain.is_some() && !self.is_fresh(task);
        let before = |&other: &usize| {
            is_midway(other) && self.tasks[other].domain == domain && key(other) < key(task)
        };
        !is_midway(task) || !self.ready.iter().any(before)
    }

    fn first(&self) -> Option<usize> {
        let ready = self.ready.iter().copied();
        let firsts = ready.filter(|&task| self.is_first_of_midway(task));
        firsts.min_by_key(|&task| (self.level(task), self.tasks[task].stamp))
    }

    fn oldest(&self) -> Option<usize> {
        let ready = self.ready.iter().copied();
        ready.min_by_key(|&task| self.tasks[task].stamp)
    }

    fn arrive(&mut self, task: usize, why: EnqueueReason) {
        self.arrivals += 1;
        let known = &mut self.tasks[task];
        known.stamp = self.arrivals;
        if why != EnqueueReason::HandedOver || known.left == 0 {
            known.left = SLICE_TICKS;
        }
        self.stand(task, why);
    }

    fn stand(&mut self, task: usize, why: EnqueueReason) {
        let known = &mut self.tasks[task];
        if matches!(why, EnqueueReason::Yielded | EnqueueReason::Woken) && known.polled.1 {
            known.polled = (NOTHING, false);
        }
        known.standing = match known.domain {
            None => known.own.min(known.donated()),
            Some(_) => known.current_claim(),
        };
        self.ready.push(task);
    }

    /// Requeues a preempted task by rule 5.
    fn go_on(&mut self, task: usize) {
        if self.tasks[task].left == 0 {
            return self.arrive(task, EnqueueReason::Preempted);
        }
        self.stand(task, EnqueueReason::Preempted);
        // It was before these, unless it has come to another list.
        let list = |task: usize| match self.tasks[task].domain {
            None => (0, self.tasks[task].standing),
            Some(domain) if self.is_fresh(task) => (1, domain),
            Some(_) => (2, task),
        };
        let has_waited_longer = |&other: &usize| {
            list(other) == list(task) && self.tasks[other].stamp < self.tasks[task].stamp
        };
        if self.ready.iter().any(has_waited_longer) {
            self.ready.retain(|&other| other != task);
            self.arrive(task, EnqueueReason::Preempted);
        }
    }

    /// Moves tasks up by the priorities donated to them (rule 8).
    fn look_for_donations(&mut self) {
        if core::mem::take(&mut self.has_donated) {
            for &task in &self.ready {
                let known = &mut self.tasks[task];
                known.standing = known.standing.min(known.donated());
            }
        }
    }

    fn take(&mut self, task: usize) {
        if self.is_fresh(task) {
            self.tasks[task].polled = (self.level(task), true);
        }
        self.ready.retain(|&other| other != task);
    }

    fn is_share_due(&self) -> bool {
        self.ticks >= SHARE_TICKS
    }

    fn enqueue(&mut self, task: usize, why: EnqueueReason) {
        match why {
            EnqueueReason::Preempted if !self.is_share_due() => self.go_on(task),
            EnqueueReason::Yielded | EnqueueReason::Preempted => self.aside = Some((task, why)),
            EnqueueReason::Woken | EnqueueReason::HandedOver => self.arrive(task, why),
        }
    }

    fn dispatch(&mut self) -> Option<usize> {
        self.has_ticked = false;
        if self.aside.is_none() && !self.is_share_due() {
            self.look_for_donations();
        }
        let (next, level_by_share) = match self.is_share_due() {
            true => {
                let oldest = self.oldest();
                let level = oldest.map(|task| self.take_by_share(task));
                (oldest, level)
            }
            false => (self.first().inspect(|&task| self.take(task)), None),
        };
        match (self.aside.take(), next) {
            (Some((task, why)), None) => {
                if why == EnqueueReason::Yielded {
                    self.tasks[task].left = SLICE_TICKS;
                }
                return Some(task);
            }
            (Some((task, EnqueueReason::Preempted)), _) => self.go_on(task),
            (Some((task, why)), _) => self.arrive(task, why),
            (None, _) => {}
        }
        let most_urgent = self.first().map(|first| self.level(first));
        if level_by_share.is_some_and(|level| most_urgent.is_some_and(|most| most < level)) {
            self.tasks[next.unwrap()].left = 0;
        }
        next
    }

    /// Takes a task by rule 7, and returns its level.
    fn take_by_share(&mut self, task: usize) -> usize {
        self.ticks = (self.ticks - SHARE_TICKS).min(SHARE_TICKS - 1);
        let level = self.level(task);
        self.take(task);
        self.arrivals += 1;
        self.tasks[task].stamp = self.arrivals;
        level
    }

    /// Returns true if a tick preempts, by rule 4 or as a share is due.
    fn ticked(&mut self, runs: usize) -> bool {
        let is_first = !core::mem::replace(&mut self.has_ticked, true);
        let takes_last = self.tasks[runs].left == 1;
        self.tasks[runs].left = self.tasks[runs].left.saturating_sub(1);
        let Some(oldest) = self.oldest() else {
            return false;
        };
        self.look_for_donations();
        self.ticks += 1;
        let known = &self.tasks[runs];
        let level = match known.domain {
            None => known.own.min(known.donated()),
            Some(domain) => known.current_claim().min(self.of_domain(domain)),
        };
        match self.level(self.first().unwrap()).cmp(&level) {
            Ordering::Less => !(is_first && takes_last),
            Ordering::Equal if known.left == 0 => true,
            _ => self.is_share_due() && self.level(oldest) > level,
        }
    }
}

type Handle = Arc<CoopTask<usize>>;

/// The policy and the model side by side.
struct Pair<'a> {
    scheduler: CoopScheduler<usize, CoopPerThread>,
    model: Model,
    tasks: &'a [Handle],
    runs: Option<usize>,
    blocked: Vec<usize>,
    /// The number of picks of tasks without and with a domain.
    picks: [usize; 2],
    shares: usize,
}

impl Pair<'_> {
    fn spawn(&mut self, domain: Option<usize>) {
        let id = self.model.tasks.len();
        let Some(task) = self.tasks.get(id) else {
            return;
        };
        domain.inspect(|&domain| of(task).unwrap().serve(DomainId::new(domain)));
        self.model.tasks.push(Known {
            own: 4,
            domain,
            polled: (NOTHING, false),
            donated: Vec::new(),
            left: SLICE_TICKS,
            stamp: 0,
            standing: NOTHING,
        });
        self.scheduler.add_task(task.clone());
        self.model.arrive(id, EnqueueReason::Woken);
    }

    fn pick(&mut self) {
        self.shares += usize::from(self.model.is_share_due());
        let found = self.scheduler.pick_next_task().map(|task| *task.inner());
        let expected = self.model.dispatch();
        assert_eq!(found, expected, "after {:?} picks", self.picks);
        self.runs = found;
        if let Some(task) = found {
            self.picks[usize::from(self.model.tasks[task].domain.is_some())] += 1;
        }
    }

    fn put_back(&mut self, task: usize, why: EnqueueReason) {
        let task_of = self.tasks[task].clone();
        self.scheduler
            .put_prev_task(task_of, why == EnqueueReason::Preempted);
        self.model.enqueue(task, why);
    }

    /// Hands over the task that would run first, and takes it back.
    fn hand_over(&mut self) {
        let policy = self.scheduler.policy_mut();
        let Some(given) = policy.migrate_out(&|_| true, &|| true) else {
            return;
        };
        let id = *given.inner();
        policy.enqueue(given, EnqueueReason::HandedOver);
        self.model.look_for_donations();
        self.model.ready.retain(|&other| other != id);
        self.model.enqueue(id, EnqueueReason::HandedOver);
    }

    fn give_way(&mut self, why: EnqueueReason) {
        let task = self.runs.take().unwrap();
        self.put_back(task, why);
        self.pick();
    }

    fn assert_valid(&self) {
        let ready = self.scheduler.policy().ready.assert_valid();
        assert_eq!(ready, self.model.ready.len());
        for &task in &self.model.ready {
            let stamp = self.tasks[task].policy_state().stamp();
            assert_eq!(stamp, self.model.tasks[task].stamp, "of task {task}");
        }
    }

    /// Simulates a step of the running task.
    fn step(&mut self, what: u8, d: usize, p: usize) {
        let Some(runs) = self.runs else {
            return self.pick();
        };
        match what {
            0..3 => self.give_way(EnqueueReason::Yielded),
            3 => self.give_way(EnqueueReason::Preempted), // for a task that was woken
            4 => {
                self.blocked.push(runs);
                self.pick();
            }
            5 => {
                assert!(self.scheduler.set_priority(&self.tasks[runs], p as isize));
                self.model.tasks[runs].own = p;
            }
            6 if self.model.tasks[runs].domain.is_some() => {
                let says = (d > 1).then_some(p);
                of(&self.tasks[runs])
                    .unwrap()
                    .set_polled(says.map(priority));
                self.model.tasks[runs].polled = (says.unwrap_or(NOTHING), false);
            }
            7..16 => {
                let found = self.scheduler.task_tick(&self.tasks[runs]);
                let expected = self.model.ticked(runs);
                assert_eq!(found, expected, "a tick after {:?} picks", self.picks);
                if found {
                    self.give_way(EnqueueReason::Preempted);
                }
            }
            _ => {}
        }
    }
}

/// The kind of step, and two numbers that it uses.
type Step = (u8, usize, usize);

/// Simulates the steps on both. Returns how often tasks without and with a domain were picked, and
/// how often by a share.
fn play(steps: &[Step]) -> ([usize; 2], usize) {
    CoopPerThread::clear();
    let tasks: Vec<Handle> = (0..24).map(|id| Arc::new(CoopTask::new(id))).collect();
    let mut donated = Vec::new();
    let mut pair = Pair {
        scheduler: CoopScheduler::new(),
        model: Model::default(),
        tasks: &tasks,
        runs: None,
        blocked: Vec::new(),
        picks: [0; 2],
        shares: 0,
    };
    pair.spawn(None);
    pair.pick();
    for &(what, d, p) in steps {
        let any = 8 * d + p;
        match what {
            0 | 1 => pair.spawn((p < 5).then_some(d % 3)),
            2..5 => {
                mark(d % 3, p);
                pair.model.marked.insert((p, d % 3));
            }
            5..8 => {
                clear(d % 3, p);
                pair.model.marked.remove(&(p, d % 3));
            }
            8 => {
                let to = any % pair.model.tasks.len();
                let state = of(&tasks[to]).unwrap();
                let donation = state.donate_by::<CoopPerThread>(priority(p)).unwrap();
                donated.push((to, p, donation));
                pair.model.tasks[to].donated.push(p);
                pair.model.has_donated = true;
            }
            9 if !donated.is_empty() => {
                let (to, p, donation) = donated.swap_remove(any % donated.len());
                drop(donation);
                let all = &mut pair.model.tasks[to].donated;
                all.remove(all.iter().position(|&other| other == p).unwrap());
            }
            10 | 11 if !pair.blocked.is_empty() => {
                let task = pair.blocked.swap_remove(any % pair.blocked.len());
                pair.put_back(task, EnqueueReason::Woken);
            }
            28 => pair.hand_over(),
            _ => pair.step(what.saturating_sub(12), d, p),
        }
        pair.assert_valid();
    }
    (pair.picks, pair.shares)
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0..29u8, 0..8usize, 0..8usize), 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_model_picks_the_same_task(steps in any_steps()) {
        play(&steps);
    }
}

/// The steps of the test above reach these cases.
#[test]
fn random_steps_pick_workers_and_other_tasks_and_reach_shares() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut all = ([0; 2], 0);
    for _ in 0..100 {
        let steps = any_steps().new_tree(&mut runner).unwrap().current();
        let (picks, shares) = play(&steps);
        all = ([0, 1].map(|i| all.0[i] + picks[i]), all.1 + shares);
    }
    assert!(
        all.0.iter().all(|&picks| picks > 1000) && all.1 > 100,
        "{all:?}"
    );
}
