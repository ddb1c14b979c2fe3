//! Following a plan: the ready set over ranks, and the watch over reality.
//!
//! A [`Table`] is made by the call, in one go, and never grows. It is not generic,
//! because the call does not know the task type; its empty queues get their type
//! from the [`Replay`] that takes it over.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

use super::control::{Tally, Why, add, count};
use super::measure::MAX_TASKS;
use super::plan::{Plan, Step, Weight};
use super::stored::Label;
use super::{Behind, Member, PbgState, reserved};
use crate::event::Tick;
use crate::queue::{Queue, Slot};
use crate::syscall::Error;
use crate::task::Task;
use crate::units::{Counts, TaskKey};

type Handle<T> = Arc<Task<T, PbgState>>;

/// Ticks that pass while a task outside the plan is ready before one gets a turn
/// of a whole tick (rule 7): such tasks have at least a tenth of the CPU. Enough
/// for `main` and `gc` to go on, little enough that a plan loses at most a ninth
/// of its time even to a task that takes all it can get.
pub const PLAN_TICKS: u32 = 9;

/// Beyond how many times its planned time, or its planned yields, a task counts as
/// off plan (rule 8). Two, because what varies by less than that is the same
/// behaviour in another mood (another input, a cold cache), and demoting it would
/// cost more.
pub const OVERRUN_FACTOR: u64 = 2;

/// How many ticks must find a task beyond that before it is demoted (rule 8).
/// Two, because one may hit a task that was planned for less than a tick.
pub const OVERRUN_TICKS: u8 = 2;

/// Or how many times the CPU must go over from it to another when it is beyond
/// that: a task may run and block between ticks, and no tick ever meet it.
/// Sixteen, so that a task planned for next to nothing may be interrupted.
pub const OVERRUN_HANDOVERS: u8 = 16;

/// Yields that any task may make, however few were planned (rule 8): a lock that is
/// contended for once more is no other behaviour. Not many, as one that yields until
/// another has done its part would keep the CPU from that other.
pub const FREE_YIELDS: u64 = 64;

/// What is longer than recorded by one in so many parts is as recorded, for the order of
/// tasks (rule 5).
const NOISE: u64 = 4;

/// At one place stand the tasks that have more before them than the place before. They
/// are sorted by what that is, but for this many at most: so a return to
/// the ready set takes no longer, and what is lost is the order among those behind.
const MOST_PASSED: usize = 64;

/// The replay is behind when its tasks together are late by more than one in so many of
/// all the turnaround that was measured (rule 11), and by a tick each. Twenty, as less than
/// that is no reason to lose what a plan gains.
pub const BEHIND_BEYOND: u64 = 20;

/// Of the time that a task is late, so many times what it has used beyond its record is its
/// own doing (rule 11). Who waits for another is hardly ever on the CPU; who has more to do
/// than recorded has at least a tenth of it, with the others of the fallback queue.
pub const LATE_BY_ITSELF: u64 = 64;

/// The tasks that a tick looks at for rule 11, so that it takes no longer in a large plan.
const LOOKS_A_TICK: usize = 64;

/// What a tick counts for, where a handover counts for one.
const OVERRUN_TICK_POINTS: u8 = OVERRUN_HANDOVERS / OVERRUN_TICKS;

/// A set of ranks below [`MAX_TASKS`], two levels of one word each: insert,
/// remove and first cost a constant number of instructions. 520 bytes.
///
/// SUMMARY: bit i of `summary` is set exactly if `words[i]` is not zero.
struct RankSet {
    summary: u64,
    words: [u64; 64],
}

const _: () = assert!(MAX_TASKS == 64 * 64, "RankSet has two levels of 64");

impl RankSet {
    const EMPTY: Self = Self {
        summary: 0,
        words: [0; 64],
    };

    #[inline]
    const fn insert(&mut self, rank: usize) {
        self.words[rank / 64] |= 1 << (rank % 64);
        self.summary |= 1 << (rank / 64);
    }

    #[inline]
    const fn remove(&mut self, rank: usize) {
        let word = &mut self.words[rank / 64];
        *word &= !(1 << (rank % 64));
        if *word == 0 {
            self.summary &= !(1 << (rank / 64));
        }
    }

    #[inline]
    const fn first(&self) -> Option<usize> {
        if self.summary == 0 {
            return None;
        }
        let i = self.summary.trailing_zeros() as usize;
        // The mask says to the compiler what SUMMARY says to us: i is below 64.
        Some(i * 64 + self.words[i % 64].trailing_zeros() as usize)
    }

    #[cfg(test)]
    fn assert_valid(&self) {
        for (i, &word) in self.words.iter().enumerate() {
            assert_eq!(self.summary >> i & 1 == 1, word != 0, "SUMMARY at {i}");
        }
    }
}

/// What the replay knows of a task of the plan.
struct Entry {
    key: TaskKey,
    /// The most time on the CPU in any recorded run, and the most yields.
    most: Counts,
    most_yields: u64,
    used: Counts,
    yields: u64,
    /// What was before it when its stretch began. While no more than `sure` of the stretch
    /// is done, both it and the task are within their record, and that much less is.
    ahead: Counts,
    sure: Counts,
    /// The stretch that it is in: how long it should be, how much of it is done, and
    /// how many like it are to come.
    stretch: Counts,
    done: Counts,
    like_it: u64,
    /// What it should use in all.
    run: Counts,
    /// How long it lived when it was measured, when it was spawned, and when it last gave
    /// the CPU away or was spawned. Unless it is `ready` or runs, it may have ended then.
    life: Counts,
    born: Counts,
    seen: Counts,
    /// Of the table's steps, those to come after these.
    steps: Range<u32>,
    /// The ranks of its band.
    band: Range<u32>,
    /// Where it is ready, or was last.
    place: u32,
    children: u32,
    /// Up to [`OVERRUN_HANDOVERS`], where the task is demoted (rule 8).
    overrun: u8,
    taken: bool,
    /// It waits for the CPU, in whichever queue.
    ready: bool,
    weight: Weight,
}

/// What remains of something that was recorded to take `recorded`, when `done` of it
/// is. Beyond what was recorded nobody knows. Up to a quarter it is taken for noise, and
/// the end to be near; then to need as much again as it has had, as one doubles a guess
/// that was too low, so that a task gives way to more and more (rule 5). (Four times that
/// does better where one task of several has grown, and far worse where all have doubled.)
const fn remains_of(recorded: Counts, done: Counts) -> Counts {
    let noise = recorded.0.saturating_add(recorded.0 / NOISE);
    if done.0 <= recorded.0 {
        Counts(recorded.0 - done.0)
    } else if done.0 <= noise {
        Counts(noise - done.0)
    } else {
        done
    }
}

impl Entry {
    #[inline]
    const fn demoted(&self) -> bool {
        self.overrun >= OVERRUN_HANDOVERS
    }

    /// What is before it after `burst` more.
    #[inline]
    const fn remains(&self, burst: Counts) -> Counts {
        let done = self.done.saturating_add(burst);
        if done.0 <= self.sure.0 {
            Counts(self.ahead.0 - done.0)
        } else {
            self.remains_beyond(burst)
        }
    }

    /// The same, whatever has been done.
    const fn remains_beyond(&self, burst: Counts) -> Counts {
        let stretch = remains_of(self.stretch, self.done.saturating_add(burst));
        let rest = remains_of(self.run, self.used.saturating_add(burst));
        self.weight.before(stretch, rest)
    }

    /// Rule 8: `used` has been looked at, for so many `points`. Whether the task
    /// is demoted by this.
    #[inline]
    fn watch(&mut self, used: Counts, points: u8, tally: &Tally) {
        if self.demoted() || used <= self.most.saturating_mul(OVERRUN_FACTOR) {
            return;
        }
        self.overrun = self.overrun.saturating_add(points);
        if self.demoted() {
            count(&tally.demoted);
            tally.diverged(Why::Run, self.key, self.most.0, used.0);
        }
    }

    /// What it has used beyond its record, with the burst that it is in.
    fn surplus(&self, burst: Option<Counts>) -> Counts {
        let used = self.used.saturating_add(burst.unwrap_or(Counts::ZERO));
        Counts(used.0.saturating_sub(self.run.0))
    }

    /// How much later it is at `now` than it was when it was measured, or earlier:
    /// by how much it adds to what all tasks have lived, less what they had lived by then in
    /// the measured run. `burst` is what it has run for since it was charged last, if it
    /// has the CPU.
    fn late(&self, now: Counts, burst: Option<Counts>) -> i128 {
        let age = now - self.born;
        let lived = if self.ready || burst.is_some() {
            age
        } else {
            self.seen - self.born
        };
        if lived <= self.life {
            return i128::from(lived.0) - i128::from(age.min(self.life).0);
        }
        let own = self.surplus(burst).saturating_mul(LATE_BY_ITSELF);
        i128::from((lived - self.life).0.saturating_sub(own.0))
    }

    /// The yields that it may make in all (rule 8).
    const fn may_yield(&self) -> u64 {
        self.most_yields
            .saturating_mul(OVERRUN_FACTOR)
            .saturating_add(FREE_YIELDS)
    }

    /// The next stretch begins. The last is repeated.
    fn next_stretch(&mut self, steps: &[Step]) {
        self.done = Counts::ZERO;
        if self.like_it > 0 {
            self.like_it -= 1;
        } else if let Some(next) = self.steps.next() {
            let Step { times, run } = steps[next as usize];
            self.like_it = times - 1;
            self.stretch = run;
        }
        self.ahead = self.remains_beyond(Counts::ZERO);
        let rest = self.run.0.saturating_sub(self.used.0);
        self.sure = Counts(rest).min(self.stretch);
    }
}

/// A plan made ready to be followed. [`ENTRY_BYTES`] a task, 16 a step, and 600 in
/// all, the latter inside the scheduler: a box of its own would be one more load on
/// the way.
pub struct Table {
    entries: Box<[Entry]>,
    steps: Box<[Step]>,
    /// (key, rank), sorted by key.
    by_key: Box<[(TaskKey, u32)]>,
    /// By rank: what a task has before it when it stands there. Sorted within a band.
    runs: Box<[Counts]>,
    /// By rank, empty: see [`Replay::new`].
    places: Box<[Queue<(), PbgState>]>,
    ready: RankSet,
    root_children: u32,
    /// Ticks since a task outside the plan had its last turn, or since there was
    /// none ready (rule 7).
    plan_ticks: u32,
    /// The fallback queue's turn has come (rule 7).
    turn_due: bool,
    /// The running task, which is outside the plan, has its turn of a whole tick: at
    /// the how-many-th tick from now it ends. 0 is no turn.
    turn_left: u8,
    /// The root has the CPU, as it woke and went first (rule 9).
    root_runs: bool,
    /// It had it since the last tick.
    root_ran: bool,
    /// A tick has hit a planned task since it had it last.
    root_may: bool,
    dropped: bool,
    watch: Watch,
}

/// The watch over the replay as a whole (rule 11): a round over all tasks, some of them at
/// each tick.
struct Watch {
    when_behind: Behind,
    found_behind: bool,
    /// The rank that the round has come to.
    next: u32,
    /// By how much the tasks before it are late together, and what they have used beyond
    /// their record.
    late: i128,
    surplus: Counts,
    /// The latest of them, and by how much.
    latest: (i128, u32),
    /// What unknown tasks have used.
    unknown: Counts,
    /// By how much all may be late together, but for the ticks.
    allowed: Counts,
    /// When a tick came last, and the shortest time between two.
    ticked: Option<Counts>,
    tick: Counts,
}

/// What a planned task takes, in bytes.
pub const ENTRY_BYTES: usize = size_of::<Entry>()
    + size_of::<(TaskKey, u32)>()
    + size_of::<Counts>()
    + size_of::<Queue<(), PbgState>>();
#[cfg(target_pointer_width = "64")]
const _: () = assert!(ENTRY_BYTES == 184);

fn boxed<A>(items: impl ExactSizeIterator<Item = A>) -> Result<Box<[A]>, Error> {
    let mut vec = reserved(items.len())?;
    vec.extend(items);
    Ok(vec.into_boxed_slice())
}

impl Table {
    pub fn new(plan: &Plan, when_behind: Behind) -> Result<Self, Error> {
        let tasks = plan.tasks();
        // Where the user has asked for another order than the shortest first, it may
        // well be slower.
        let is_asked_for = tasks.last().is_some_and(|last| last.band > 0);
        let measured = tasks.iter().fold(Counts::ZERO, |sum, task| {
            sum.saturating_add(task.turnaround)
        });
        let mut by_key = boxed(
            tasks
                .iter()
                .enumerate()
                .map(|(rank, task)| (task.key, rank as u32)),
        )?;
        by_key.sort_unstable_by_key(|&(key, _)| key);
        let steps = boxed(plan.steps().iter().copied())?;
        let mut entries = boxed(tasks.iter().map(|task| {
            let mut entry = Entry {
                key: task.key,
                most: task.most,
                most_yields: task.yields,
                used: Counts::ZERO,
                yields: 0,
                ahead: Counts::ZERO,
                sure: Counts::ZERO,
                stretch: Counts::ZERO,
                done: Counts::ZERO,
                like_it: 0,
                run: task.run,
                life: task.turnaround,
                born: Counts::ZERO,
                seen: Counts::ZERO,
                steps: task.steps.clone(),
                band: 0..0,
                place: 0,
                children: 0,
                overrun: 0,
                taken: false,
                ready: false,
                weight: task.weight,
            };
            entry.next_stretch(&steps);
            entry
        }))?;
        let mut first = 0;
        for band in tasks.chunk_by(|a, b| a.band == b.band) {
            let end = first + band.len();
            for entry in &mut entries[first..end] {
                entry.band = first as u32..end as u32;
            }
            first = end;
        }
        Ok(Self {
            entries,
            steps,
            by_key,
            runs: boxed(tasks.iter().map(|task| task.key_run))?,
            places: boxed(tasks.iter().map(|_| Queue::new()))?,
            ready: RankSet::EMPTY,
            root_children: 0,
            plan_ticks: 0,
            turn_due: false,
            turn_left: 0,
            root_runs: false,
            root_ran: false,
            root_may: true,
            dropped: false,
            watch: Watch {
                when_behind: if is_asked_for {
                    Behind::Keep
                } else {
                    when_behind
                },
                found_behind: false,
                next: 0,
                late: 0,
                surplus: Counts::ZERO,
                latest: (0, 0),
                unknown: Counts::ZERO,
                allowed: Counts(measured.0 / BEHIND_BEYOND),
                ticked: None,
                tick: Counts(u64::MAX),
            },
        })
    }

    /// The place of a task of rank `rank` that has so much before it: before
    /// the first of its band who has at least as much before him.
    fn place(&self, rank: usize, remains: Counts) -> usize {
        let Range { start, end } = self.entries[rank].band.clone();
        let band = &self.runs[start as usize..end as usize];
        let at = band.partition_point(|&run| run < remains);
        start as usize + at.min(band.len() - 1)
    }
}

/// A plan that is being followed by a scheduler of tasks `T`.
pub struct Replay<T> {
    table: Table,
    /// By rank: the ready tasks that stand there, the first first.
    ///
    /// PLACES: a queue is not empty exactly if its rank is in `ready`.
    places: Box<[Queue<T, PbgState>]>,
    /// The root, if it woke and goes first (rule 9).
    root: Slot<T, PbgState>,
}

impl<T> Replay<T> {
    /// Takes a table over.
    pub fn new(mut table: Table) -> Self {
        let places = core::mem::take(&mut table.places);
        Self {
            table,
            places: Queue::typed(places), // establishes PLACES: all are empty
            root: Slot::EMPTY,
        }
    }

    /// A task was spawned by `parent`; says which member it is (rules 1 and 6). It is
    /// ready.
    pub fn spawned(
        &mut self,
        parent: Member,
        label: Option<&Label>,
        now: Counts,
        tally: &Tally,
    ) -> Member {
        let table = &mut self.table;
        let place = match parent.index() {
            Some(rank) => {
                let entry = &mut table.entries[rank];
                Some((entry.key, &mut entry.children))
            }
            None if parent == Member::ROOT => Some((TaskKey::ROOT, &mut table.root_children)),
            None => None,
        };
        let place = place.map(|(key, children)| {
            let ordinal = *children;
            *children = children.wrapping_add(1);
            key.child(ordinal)
        });
        let key = match (label, place) {
            (Some(label), _) if parent != Member::OUTSIDE => TaskKey::labelled(label.as_str()),
            (_, Some(place)) => place,
            _ => return parent, // nobody's, or unknown as its parent is
        };
        if let Ok(found) = table.by_key.binary_search_by_key(&key, |&(key, _)| key) {
            let rank = table.by_key[found].1;
            let entry = &mut table.entries[rank as usize];
            if !core::mem::replace(&mut entry.taken, true) {
                (entry.born, entry.seen) = (now, now);
                entry.ready = true;
                count(&tally.matched);
                add(&tally.measured, entry.life);
                return Member::of(rank);
            }
        }
        count(&tally.unplanned);
        tally.diverged(Why::Unknown, key, 0, 0);
        Member::UNKNOWN
    }

    /// Whether `member` runs by the plan, and not from the fallback queue.
    #[inline]
    pub fn follows(&self, member: Member) -> bool {
        !self.table.dropped
            && member
                .index()
                .is_some_and(|rank| !self.table.entries[rank].demoted())
    }

    /// `member` waits for the CPU, by the plan or not.
    #[inline]
    pub fn waits(&mut self, member: Member) {
        if let Some(rank) = member.index() {
            self.table.entries[rank].ready = true;
        }
    }

    /// `task`, which the plan knows as `member`, is ready for the first time.
    pub fn ready_first(&mut self, member: Member, task: Handle<T>) {
        let rank = member.rank();
        self.stand(rank, rank, task, false); // equal ones by rank, so by arrival
    }

    /// It is ready after a block.
    pub fn ready_woken(&mut self, member: Member, task: Handle<T>) {
        let rank = member.rank();
        let entry = &mut self.table.entries[rank];
        if entry.weight != Weight::WHOLE {
            entry.next_stretch(&self.table.steps);
        }
        let remains = self.table.entries[rank].remains(Counts::ZERO);
        let place = self.table.place(rank, remains);
        self.stand(rank, place, task, false);
    }

    /// It gives the CPU back, by itself or not, and goes on from where it was: before
    /// those who have as much before them and did not run yet.
    pub fn ready_again(&mut self, member: Member, task: Handle<T>) {
        let rank = member.rank();
        let remains = self.table.entries[rank].remains(Counts::ZERO);
        let place = self.table.place(rank, remains);
        self.stand(rank, place, task, true);
    }

    fn stand(&mut self, rank: usize, place: usize, task: Handle<T>, first: bool) {
        let entries = &mut self.table.entries;
        entries[rank].place = place as u32;
        let remains = entries[rank].remains(Counts::ZERO);
        self.places[place].push_before(task, MOST_PASSED, |other| {
            let theirs = entries[other.state().member().rank()].remains(Counts::ZERO);
            if first {
                remains <= theirs
            } else {
                remains < theirs
            }
        });
        self.table.ready.insert(place);
    }

    /// A dispatch begins, which ends whoever's turn it was. Takes the root, if it goes
    /// first (rule 9).
    #[inline]
    pub fn take_root(&mut self) -> Option<Handle<T>> {
        self.table.turn_left = 0;
        let root = self.root.take();
        self.table.root_runs = root.is_some();
        self.table.root_ran |= self.table.root_runs;
        root
    }

    /// The root has woken. It is taken if it may go first (rule 9), else it comes back.
    pub fn root_woke(&mut self, root: Handle<T>) -> Option<Handle<T>> {
        if self.table.dropped || !core::mem::take(&mut self.table.root_may) {
            return Some(root);
        }
        self.root.put(root);
        None
    }

    /// Whether the root waits to go first.
    #[inline]
    pub const fn root_due(&self) -> bool {
        !self.root.is_empty()
    }

    /// Takes the ready task that stands first, unless it is the fallback queue's turn
    /// and somebody is `waiting` there.
    #[inline]
    pub fn take_first(&mut self, waiting: bool) -> Option<Handle<T>> {
        if self.table.turn_due && waiting {
            return None;
        }
        let place = self.table.ready.first()?;
        Some(self.take(place))
    }

    #[inline]
    fn take(&mut self, place: usize) -> Handle<T> {
        let queue = &mut self.places[place];
        let task = queue
            .pop_front()
            .expect("PLACES: a rank is ready without a task");
        if queue.is_empty() {
            self.table.ready.remove(place);
        }
        task
    }

    /// Whether a planned task is ready.
    #[inline]
    pub const fn any_ready(&self) -> bool {
        self.table.ready.summary != 0
    }

    /// The fallback queue is served now, whether its turn has come or no planned
    /// task is ready.
    #[inline]
    pub fn fallback_turn(&mut self, tally: &Tally) {
        if core::mem::replace(&mut self.table.turn_due, false) {
            self.begin_turn(tally);
        }
    }

    fn begin_turn(&mut self, tally: &Tally) {
        self.table.plan_ticks = 0;
        // If the root went first, some of this tick is over.
        self.table.turn_left = 1 + u8::from(self.table.root_ran);
        if self.any_ready() {
            count(&tally.turns);
        }
    }

    /// `member` has the CPU. The yields that it may make without being looked at.
    #[inline]
    pub fn dispatched(&mut self, member: Member) -> i64 {
        let Some(rank) = member.index() else { return 0 };
        let entry = &mut self.table.entries[rank];
        entry.ready = false;
        if entry.demoted() || self.table.dropped {
            return 0;
        }
        let left = entry.may_yield().saturating_sub(entry.yields);
        left.min(i64::MAX as u64) as i64
    }

    /// `member` has yielded so often since it was looked at last (rule 8).
    #[inline]
    pub fn yielded(&mut self, member: Member, times: u64, tally: &Tally) {
        let Some(rank) = member.index() else { return };
        let entry = &mut self.table.entries[rank];
        entry.yields = entry.yields.saturating_add(times);
        if entry.yields > entry.may_yield() && !entry.demoted() {
            entry.overrun = OVERRUN_HANDOVERS;
            count(&tally.demoted);
            tally.diverged(Why::Yields, entry.key, entry.most_yields, entry.yields);
        }
    }

    /// `member` has had the CPU for `burst` since it was charged last.
    #[inline]
    pub fn charge(&mut self, member: Member, burst: Counts) {
        if let Some(rank) = member.index() {
            let entry = &mut self.table.entries[rank];
            entry.used += burst;
            entry.done += burst;
        } else if member == Member::UNKNOWN {
            self.table.watch.unknown += burst;
        }
    }

    /// The CPU goes over from `member` to another. If that demotes it and it is ready,
    /// it is given out: it has stood in its place since it came back.
    #[inline]
    pub fn handed_over(&mut self, member: Member, now: Counts, tally: &Tally) -> Option<Handle<T>> {
        let entry = &mut self.table.entries[member.index()?];
        add(&tally.lived, now - entry.seen);
        entry.seen = now;
        let followed = !entry.demoted();
        entry.watch(entry.used, 1, tally);
        if followed && entry.demoted() {
            let place = entry.place as usize;
            self.take_out(place, |task| task.state().member() == member)
        } else {
            None
        }
    }

    /// A tick hit `member`, which follows the plan and has run for `burst` since
    /// it was charged last; `waiting` is whether the fallback queue has somebody.
    pub fn ticked(&mut self, member: Member, burst: Counts, waiting: bool, tally: &Tally) -> Tick {
        let rank = member.rank();
        let table = &mut self.table;
        table.root_may = true;
        table.root_ran = false;
        let mut tick = Tick::reschedule_if(!self.root.is_empty()); // rule 9

        let entry = &mut table.entries[rank];
        entry.watch(entry.used.saturating_add(burst), OVERRUN_TICK_POINTS, tally);
        if entry.demoted() {
            tick = Tick::Reschedule; // rule 8
        }
        if let Some(first) = table.ready.first() {
            let remains = table.entries[rank].remains(burst);
            let place = table.place(rank, remains);
            let is_less = |other: &Task<T, PbgState>| {
                let other = &table.entries[other.state().member().rank()];
                other.remains(Counts::ZERO) < remains
            };
            if first < place || first == place && self.places[first].first().is_some_and(is_less) {
                tick = Tick::Reschedule; // rule 5
            }
        }
        if waiting {
            table.plan_ticks += 1;
            if table.plan_ticks >= PLAN_TICKS {
                table.turn_due = true; // rule 7
                tick = Tick::Reschedule;
            }
        } else {
            // Nobody saves up turns by arriving late.
            table.plan_ticks = 0;
            table.turn_due = false;
        }
        tick
    }

    /// A tick hit a task outside the plan while a planned one is ready. It gives
    /// way, unless its turn begins with this tick: a planned task that blocks
    /// before every tick must not take the ticks' worth from it (rule 7).
    pub fn ticked_outside(&mut self, tally: &Tally) -> Tick {
        let table = &mut self.table;
        table.root_ran = false;
        let root_runs = core::mem::take(&mut table.root_runs);
        if table.turn_left > 0 {
            table.turn_left -= 1;
            return Tick::reschedule_if(table.turn_left == 0);
        }
        table.plan_ticks += 1;
        if table.plan_ticks >= PLAN_TICKS {
            if !root_runs {
                self.begin_turn(tally);
                return Tick::Continue;
            }
            // The root has had its own; the turn is for those behind it.
            table.turn_due = true;
        }
        Tick::Reschedule
    }

    /// Rule 10: whether the plan is followed and is to be dropped, as it is wrong about
    /// more than two thirds of its tasks.
    pub fn is_refuted(&self, tally: &Tally) -> bool {
        let demoted = tally.demoted.load(Relaxed) as usize;
        !self.table.dropped && 3 * demoted > 2 * self.table.entries.len()
    }

    /// Rule 11: whether a tick finds the replay behind what was measured, and the plan is to
    /// be dropped for that. It hit `running`, which was charged last at `since`.
    pub fn is_behind(
        &mut self,
        running: Member,
        since: Counts,
        now: Counts,
        tally: &Tally,
    ) -> bool {
        let Table {
            entries,
            watch,
            dropped,
            ..
        } = &mut self.table;
        if *dropped || watch.found_behind {
            return false;
        }
        if let Some(last) = watch.ticked.replace(now)
            && now > last
        {
            watch.tick = watch.tick.min(now - last);
        }
        let first = watch.next as usize;
        let end = entries.len().min(first + LOOKS_A_TICK);
        for (rank, entry) in (first as u32..).zip(&entries[first..end]) {
            if entry.taken {
                let burst = (running == Member::of(rank)).then_some(now - since);
                let late = entry.late(now, burst);
                watch.late += late;
                watch.surplus += entry.surplus(burst);
                watch.latest = watch.latest.max((late, rank));
            }
        }
        watch.next = end as u32;
        if end < entries.len() {
            return false;
        }
        watch.next = 0;
        let (late, (_, latest)) = (
            core::mem::take(&mut watch.late),
            core::mem::take(&mut watch.latest),
        );
        // What the measured run did not have would have made all that are there late, too.
        let mut new = core::mem::take(&mut watch.surplus).saturating_add(watch.unknown);
        if running == Member::UNKNOWN {
            new += now - since;
        }
        // And a sleep lasts until a tick, in whatever order they run.
        let each = new.saturating_add(watch.tick);
        let excused = each.saturating_mul(entries.len() as u64);
        if late <= i128::from(watch.allowed.0) + i128::from(excused.0) {
            return false;
        }
        watch.found_behind = true;
        tally.behind.store(true, Relaxed);
        let Entry {
            key, life, born, ..
        } = &entries[latest as usize];
        tally.diverged(Why::Turnaround, *key, life.0, (now - *born).0);
        if watch.when_behind == Behind::Keep {
            return false;
        }
        self.late_first(now);
        true
    }

    /// Gives the plan up; `each` gets the ready tasks by rank, or by place. Once, and linear.
    #[cold]
    pub fn drop_plan(&mut self, mut each: impl FnMut(Handle<T>), tally: &Tally) {
        self.table.dropped = true;
        tally.dropped.store(true, Relaxed);
        if let Some(root) = self.root.take() {
            each(root);
        }
        while let Some(place) = self.table.ready.first() {
            each(self.take(place));
        }
    }

    /// Has the ready tasks that are late at `now` stand before the others, in the order in
    /// which they came; the others stay by rank. Once, and linear.
    #[cold]
    fn late_first(&mut self, now: Counts) {
        let (mut late, mut others) = (Queue::new(), Queue::new());
        while let Some(place) = self.table.ready.first() {
            let task = self.take(place);
            let entries = &self.table.entries;
            let entry = &entries[task.state().member().rank()];
            if entry.late(now, None) > 0 {
                let earlier = |other: &Task<T, PbgState>| {
                    entry.born < entries[other.state().member().rank()].born
                };
                late.push_before(task, MOST_PASSED, earlier);
            } else {
                others.push_back(task);
            }
        }
        let last = self.places.len() - 1;
        for (place, mut group) in [(0, late), (last, others)] {
            while let Some(task) = group.pop_front() {
                let rank = task.state().member().rank();
                self.table.entries[rank].place = place as u32;
                self.places[place].push_back(task);
                self.table.ready.insert(place);
            }
        }
    }

    /// Takes `task` out if it is ready by the plan.
    pub fn remove(&mut self, member: Member, task: &Handle<T>) -> Option<Handle<T>> {
        if self.root.holds(task) {
            return self.root.take();
        }
        // It may be of another scheduler, whose plan has more.
        let place = self.table.entries.get(member.index()?)?.place as usize;
        self.take_out(place, |other| core::ptr::eq(other, Arc::as_ptr(task)))
    }

    /// Takes the first task at `place` out that is `wanted`.
    fn take_out(
        &mut self,
        place: usize,
        wanted: impl Fn(&Task<T, PbgState>) -> bool,
    ) -> Option<Handle<T>> {
        let queue = &mut self.places[place];
        let task = queue.remove_first(wanted)?;
        if queue.is_empty() {
            self.table.ready.remove(place);
        }
        Some(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_remains_is_noise_at_first_and_then_as_much_again() {
        for (done, remains) in [(0, 100), (99, 1), (100, 0), (101, 24), (125, 0), (126, 126)] {
            assert_eq!(
                remains_of(Counts(100), Counts(done)),
                Counts(remains),
                "{done}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_rank_set_is_an_ordered_set(ops in prop::collection::vec((0..2u8, 0..MAX_TASKS), 0..300)) {
            let (mut set, mut model) = (RankSet::EMPTY, BTreeSet::new());
            for (op, rank) in ops {
                // Few distinct ranks, at both ends and in the middle, so that removals hit.
                let rank = [rank, rank % 3, MAX_TASKS - 1 - rank % 3][rank % 3];
                if op == 0 {
                    set.insert(rank);
                    model.insert(rank);
                } else {
                    set.remove(rank);
                    model.remove(&rank);
                }
                set.assert_valid();
                prop_assert_eq!(set.first(), model.first().copied());
            }
        }
    }
}
