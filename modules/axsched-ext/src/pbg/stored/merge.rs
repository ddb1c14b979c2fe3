//! Several runs of a program to one profile.

use alloc::vec::Vec;
use core::fmt;

use super::{
    Architecture, EncodeError, Figures, Label, MAX_TASKS, Phases, Place, PolicyName, Program,
    ProgramName, StoredPhase, StoredProfile, StoredTask, Timing,
};
use crate::room::with_room;
use crate::units::TaskKey;

/// Why profiles do not merge. Profiles are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeError {
    /// No profile was given.
    Nothing,
    /// One of them breaks a rule by itself.
    Inconsistent {
        /// Which one does.
        profile: usize,
        /// The rule that it breaks.
        error: EncodeError,
    },
    /// They are of different programs.
    Program {
        /// Which differs from the first.
        profile: usize,
        /// The hash of the first one's program.
        expected: u64,
        /// The program of the one that differs.
        found: Program,
    },
    /// They are of the same program under different names.
    Name {
        /// Which differs from the first.
        profile: usize,
        /// The name in the one that differs; that in the first was expected.
        found: ProgramName,
    },
    /// They were measured on different architectures.
    Architecture {
        /// Which differs from the first.
        profile: usize,
        /// The architecture in the first.
        expected: Architecture,
        /// The architecture in the one that differs.
        found: Architecture,
    },
    /// Their counts have different lengths.
    Frequency {
        /// Which differs from the first.
        profile: usize,
        /// The frequency in the first, in Hz.
        expected: u64,
        /// The frequency in the one that differs, in Hz.
        found: u64,
    },
    /// They were measured on different numbers of CPUs.
    Cpus {
        /// Which differs from the first.
        profile: usize,
        /// The number of CPUs in the first.
        expected: u16,
        /// The number of CPUs in the one that differs.
        found: u16,
    },
    /// Some were measured in real time and others in counted time.
    Timing {
        /// Which differs from those before it.
        profile: usize,
        /// The timing of those before it.
        expected: Timing,
        /// The timing of the one that differs.
        found: Timing,
    },
    /// They were measured under different policies, so that waiting times and
    /// preemptions mean different things.
    Policy {
        /// Which differs from the first.
        profile: usize,
        /// The policy in the first.
        expected: PolicyName,
        /// The policy in the one that differs.
        found: PolicyName,
    },
    /// The same key stands for tasks of different labels.
    Label {
        /// Which has the second label.
        profile: usize,
        /// The key of both.
        key: TaskKey,
        /// The label in a profile before.
        expected: Label,
        /// The label in this one.
        found: Label,
    },
    /// Together they have more than [`MAX_TASKS`].
    TooManyTasks {
        /// How many tasks they have together.
        found: usize,
    },
    /// Together they have more runs than can be counted, 2^32 − 1.
    TooManyRuns,
    /// Out of memory.
    NoMemory,
}

impl MergeError {
    /// Which profile is to blame, if one is; counted from 0.
    pub const fn profile(&self) -> Option<usize> {
        match *self {
            Self::Inconsistent { profile, .. }
            | Self::Program { profile, .. }
            | Self::Name { profile, .. }
            | Self::Architecture { profile, .. }
            | Self::Frequency { profile, .. }
            | Self::Cpus { profile, .. }
            | Self::Timing { profile, .. }
            | Self::Policy { profile, .. }
            | Self::Label { profile, .. } => Some(profile),
            Self::Nothing | Self::TooManyTasks { .. } | Self::TooManyRuns | Self::NoMemory => None,
        }
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("expected at least 1 profile, found none"),
            Self::Inconsistent { profile, error } => write!(f, "profile {profile}: {error}"),
            Self::Program {
                profile,
                expected,
                found,
            } => write!(
                f,
                "profile {profile}: expected the program with hash {expected:016x}, found `{}`, {:016x}",
                found.name, found.hash
            ),
            Self::Name { profile, found } => write!(
                f,
                "profile {profile}: expected the name of profile 0, found `{found}` for the same program"
            ),
            Self::Architecture {
                profile,
                expected,
                found,
            } => write!(
                f,
                "profile {profile}: expected the architecture {expected}, found {found}"
            ),
            Self::Frequency {
                profile,
                expected,
                found,
            } => write!(
                f,
                "profile {profile}: expected counts of {expected} Hz, found {found} Hz"
            ),
            Self::Cpus {
                profile,
                expected,
                found,
            } => write!(
                f,
                "profile {profile}: expected {expected} CPU(s), found {found}"
            ),
            Self::Timing {
                profile,
                expected,
                found,
            } => write!(
                f,
                "profile {profile}: expected a run in {expected}, found one in {found}"
            ),
            Self::Policy {
                profile,
                expected,
                found,
            } => write!(
                f,
                "profile {profile}: expected a run under {expected}, found one under {found}"
            ),
            Self::Label {
                profile,
                key,
                expected,
                found,
            } => write!(
                f,
                "profile {profile}: expected the label `{expected}` for task {key}, found `{found}`"
            ),
            Self::TooManyTasks { found } => {
                write!(
                    f,
                    "expected at most {MAX_TASKS} tasks together, found {found}"
                )
            }
            Self::TooManyRuns => f.write_str("expected fewer than 2^32 runs together, found more"),
            Self::NoMemory => f.write_str("out of memory"),
        }
    }
}

impl core::error::Error for MergeError {}

/// An empty list with room for `len`.
fn room<T>(len: usize) -> Result<Vec<T>, MergeError> {
    with_room(len).ok_or(MergeError::NoMemory)
}

/// A task of one of the profiles.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    key: TaskKey,
    profile: u32,
    index: u32,
}

/// The same task in all profiles that have it: a range of `Seen`s.
struct Group {
    /// Its earliest place in any of them.
    rank: u32,
    key: TaskKey,
    start: usize,
    end: usize,
}

/// One profile of all the runs.
///
/// Tasks are matched by key; one that only some have is kept, with the number of
/// its own runs. The time of those that do not say theirs is the others'. Of what the user
/// has set, the stricter stands: the priority
/// before the others, the earlier deadline. A task that stood at different
/// places gets [`Place::Several`].
///
/// All of this depends neither on the order of the profiles nor on which are
/// merged first. The order of the tasks does not depend on the former: a task
/// stands where it is earliest in any of them. Cost: n log n for n tasks of all
/// profiles together, and 40 bytes each for the call.
///
/// # Errors
/// See [`MergeError`].
pub fn merge(profiles: &[StoredProfile]) -> Result<StoredProfile, MergeError> {
    let mut header = belong_together(profiles)?;
    header.runs = profiles
        .iter()
        .try_fold(0, |sum: u32, p| sum.checked_add(p.header.runs))
        .ok_or(MergeError::TooManyRuns)?;
    header.unrecorded = profiles
        .iter()
        .fold(0, |sum: u64, p| sum.saturating_add(p.header.unrecorded));

    let mut seen: Vec<Seen> = room(profiles.iter().map(|p| p.tasks.len()).sum())?;
    for (profile, of) in (0..).zip(profiles) {
        seen.extend((0..).zip(&of.tasks).map(|(index, task)| Seen {
            key: task.key,
            profile,
            index,
        }));
    }
    seen.sort_unstable();
    let groups = groups(&seen)?;
    let mut new_index: Vec<(TaskKey, u32)> = room(groups.len())?;
    new_index.extend((0..).zip(&groups).map(|(index, group)| (group.key, index)));
    new_index.sort_unstable();

    let mut tasks = room(groups.len())?;
    for group in &groups {
        tasks.push(task(profiles, &seen[group.start..group.end], &new_index)?);
    }
    Ok(StoredProfile { header, tasks })
}

/// The header that all have, or how they differ.
fn belong_together(profiles: &[StoredProfile]) -> Result<super::Header, MergeError> {
    let mut expected = profiles.first().ok_or(MergeError::Nothing)?.header;
    for (profile, of) in profiles.iter().enumerate() {
        of.validate().map_err(|error| match error {
            EncodeError::NoMemory => MergeError::NoMemory,
            error => MergeError::Inconsistent { profile, error },
        })?;
        let found = of.header;
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
        expected.timing = expected
            .timing
            .merged(found.timing)
            .ok_or(MergeError::Timing {
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
    }
    Ok(expected)
}

/// The tasks that there are, in their order.
///
/// PARENTS FIRST: a parent stands before its child in every profile that has the
/// child. So the parent's earliest place is before the child's, and its rank is.
fn groups(seen: &[Seen]) -> Result<Vec<Group>, MergeError> {
    let count = seen.chunk_by(|a, b| a.key == b.key).count();
    if count > MAX_TASKS {
        return Err(MergeError::TooManyTasks { found: count });
    }
    let mut groups = room(count)?;
    let mut start = 0;
    for of in seen.chunk_by(|a, b| a.key == b.key) {
        let end = start + of.len();
        groups.push(Group {
            rank: of.iter().map(|seen| seen.index).min().unwrap_or_default(),
            key: of[0].key,
            start,
            end,
        });
        start = end;
    }
    groups.sort_unstable_by_key(|group: &Group| (group.rank, group.key));
    Ok(groups)
}

/// A place that means the same in every profile: the parent's key (none is the
/// root) and the ordinal; none at all is several.
fn place_by_key(profile: &StoredProfile, place: Place) -> Option<(Option<TaskKey>, u32)> {
    match place {
        Place::Root { ordinal } => Some((None, ordinal)),
        Place::Child { parent, ordinal } => {
            Some((Some(profile.tasks[parent as usize].key), ordinal))
        }
        Place::Several => None,
    }
}

/// One task from what each profile has of it; `seen` is not empty.
fn task(
    profiles: &[StoredProfile],
    seen: &[Seen],
    new_index: &[(TaskKey, u32)],
) -> Result<StoredTask, MergeError> {
    let of = |seen: &Seen| &profiles[seen.profile as usize].tasks[seen.index as usize];
    let place = |seen: &Seen| place_by_key(&profiles[seen.profile as usize], of(seen).place);

    let first = of(&seen[0]);
    let everywhere = place(&seen[0]).filter(|_| seen.iter().all(|s| place(s) == place(&seen[0])));
    let mut merged = StoredTask {
        phases: copy(&first.phases)?,
        place: match everywhere {
            None => Place::Several,
            Some((None, ordinal)) => Place::Root { ordinal },
            Some((Some(parent), ordinal)) => {
                // Every profile that has a task has its parent.
                let at = new_index.partition_point(|(key, _)| *key < parent);
                Place::Child {
                    parent: new_index[at].1,
                    ordinal,
                }
            }
        },
        ..StoredTask {
            phases: Phases::default(),
            ..*first
        }
    };
    for seen in &seen[1..] {
        let other = of(seen);
        match (merged.label, other.label) {
            (Some(expected), Some(found)) if expected != found => {
                return Err(MergeError::Label {
                    profile: seen.profile as usize,
                    key: seen.key,
                    expected,
                    found,
                });
            }
            (label, found) => merged.label = label.or(found),
        }
        // The sum of all runs fits, so this does.
        merged.runs += other.runs;
        merged.priority = stricter(merged.priority, other.priority);
        merged.deadline = stricter(merged.deadline, other.deadline);
        let mut figures = merged.figures.to_array();
        for (figure, other) in figures.iter_mut().zip(other.figures.to_array()) {
            *figure = figure.merged(other);
        }
        merged.figures = Figures::from_array(figures);
        merged.phases = add(merged.phases, &other.phases)?;
    }
    Ok(merged)
}

/// The smaller of those that are set.
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

/// Step by step where the steps are the same, by ending otherwise; see
/// [`Phases::coarsened`].
fn add(mut sum: Phases, other: &Phases) -> Result<Phases, MergeError> {
    if sum.has_shape_of(other) {
        for (phase, other) in sum.list.iter_mut().zip(&other.list) {
            phase.add(other);
        }
        return Ok(sum);
    }
    sum.list
        .try_reserve_exact(other.list.len())
        .map_err(|_| MergeError::NoMemory)?;
    sum.list.extend_from_slice(&other.list);
    Ok(sum.coarsened())
}
