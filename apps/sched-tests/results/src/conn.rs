//! The line of the app `connections`.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::{Context, Kind, ResultLine, lines::is_false};

/// The service of all connections in one run, or of those of one priority.
///
/// Each request of the run is in one of four keys: `answered`, `late`, `lost` and `unanswered` add up
/// to `sent`. On one CPU `components_ns`, `client_ns`, `rest_ns` and `idle_ns` add up to `window_ns`.
/// `answered` and `late` requests have a latency, from the time at which the request was due to its
/// answer at the client. Percentiles are by nearest rank.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct ConnLine {
    /// The phase of the line: `paced`, `full`, or one of the experiment with priorities.
    #[serde(flatten)]
    pub context: Context,
    /// The unit of time: `icount`, an instruction, or `real`.
    pub timing: String,
    /// The divisor of the number of requests of a connection, at least 1.
    pub scale: u64,
    /// The combination of coroutines and threads: `kcuc`, `uc` or `ut`.
    pub combination: String,
    /// The connections of the run. In a line with a `priority`, those that have it.
    pub connections: usize,
    /// The priority of the connections of the line, 0 the most urgent. Absent in the line of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// The time between two requests of a connection. At 0 the next one comes with the answer.
    pub interval_ns: u64,
    /// The number of multiplications of a request, at least 1.
    pub rounds: u64,
    /// The time in which requests were due.
    pub window_ns: u64,
    /// There was no memory for all connections, and no request was sent. `started` counts those that
    /// had all that they need. Absent if not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub out_of_memory: bool,
    /// The connections whose components were all started.
    pub started: usize,
    /// The requests that were due.
    pub sent: u64,
    /// The requests that were answered within the window.
    pub answered: u64,
    /// The requests that were answered after it.
    pub late: u64,
    /// The requests that came when the socket's queue was full.
    pub lost: u64,
    /// The requests that had no answer when the run was given up.
    pub unanswered: u64,
    /// The mean latency, rounded down.
    pub mean_ns: u64,
    /// The median latency.
    pub median_ns: u64,
    /// The 99th percentile of the latencies.
    pub p99_ns: u64,
    /// The longest latency.
    pub worst_ns: u64,
    /// The memory of components and operations when all of them waited, over all connections.
    pub waiting_bytes: u64,
    /// The most memory that they had at a timer tick of the window, over all connections.
    pub peak_bytes: u64,
    /// The CPU time of components and operations, within the window. This key and the next four count
    /// all connections. All five are absent on several CPUs, and in a line with a `priority`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub components_ns: Option<u64>,
    /// The CPU time of the client and its device: interrupts, and the check of answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_ns: Option<u64>,
    /// The CPU time between two of these, in an executor or in `axtask`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest_ns: Option<u64>,
    /// The time in which the CPU had nothing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ns: Option<u64>,
    /// The number of times that a component or an operation was started or resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polls: Option<u64>,
}

impl ResultLine for ConnLine {
    const KIND: Kind = Kind::Conn;
}
