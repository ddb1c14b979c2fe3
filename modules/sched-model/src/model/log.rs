//! A log of the switches and wakes of a run, from its start on, for timelines.
//!
//! A [`Trace`](super::Trace) has the last events, for a reader who wants to know how a run came to
//! fail. A log has the first switches and wakes, in 16 bytes each.

use super::TaskId;

/// The way in which a task left its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// It yielded, and stayed ready.
    Yielded,
    /// The CPU was taken away.
    Preempted,
    /// It waits for a wake-up.
    Blocked,
    /// It has ended.
    Exited,
    /// Its migration helper took over.
    Migrated,
}

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logged {
    /// The task was made and put into the queue of this CPU.
    Spawned(u8),
    /// The task, which was blocked, was put into the queue of this CPU.
    Woken(u8),
    /// The CPU switched to the task, and the task before left it in this way. A yield after which the same task is picked
    /// again is no switch.
    Switched(Left),
}

/// One switch or wake, in 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRecord {
    /// The time, in time units since boot.
    pub time: u64,
    task: u32,
    cpu: u8,
    /// The kind of switch or wake.
    pub what: Logged,
}

impl LogRecord {
    /// Returns the task that was spawned or woken, or that runs from now on.
    pub fn task(&self) -> TaskId {
        TaskId(self.task as usize)
    }

    /// Returns the CPU on which it happened.
    pub fn cpu(&self) -> usize {
        self.cpu.into()
    }
}

/// The first switches and wakes of a run, in the order in which they happened.
///
/// It begins at time 0, with [`main`](TaskId::MAIN) on CPU 0 and its own idle task on every other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Log {
    /// The records that fit, at most [`Config::log_records`](super::Config::log_records).
    pub records: Vec<LogRecord>,
    /// The number of records that did not fit.
    pub lost: u64,
    /// The idle task of each CPU.
    pub idle: Vec<TaskId>,
}

impl Log {
    pub(super) fn push(&mut self, most: usize, time: u64, cpu: usize, what: Logged, task: TaskId) {
        if self.records.len() >= most {
            self.lost += 1;
            return;
        }
        self.records.push(LogRecord {
            time,
            task: u32::try_from(task.0).expect("model: a task is many times as large"),
            cpu: cpu as u8,
            what,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_16_bytes() {
        assert_eq!(size_of::<LogRecord>(), 16);
    }
}
