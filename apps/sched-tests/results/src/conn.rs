//! The line of the app `connections`.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::{Context, Kind, ResultLine, lines::is_false};

/// How connections were served in one run, or those of one priority in it.
///
/// Each request of the run is in one of four keys: `answered`, `late`, `lost` and `unanswered` add up
/// to `sent`. On one CPU `components_ns`, `client_ns`, `rest_ns` and `idle_ns` add up to `window_ns`.
/// Latencies are of `answered` and `late`, each from the time at which the request was due to its
/// answer at the client. Nearest rank.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct ConnLine {
    /// The phase that the line is of: `paced`, `full` or one of the experiment with priorities.
    #[serde(flatten)]
    pub context: Context,
    /// What the clock counts: `icount`, instructions, or `real`.
    pub timing: String,
    /// What the requests of a connection were divided by, at least 1.
    pub scale: u64,
    /// Which side is made of what: `kcuc`, `kcut`, `ktut`, `ktuc`, `uc`, `ut`.
    pub combination: String,
    /// The connections of the run; of a line with a `priority` those that have it.
    pub connections: usize,
    /// Which connections the line is of, 0 the most urgent; absent if of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// The time between two requests of a connection; 0: the next one comes with the answer.
    pub interval_ns: u64,
    /// How often each request is multiplied, at least 1.
    pub rounds: u64,
    /// The time in which requests were due.
    pub window_ns: u64,
    /// There was no memory for all connections, and no request was sent: `started` tells how many
    /// had all that they need. Absent if not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub out_of_memory: bool,
    /// The connections whose components were all started.
    pub started: usize,
    /// The requests that were due.
    pub sent: u64,
    /// Those that were answered within the window.
    pub answered: u64,
    /// Those that were answered after it.
    pub late: u64,
    /// Those that came when the socket's queue was full.
    pub lost: u64,
    /// Those that had no answer when the run was given up.
    pub unanswered: u64,
    /// The mean latency, rounded down.
    pub mean_ns: u64,
    /// Half of the latencies were at most that.
    pub median_ns: u64,
    /// 99 % of them were.
    pub p99_ns: u64,
    /// All of them were.
    pub worst_ns: u64,
    /// What the allocator gave to components and operations, once all of them waited; of the whole run.
    pub waiting_bytes: u64,
    /// The most that it gave, looked at with each timer tick of the window; of the whole run.
    pub peak_bytes: u64,
    /// The CPU time of components and operations, within the window; of the whole run, as the next
    /// five keys. All six are absent on several CPUs, and of a line with a `priority`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub components_ns: Option<u64>,
    /// That of the client and its device: interrupts, and the check of answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_ns: Option<u64>,
    /// The rest: getting from one to the next, be it an executor, `axtask` or a loop that tries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest_ns: Option<u64>,
    /// The time in which the CPU had nothing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ns: Option<u64>,
    /// How often a component or an operation was begun or gone on with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polls: Option<u64>,
    /// How often a thread yielded because it had found nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub yields: Option<u64>,
}

impl ResultLine for ConnLine {
    const KIND: Kind = Kind::Conn;
}
