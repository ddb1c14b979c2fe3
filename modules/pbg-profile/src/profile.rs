//! A profile as data: a header, and the tasks.

use alloc::vec::Vec;

use super::header::Header;
use super::task::StoredTask;

/// The version of the format that [`encode`](super::encode()) writes and [`decode`](super::decode())
/// reads.
pub const VERSION: u16 = 2;
/// The most tasks in a profile: as many as are recorded and planned.
pub const MAX_TASKS: usize = 4096;
/// The most phases of a task. A recorder that finds more makes them coarser
/// ([`Phases::coarsened`](super::Phases::coarsened)).
pub const MAX_PHASES: usize = 16;

/// A profile, of one run or several.
///
/// The fields are open; what must hold between them are [`Rule`](super::Rule)s, and
/// [`validate`](Self::validate) tells. [`encode`](super::encode()) and
/// [`merge`](super::merge()) refuse what breaks one, [`decode`](super::decode()) never
/// returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredProfile {
    /// What holds for all of it.
    pub header: Header,
    /// At most [`MAX_TASKS`], in the order in which they were spawned: parents
    /// before their children.
    pub tasks: Vec<StoredTask>,
}
