//! A profile as data: a header, and the tasks.

use alloc::vec::Vec;

use super::header::Header;
use super::task::StoredTask;

/// The newest version: see [`StoredProfile::version`].
pub const VERSION: u16 = 2;
/// The oldest version that [`decode`](super::decode()) reads. It does not say how tasks came to be
/// there, nor for whom they waited.
pub const OLDEST_VERSION: u16 = 1;
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

impl StoredProfile {
    /// The version of its bytes: the oldest that can say all that it says.
    pub const fn version(&self) -> u16 {
        match self.header.start {
            Some(_) => VERSION,
            None => OLDEST_VERSION,
        }
    }
}
