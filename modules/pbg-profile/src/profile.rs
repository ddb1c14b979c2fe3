//! A profile as data: a header and the tasks.

use alloc::vec::Vec;

use super::header::Header;
use super::task::StoredTask;

/// The version of the format that [`encode`](super::encode()) writes and
/// [`decode`](super::decode()) reads.
pub const VERSION: u16 = 2;
/// The most tasks in a profile. It also bounds the recorded and the planned tasks.
pub const MAX_TASKS: usize = 4096;
/// The most phases of a task. A recorder that finds more makes them coarser
/// ([`Phases::coarsened`](super::Phases::coarsened)).
pub const MAX_PHASES: usize = 16;

/// A profile of one run or of several.
///
/// The fields are public. The conditions between them are the [`Rule`](super::Rule)s, which
/// [`validate`](Self::validate) checks. [`encode`](super::encode()) and
/// [`merge`](super::merge()) refuse a profile that breaks a rule, and
/// [`decode`](super::decode()) never returns one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredProfile {
    /// The description of the profile as a whole.
    pub header: Header,
    /// At most [`MAX_TASKS`] tasks in the order in which they were spawned, so parents stand
    /// before their children.
    pub tasks: Vec<StoredTask>,
    /// The order in which a plan takes the tasks, if one was searched for this profile.
    pub order: Option<StoredOrder>,
}

/// The tasks of a profile in groups, one strictly after the other.
///
/// A recorder stores none. A merge drops it, because the order was found for other runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOrder {
    /// The number of CPUs that the order was found for, at least 1.
    pub cpus: u16,
    /// The group of each task, in the order of the tasks. The groups are numbered from 0 without
    /// gaps, and the tasks of group 0 go first.
    pub groups: Vec<u16>,
}
