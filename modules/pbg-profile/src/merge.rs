//! Merging: from several runs of a program to one profile.

mod error;

use alloc::vec::Vec;
use core::mem;

use super::{
    EncodeError, Figures, Header, MAX_TASKS, Phases, Place, Spawned, StoredPhase, StoredProfile,
    StoredTask,
};
use sched_core::room::with_room;
use sched_core::units::TaskKey;

pub use error::MergeError;

/// Returns one profile of all the runs, as a [`Merger`] makes it.
///
/// # Errors
/// Returns the [`MergeError`] of the first profile that does not merge.
pub fn merge(profiles: &[StoredProfile]) -> Result<StoredProfile, MergeError> {
    let mut merger = Merger::default();
    profiles
        .iter()
        .try_for_each(|profile| merger.add(profile))?;
    merger.finish()
}

/// Several runs on the way to one profile, added one at a time. Any number of runs takes only the
/// memory of the resulting profile.
///
/// Tasks are matched by key. A task that only some profiles have is kept, with the number of its
/// own runs. A profile of unknown timing takes the timing of the others. If the users' settings
/// differ, the stricter one stands, which is the first priority or the earlier deadline. A task
/// that stood at different places gets [`Place::Several`]. A waker that was not the same everywhere
/// becomes [`Waker::Unknown`](super::Waker::Unknown).
///
/// All of this depends neither on the order of the profiles nor on which are merged first. The
/// order of the tasks does not depend on the order of the profiles: a task stands at its earliest
/// place in any of them.
///
/// The first accepted profile determines what the others must be. A refused profile changes
/// nothing, so the others may be merged without it.
#[derive(Debug, Default)]
pub struct Merger {
    /// The header of the accepted profiles, or none at the start.
    header: Option<Header>,
    /// The number of profiles that came, including those that were refused.
    came: usize,
    /// The tasks of the accepted profiles, sorted by key.
    tasks: Vec<Merged>,
}

/// A task of the profiles so far.
#[derive(Debug)]
struct Merged {
    /// The number of tasks that were known before it. Wakers name their tasks by this number. An
    /// index would not do, because it changes as tasks come.
    number: u16,
    /// Its earliest place in any of them.
    rank: u32,
    place: PlaceByKey,
    /// The merged task. Its place is not used.
    task: StoredTask,
}

/// A place that means the same in every profile: the parent's key and the ordinal. The root has no
/// key. `None` stands for several places.
type PlaceByKey = Option<(Option<TaskKey>, u32)>;

impl Merger {
    /// Adds a run, or several that were merged before. A profile of n tasks beside m known ones
    /// takes n log m comparisons, and m log m more if it has new tasks.
    ///
    /// # Errors
    /// Returns a [`MergeError`] if the profile does not merge. Nothing is added then.
    pub fn add(&mut self, profile: &StoredProfile) -> Result<(), MergeError> {
        let number = self.came;
        self.came += 1;
        let header = self.header_with(number, profile)?;
        let numbers = self.numbers(profile)?;
        let new = self.prepare(number, profile, &numbers)?;

        // From here on nothing can fail.
        self.header = Some(header);
        for (rank, task) in (0..).zip(&profile.tasks) {
            if let Ok(at) = self.find(task.key) {
                let place = place_by_key(profile, task.place);
                self.tasks[at].add(rank, place, task, &numbers);
            }
        }
        if !new.is_empty() {
            self.tasks.extend(new);
            self.tasks.sort_unstable_by_key(|known| known.task.key);
        }
        Ok(())
    }

    /// Returns one profile of all that were accepted. Its n tasks take n log n comparisons.
    ///
    /// # Errors
    /// Returns [`MergeError::Nothing`] if no profile was accepted, or [`MergeError::NoMemory`].
    pub fn finish(mut self) -> Result<StoredProfile, MergeError> {
        let header = self.header.ok_or(MergeError::Nothing)?;
        // PARENTS FIRST: a parent stands before its child in every profile that has the child. So
        // the parent's earliest place is before the child's, and so is its rank.
        (self.tasks).sort_unstable_by_key(|known| (known.rank, known.task.key));
        let mut index: Vec<(TaskKey, u32)> = room(self.tasks.len())?;
        index.extend((self.tasks.iter().map(|known| known.task.key)).zip(0..));
        index.sort_unstable();
        let mut indices: Vec<u16> = room(self.tasks.len())?;
        indices.resize(self.tasks.len(), 0);
        for (index, known) in (0..).zip(&self.tasks) {
            indices[usize::from(known.number)] = index;
        }
        for Merged { task, .. } in &mut self.tasks {
            renumber(task, &indices);
        }
        let mut tasks = room(self.tasks.len())?;
        tasks.extend(self.tasks.into_iter().map(|known| StoredTask {
            place: match known.place {
                None => Place::Several,
                Some((None, ordinal)) => Place::Root { ordinal },
                Some((Some(parent), ordinal)) => {
                    // Every profile that has a task has its parent.
                    let at = index.partition_point(|(key, _)| *key < parent);
                    Place::Child {
                        parent: index[at].1,
                        ordinal,
                    }
                }
            },
            ..known.task
        }));
        Ok(StoredProfile {
            header,
            tasks,
            order: None,
        })
    }

    /// Returns the index of a task, or the index where it would be inserted.
    fn find(&self, key: TaskKey) -> Result<usize, usize> {
        self.tasks
            .binary_search_by_key(&key, |known| known.task.key)
    }

    /// Returns the header of the accepted profiles together with this one.
    fn header_with(&self, profile: usize, of: &StoredProfile) -> Result<Header, MergeError> {
        of.validate().map_err(|error| match error {
            EncodeError::NoMemory => MergeError::NoMemory,
            error => MergeError::Inconsistent { profile, error },
        })?;
        let found = of.header;
        let Some(expected) = self.header else {
            return Ok(found);
        };
        if found.program.hash != expected.program.hash {
            return Err(MergeError::Program {
                profile,
                expected: expected.program.hash,
                found: found.program,
            });
        }
        if found.program.name != expected.program.name {
            return Err(MergeError::Name {
                profile,
                found: found.program.name,
            });
        }
        if found.architecture != expected.architecture {
            return Err(MergeError::Architecture {
                profile,
                expected: expected.architecture,
                found: found.architecture,
            });
        }
        if found.frequency_hz != expected.frequency_hz {
            return Err(MergeError::Frequency {
                profile,
                expected: expected.frequency_hz,
                found: found.frequency_hz,
            });
        }
        if found.cpus != expected.cpus {
            return Err(MergeError::Cpus {
                profile,
                expected: expected.cpus,
                found: found.cpus,
            });
        }
        let timing = (expected.timing.merged(found.timing)).ok_or(MergeError::Timing {
            profile,
            expected: expected.timing,
            found: found.timing,
        })?;
        if found.policy != expected.policy {
            return Err(MergeError::Policy {
                profile,
                expected: expected.policy,
                found: found.policy,
            });
        }
        Ok(Header {
            start: expected.start.merged(found.start),
            timing,
            runs: (expected.runs.checked_add(found.runs)).ok_or(MergeError::TooManyRuns)?,
            unrecorded: expected.unrecorded.saturating_add(found.unrecorded),
            ..expected
        })
    }

    /// Returns the number of each task of a profile. New tasks get the next numbers.
    fn numbers(&self, of: &StoredProfile) -> Result<Vec<u16>, MergeError> {
        let mut found = self.tasks.len();
        let mut numbers = room(of.tasks.len())?;
        numbers.extend(of.tasks.iter().map(|task| match self.find(task.key) {
            Ok(at) => self.tasks[at].number,
            Err(_) => {
                found += 1;
                (found - 1) as u16
            }
        }));
        if found > MAX_TASKS {
            return Err(MergeError::TooManyTasks { found });
        }
        Ok(numbers)
    }

    /// Returns the tasks that are new in this profile, and reserves room for all that it adds to
    /// the others.
    fn prepare(
        &mut self,
        number: usize,
        of: &StoredProfile,
        numbers: &[u16],
    ) -> Result<Vec<Merged>, MergeError> {
        let known = self.tasks.len();
        let is_new = |number: &&u16| usize::from(**number) >= known;
        let count = numbers.iter().filter(is_new).count();
        let mut new = room(count)?;
        for (rank, task) in (0..).zip(&of.tasks) {
            match self.find(task.key) {
                Ok(at) => self.tasks[at].prepare(number, task)?,
                Err(_) => {
                    let mut task = StoredTask {
                        phases: copy(&task.phases)?,
                        ..*task
                    };
                    renumber(&mut task, numbers);
                    new.push(Merged {
                        number: numbers[rank as usize],
                        rank,
                        place: place_by_key(of, of.tasks[rank as usize].place),
                        task,
                    });
                }
            }
        }
        self.tasks
            .try_reserve(count)
            .map_err(|_| MergeError::NoMemory)?;
        Ok(new)
    }
}

impl Merged {
    /// Checks that the same task of another profile can be added, and reserves room for it.
    fn prepare(&mut self, profile: usize, other: &StoredTask) -> Result<(), MergeError> {
        if let (Some(expected), Some(found)) = (self.task.label, other.label)
            && expected != found
        {
            return Err(MergeError::Label {
                profile,
                key: other.key,
                expected,
                found,
            });
        }
        let phases = &mut self.task.phases;
        if !phases.has_shape_of(&other.phases) {
            (phases.list.try_reserve_exact(other.phases.list.len()))
                .map_err(|_| MergeError::NoMemory)?;
        }
        Ok(())
    }

    /// Adds the same task of another profile, after `prepare`. `numbers` are those of that
    /// profile's tasks.
    fn add(&mut self, rank: u32, place: PlaceByKey, other: &StoredTask, numbers: &[u16]) {
        self.rank = self.rank.min(rank);
        if self.place != place {
            self.place = None;
        }
        let task = &mut self.task;
        task.label = task.label.or(other.label);
        // The sum of all runs fits, so the runs of one task do.
        task.runs += other.runs;
        task.priority = stricter(task.priority, other.priority);
        task.varies |= other.varies;
        task.deadline = stricter(task.deadline, other.deadline);
        let mut figures = task.figures.to_array();
        for (figure, other) in figures.iter_mut().zip(other.figures.to_array()) {
            *figure = figure.merged(other);
        }
        task.figures = Figures::from_array(figures);
        let after = other.spawned.after.renumbered(numbered(numbers));
        task.spawned = task.spawned.merged(Spawned {
            after,
            ..other.spawned
        });
        add(&mut task.phases, &other.phases, numbers);
    }
}

/// Returns a function from a task's index to its number.
fn numbered(numbers: &[u16]) -> impl Fn(u16) -> Option<u16> {
    |index| numbers.get(usize::from(index)).copied()
}

/// Replaces the indices of the tasks that woke this one, and that it woke, by these numbers.
fn renumber(task: &mut StoredTask, numbers: &[u16]) {
    task.spawned.after = task.spawned.after.renumbered(numbered(numbers));
    task.phases.renumber(numbered(numbers));
}

/// Returns an empty list with room for `len` entries.
fn room<T>(len: usize) -> Result<Vec<T>, MergeError> {
    with_room(len).ok_or(MergeError::NoMemory)
}

fn place_by_key(profile: &StoredProfile, place: Place) -> PlaceByKey {
    match place {
        Place::Root { ordinal } => Some((None, ordinal)),
        Place::Child { parent, ordinal } => {
            Some((Some(profile.tasks[parent as usize].key), ordinal))
        }
        Place::Several => None,
    }
}

/// Returns the smaller of the values that are set.
fn stricter<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn copy(phases: &Phases) -> Result<Phases, MergeError> {
    let mut list: Vec<StoredPhase> = room(phases.list.len())?;
    list.extend_from_slice(&phases.list);
    Ok(Phases {
        order: phases.order,
        list,
    })
}

/// Adds phases step by step if the steps are the same, and otherwise by ending
/// ([`Phases::coarsened`]). Room for them has been reserved.
fn add(sum: &mut Phases, other: &Phases, numbers: &[u16]) {
    let renumbered = |phase: &StoredPhase| phase.renumbered(numbered(numbers));
    if sum.has_shape_of(other) {
        for (phase, other) in sum.list.iter_mut().zip(&other.list) {
            phase.add(&renumbered(other));
        }
        return;
    }
    sum.list.extend(other.list.iter().map(renumbered));
    *sum = mem::take(sum).coarsened();
}
