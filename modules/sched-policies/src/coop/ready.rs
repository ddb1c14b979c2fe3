//! The ready tasks of one queue in 24 lists, by which the most urgent one is found.
//!
//! There is a list of each priority for the tasks that serve no domain. Each domain has two lists
//! of workers. Its *fresh* workers are between two coroutines. Its *midway* workers were preempted
//! in a poll, say that they are in one, or have a donated priority. They have a level of their own
//! whatever the domain has ready. A worker's list does not depend on what is ready in its domain,
//! so no task has to move when that changes.
//!
//! OCCUPIED: bit i is set exactly if list i has a task.
//!
//! ORDER: each list is sorted by STAMP, the number of a task's arrival in this queue. A task keeps
//! its number while it is preempted within its slice. The lists of midway workers are sorted by
//! their claims first. A number is given once.
//!
//! CLAIMS: for each domain with midway workers the word has the bit of their most urgent claim, and
//! no other bit. That claim is the first worker's. The word has the layout of the summary, so the
//! OR of the two has the priorities that all workers wait for.

use alloc::sync::Arc;
use core::ptr;

use axcoop_summary::{DOMAINS, PRIORITIES};

use super::level::{Level, columns};
use super::task::CoopState;
use sched_core::event::EnqueueReason;
use sched_core::queue::Queue;
use sched_core::steps;
use sched_core::task::Task;

type CoopTask<T> = Task<T, CoopState>;

/// The number of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct List(usize);

impl List {
    const FRESH: usize = PRIORITIES;
    const MIDWAY: usize = Self::FRESH + DOMAINS;
    const COUNT: usize = Self::MIDWAY + DOMAINS;

    const fn own(level: Level) -> Self {
        Self(level.index())
    }

    const fn fresh(domain: usize) -> Self {
        Self(Self::FRESH + domain)
    }

    const fn midway(domain: usize) -> Self {
        Self(Self::MIDWAY + domain)
    }

    const fn bit(self) -> u32 {
        1 << self.0
    }

    const fn is_fresh(self) -> bool {
        Self::FRESH <= self.0 && self.0 < Self::MIDWAY
    }

    /// Returns the domain, if it is a list of midway workers.
    const fn midway_of(self) -> Option<usize> {
        self.0.checked_sub(Self::MIDWAY)
    }
}

/// The lists and the words that tell which of them matter, as the [module documentation](self)
/// describes.
pub(super) struct Ready<T> {
    lists: [Queue<T, CoopState>; List::COUNT],
    /// OCCUPIED: the lists that have a task (bit mask).
    occupied: u32,
    /// CLAIMS: the most urgent claims of the midway workers, in the layout of the summary.
    claims: u64,
    /// The number of arrivals so far, which is the last STAMP.
    arrivals: u64,
}

/// Returns the numbers of the set bits, from the lowest.
fn each(mut bits: u32) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let first = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        steps::count(1);
        bits &= bits - 1;
        Some(first)
    })
}

impl<T> Ready<T> {
    pub(super) const NEW: Self = Self {
        lists: [const { Queue::new() }; List::COUNT],
        occupied: 0,
        claims: 0,
        arrivals: 0,
    };

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    #[inline]
    const fn has(&self, list: List) -> bool {
        self.occupied & list.bit() != 0
    }

    /// Returns true if workers wait, and so the summary counts.
    #[inline]
    pub(super) const fn has_workers(&self) -> bool {
        self.occupied >> List::FRESH != 0
    }

    /// Returns the domains that have workers here.
    #[inline]
    const fn domains(&self) -> u8 {
        (self.occupied >> List::FRESH | self.occupied >> List::MIDWAY) as u8
    }

    /// Returns the most urgent level of the tasks that serve no domain.
    #[inline]
    const fn own_level(&self) -> Level {
        Level::first_of(self.occupied as u8)
    }

    /// Returns the priorities that workers here wait for, while these coroutines are ready.
    #[inline]
    const fn wanted(&self, ready: u64) -> u64 {
        ready & columns(self.domains()) | self.claims
    }

    /// Returns the most urgent level of all, while these coroutines are ready.
    pub(super) fn most_urgent(&self, ready: u64) -> Level {
        self.own_level().min(Level::first(self.wanted(ready)))
    }

    // These functions add a task.

    /// Puts a task behind all others of its level. It gets a new slice, unless it was handed over
    /// with the rest of one.
    pub(super) fn push_back(&mut self, task: Arc<CoopTask<T>>, why: EnqueueReason) {
        match task.policy_state().served() {
            None => self.push_back_own(task, why),
            Some(domain) => self.push_back_worker(task, domain, why),
        }
    }

    /// Puts a task that yields behind all others of its level, at a pick.
    #[inline(always)]
    pub(super) fn push_back_yielded(&mut self, task: Arc<CoopTask<T>>) {
        match task.policy_state().served() {
            None => self.push_back_own(task, EnqueueReason::Yielded),
            Some(domain) => self.push_back_yielded_worker(task, domain),
        }
    }

    #[inline(never)]
    fn push_back_yielded_worker(&mut self, task: Arc<CoopTask<T>>, domain: usize) {
        self.push_back_worker(task, domain, EnqueueReason::Yielded);
    }

    /// Gives a task its number (STAMP), and a new slice if it needs one.
    #[inline(always)]
    fn stamp(&mut self, state: &CoopState, why: EnqueueReason) {
        self.arrivals += 1;
        state.set_stamp(self.arrivals);
        if why != EnqueueReason::HandedOver || state.is_over() {
            state.renew();
        }
    }

    #[inline(always)]
    fn push_back_own(&mut self, task: Arc<CoopTask<T>>, why: EnqueueReason) {
        let state = task.policy_state();
        self.stamp(state, why);
        let list = List::own(state.level());
        self.occupied |= list.bit();
        self.lists[list.0].push_back(task);
    }

    fn push_back_worker(&mut self, task: Arc<CoopTask<T>>, domain: usize, why: EnqueueReason) {
        self.stamp(task.policy_state(), why);
        if matches!(why, EnqueueReason::Yielded | EnqueueReason::Woken) {
            task.policy_state().forget_assumed();
        }
        let claim = task.policy_state().current_claim();
        if claim == Level::NOTHING {
            let list = List::fresh(domain);
            self.occupied |= list.bit();
            return self.lists[list.0].push_back(task);
        }
        self.add_midway(task, domain, claim);
    }

    /// Puts a task that was preempted within its slice before all others of its level. If its level
    /// has changed and others have waited longer there, it goes behind them.
    pub(super) fn push_front(&mut self, task: Arc<CoopTask<T>>) {
        let state = task.policy_state();
        let stamp = state.stamp();
        // The number may be one of another queue, and so any number: see `event::Running`.
        if stamp > self.arrivals {
            return self.push_back(task, EnqueueReason::Preempted);
        }
        let list = match state.served() {
            None => List::own(state.level()),
            Some(domain) => match state.current_claim() {
                Level::NOTHING => List::fresh(domain),
                claim => return self.add_midway(task, domain, claim),
            },
        };
        // ORDER: the task may not go before one that came earlier.
        let first = self.lists[list.0].first();
        if first.is_some_and(|first| first.policy_state().stamp() < stamp) {
            return self.push_back(task, EnqueueReason::Preempted);
        }
        self.occupied |= list.bit();
        self.lists[list.0].push_front(task);
    }

    /// Puts a task among the midway workers of its domain. Linear in them.
    fn add_midway(&mut self, task: Arc<CoopTask<T>>, domain: usize, claim: Level) {
        let state = task.policy_state();
        state.set_claim(claim);
        let key = (claim, state.stamp());
        let list = List::midway(domain);
        self.lists[list.0].push_before(task, usize::MAX, |other| {
            (other.policy_state().claim(), other.policy_state().stamp()) > key
        });
        self.occupied |= list.bit();
        self.note_claims(domain);
    }

    /// Restores CLAIMS for one domain.
    fn note_claims(&mut self, domain: usize) {
        self.claims &= !columns(1 << domain);
        if let Some(first) = self.lists[List::midway(domain).0].first() {
            self.claims |= first.policy_state().claim().bit(domain);
        }
    }

    // These functions choose a task.

    /// Takes the most urgent task, while these coroutines are ready. Among several it takes the one
    /// that has waited longest. It calls `ready` only if workers wait.
    #[inline]
    pub(super) fn take_first(&mut self, ready: impl FnOnce() -> u64) -> Option<Arc<CoopTask<T>>> {
        if self.has_workers() {
            return self.take_first_with_workers(ready());
        }
        if self.is_empty() {
            return None;
        }
        Some(self.take_head(List::own(self.own_level())))
    }

    #[inline(never)]
    fn take_first_with_workers(&mut self, ready: u64) -> Option<Arc<CoopTask<T>>> {
        let level = self.most_urgent(ready);
        let mut oldest: Option<(u64, List)> = None;
        self.for_each_list_at(level, ready, |list| {
            let stamp = self.lists[list.0]
                .first()
                .map(|first| first.policy_state().stamp());
            oldest = stamp
                .map(|stamp| (stamp, list))
                .into_iter()
                .chain(oldest)
                .min_by_key(|&(stamp, _)| stamp);
        });
        let (_, list) = oldest?;
        let task = self.take_head(list);
        if list.is_fresh() {
            task.policy_state().picked_for(level); // rule 2
        }
        Some(task)
    }

    /// Calls `f` with each list whose first task is of this level, which must be the most urgent
    /// one.
    #[inline]
    fn for_each_list_at(&self, level: Level, ready: u64, mut f: impl FnMut(List)) {
        if level == Level::NOTHING {
            // Only workers that have nothing to do are left.
            return each(self.occupied).for_each(|list| f(List(list)));
        }
        if self.has(List::own(level)) {
            f(List::own(level));
        }
        let is_ready = level.row(ready);
        let is_claimed = level.row(self.claims);
        for domain in each(u32::from(level.row(self.wanted(ready)))) {
            let (fresh, midway) = (List::fresh(domain), List::midway(domain));
            if self.has(fresh) && is_ready >> domain & 1 != 0 {
                f(fresh);
            }
            // Rule 2: a midway worker counts for a ready coroutine if no other worker can take
            // that.
            if self.has(midway) && (is_claimed >> domain & 1 != 0 || !self.has(fresh)) {
                f(midway);
            }
        }
    }

    /// Takes the first task of a list that has one.
    #[inline]
    fn take_head(&mut self, list: List) -> Arc<CoopTask<T>> {
        let queue = &mut self.lists[list.0];
        let task = queue.pop_known();
        if queue.is_empty() {
            self.occupied ^= list.bit();
        }
        if let Some(domain) = list.midway_of() {
            self.note_claims(domain);
        }
        task
    }

    /// Returns the level of a task of this list, while these coroutines are ready.
    fn level_of(&self, list: List, task: &CoopTask<T>, ready: u64) -> Level {
        let of = |domain: usize| Level::first(ready & columns(1 << domain));
        match list.0 {
            own @ 0..List::FRESH => Level::from_bits(own as u8),
            fresh @ List::FRESH..List::MIDWAY => of(fresh - List::FRESH),
            midway => {
                let domain = midway - List::MIDWAY;
                let claim = task.policy_state().claim();
                match self.has(List::fresh(domain)) {
                    true => claim,
                    false => claim.min(of(domain)),
                }
            }
        }
    }

    /// Returns the list, the number and the level of the task that has waited longest.
    fn oldest(&self, ready: u64) -> Option<(List, u64, Level)> {
        let (list, oldest) = each(self.occupied)
            .map(List)
            .flat_map(|list| {
                let all = self.lists[list.0].iter();
                // By ORDER the first task of a list is the oldest, except among midway workers.
                let looked_at = list.midway_of().map_or(1, |_| usize::MAX);
                all.take(looked_at).map(move |task| (list, task))
            })
            .min_by_key(|(_, task)| task.policy_state().stamp())?;
        let level = self.level_of(list, oldest, ready);
        Some((list, oldest.policy_state().stamp(), level))
    }

    /// Returns the level of the task that has waited longest.
    pub(super) fn oldest_level(&self, ready: u64) -> Option<Level> {
        self.oldest(ready).map(|(_, _, level)| level)
    }

    /// Takes the task that has waited longest (rule 7), with a new STAMP as if it had just arrived.
    /// Returns its level, too.
    pub(super) fn take_oldest(&mut self, ready: u64) -> Option<(Arc<CoopTask<T>>, Level)> {
        let (list, stamp, level) = self.oldest(ready)?;
        let task = self.take_from(list, |task| task.policy_state().stamp() == stamp)?;
        let state = task.policy_state();
        if list.is_fresh() {
            state.picked_for(level);
        }
        self.arrivals += 1;
        state.set_stamp(self.arrivals);
        Some((task, level))
    }

    /// Takes the task that would run first among those that are `wanted`, if `agrees` returns true
    /// once it is found. Linear.
    pub(super) fn take_first_of(
        &mut self,
        ready: u64,
        wanted: impl Fn(&CoopTask<T>) -> bool,
        agrees: impl FnOnce() -> bool,
    ) -> Option<Arc<CoopTask<T>>> {
        let of_each = each(self.occupied).map(List).filter_map(|list| {
            let task = self.lists[list.0].find(&wanted)?;
            let stamp = task.policy_state().stamp();
            Some((self.level_of(list, task, ready), stamp, list))
        });
        let first = of_each.min_by_key(|&(level, stamp, _)| (level, stamp));
        let (_, stamp, list) = first.filter(|_| agrees())?;
        self.take_from(list, |task| task.policy_state().stamp() == stamp)
    }

    /// Takes the task that has waited longest, if it is `wanted`.
    pub(super) fn take_oldest_if(
        &mut self,
        ready: u64,
        wanted: impl Fn(&CoopTask<T>) -> bool,
    ) -> Option<Arc<CoopTask<T>>> {
        let (list, stamp, _) = self.oldest(ready)?;
        self.take_from(list, |task| {
            task.policy_state().stamp() == stamp && wanted(task)
        })
    }

    /// Takes this task out, if it is here. Linear.
    pub(super) fn remove(&mut self, task: &Arc<CoopTask<T>>) -> Option<Arc<CoopTask<T>>> {
        let is_it = |other: &CoopTask<T>| ptr::eq(other, Arc::as_ptr(task));
        each(self.occupied).find_map(|list| self.take_from(List(list), is_it))
    }

    /// Takes the first task of a list that is `wanted`. Linear in the tasks before it.
    fn take_from(
        &mut self,
        list: List,
        wanted: impl Fn(&CoopTask<T>) -> bool,
    ) -> Option<Arc<CoopTask<T>>> {
        let taken = self.lists[list.0].remove_first(wanted)?;
        if self.lists[list.0].is_empty() {
            self.occupied &= !list.bit();
        }
        if let Some(domain) = list.midway_of() {
            self.note_claims(domain);
        }
        Some(taken)
    }

    // These functions move a task.

    /// Moves the tasks to which a more urgent level than that of their list was donated (rule 8).
    /// Linear.
    pub(super) fn move_up(&mut self) {
        for list in each(self.occupied).map(List) {
            let is_raised_by_donation = |task: &CoopTask<T>| {
                let stands_at = match list.0 {
                    own @ 0..List::FRESH => Level::from_bits(own as u8),
                    List::FRESH..List::MIDWAY => Level::NOTHING,
                    _ => task.policy_state().claim(),
                };
                task.policy_state().donated_level() < stands_at
            };
            while let Some(task) = self.take_from(list, is_raised_by_donation) {
                self.move_task_up(task, list);
            }
        }
    }

    /// Moves a task up from that list. The priority may have been returned meanwhile.
    fn move_task_up(&mut self, task: Arc<CoopTask<T>>, from: List) {
        let donated = task.policy_state().donated_level();
        let domain = match from.0 {
            own @ 0..List::FRESH => {
                return self.insert(task, List::own(donated.min(Level::from_bits(own as u8))));
            }
            fresh @ List::FRESH..List::MIDWAY if donated == Level::NOTHING => {
                return self.insert(task, List(fresh));
            }
            fresh @ List::FRESH..List::MIDWAY => fresh - List::FRESH,
            midway => midway - List::MIDWAY,
        };
        let claim = match from.midway_of() {
            Some(_) => donated.min(task.policy_state().claim()),
            None => donated,
        };
        self.add_midway(task, domain, claim);
    }

    /// Puts a task where it belongs by its stamp (ORDER).
    fn insert(&mut self, task: Arc<CoopTask<T>>, list: List) {
        let stamp = task.policy_state().stamp();
        self.occupied |= list.bit();
        let behind = |other: &CoopTask<T>| other.policy_state().stamp() > stamp;
        self.lists[list.0].push_before(task, usize::MAX, behind);
    }

    /// Checks OCCUPIED, CLAIMS and ORDER. Returns the number of tasks.
    #[cfg(test)]
    pub(super) fn assert_valid(&self) -> usize {
        let mut claims = 0;
        for (i, list) in self.lists.iter().enumerate() {
            let tasks = list.tasks();
            assert_eq!(tasks.is_empty(), !self.has(List(i)), "OCCUPIED, list {i}");
            match List(i).midway_of() {
                None => {
                    let stamps = tasks.iter().map(|task| task.policy_state().stamp());
                    assert!(stamps.is_sorted_by(|a, b| a < b), "ORDER, list {i}");
                }
                Some(domain) => {
                    let keys = tasks
                        .iter()
                        .map(|t| (t.policy_state().claim(), t.policy_state().stamp()));
                    let is_sorted = keys.clone().is_sorted_by(|a, b| a < b);
                    assert!(is_sorted, "ORDER, midway of {domain}");
                    claims |= { keys }.next().map_or(0, |(first, _)| first.bit(domain));
                }
            }
            assert!(
                tasks
                    .iter()
                    .all(|task| task.policy_state().stamp() <= self.arrivals)
            );
        }
        assert_eq!(claims, self.claims, "CLAIMS");
        self.lists.iter().map(|list| list.tasks().len()).sum()
    }
}
