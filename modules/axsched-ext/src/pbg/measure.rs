//! Recording: what each task of the program did, in a table of fixed size.
//!
//! The table is shared between the scheduler, which writes it under the run
//! queue's lock, and `measure_end`, which reads it from a task. The fields are
//! relaxed atomics (LOCK in [`task`](crate::task)), single writer, updated by
//! load and store. If the reader is preempted, each field it reads is exact, but
//! not all are of one moment: a measurement is meant to end after its tasks.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::Member;
use super::profile::TaskProfile;
use crate::event::Return;
use crate::syscall::Error;
use crate::units::{Counts, TaskKey};

/// The most tasks that are recorded and planned. A record takes 56 bytes.
pub const MAX_TASKS: usize = 4096;

#[derive(Default)]
struct Record {
    key: AtomicU64,
    run: AtomicU64,
    dispatches: AtomicU64,
    yields: AtomicU64,
    preemptions: AtomicU64,
    blocks: AtomicU64,
    children: AtomicU32,
}

/// The table of records.
pub struct Recorder {
    records: Box<[Record]>,
    len: AtomicUsize,
    /// Children of recorded tasks that found the table full.
    unrecorded: AtomicUsize,
    root_children: AtomicU32,
}

#[inline]
fn add(field: &AtomicU64, by: u64) {
    field.store(field.load(Relaxed).wrapping_add(by), Relaxed);
}

impl Recorder {
    /// An empty table, for good: the scheduler may look at it at any time.
    pub fn leak() -> Result<&'static Self, Error> {
        let mut records = Vec::new();
        records
            .try_reserve_exact(MAX_TASKS)
            .map_err(|_| Error::NoMemory)?;
        records.resize_with(MAX_TASKS, Record::default);
        // A vector of one, because `Box::new` aborts where memory is short.
        let mut one = Vec::new();
        one.try_reserve_exact(1).map_err(|_| Error::NoMemory)?;
        one.push(Self {
            records: records.into_boxed_slice(),
            len: AtomicUsize::new(0),
            unrecorded: AtomicUsize::new(0),
            root_children: AtomicU32::new(0),
        });
        Ok(&one.leak()[0])
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.len.store(0, Relaxed);
        self.unrecorded.store(0, Relaxed);
        self.root_children.store(0, Relaxed);
    }

    /// A task was spawned by `parent`; says which member it is.
    pub fn spawned(&self, parent: Member) -> Member {
        let (key, children) = match parent.index() {
            Some(index) => {
                let record = &self.records[index];
                (
                    TaskKey::from_bits(record.key.load(Relaxed)),
                    &record.children,
                )
            }
            None if parent == Member::ROOT => (TaskKey::ROOT, &self.root_children),
            None => return Member::OUTSIDE,
        };
        let ordinal = children.load(Relaxed);
        children.store(ordinal.wrapping_add(1), Relaxed);

        let index = self.len.load(Relaxed);
        let Some(record) = self.records.get(index) else {
            self.unrecorded
                .store(self.unrecorded.load(Relaxed) + 1, Relaxed);
            return Member::OUTSIDE; // rule 4
        };
        record.key.store(key.child(ordinal).to_bits(), Relaxed);
        for field in [
            &record.run,
            &record.dispatches,
            &record.yields,
            &record.preemptions,
            &record.blocks,
        ] {
            field.store(0, Relaxed);
        }
        record.children.store(0, Relaxed);
        self.len.store(index + 1, Relaxed);
        Member(index as u32)
    }

    #[inline]
    fn record(&self, member: Member) -> Option<&Record> {
        member.index().map(|index| &self.records[index])
    }

    /// A burst of `member` ended (rule 3).
    #[inline]
    pub fn ran(&self, member: Member, burst: Counts) {
        if let Some(record) = self.record(member) {
            add(&record.run, burst.0);
        }
    }

    /// The CPU went over to `member`.
    #[inline]
    pub fn dispatched(&self, member: Member) {
        if let Some(record) = self.record(member) {
            add(&record.dispatches, 1);
        }
    }

    /// `member` is ready again.
    #[inline]
    pub fn returned(&self, member: Member, why: Return) {
        if let Some(record) = self.record(member) {
            match why {
                Return::Yielded => add(&record.yields, 1),
                Return::Preempted => add(&record.preemptions, 1),
                Return::Woken => {}
            }
        }
    }

    /// `member` blocked or exited. An exit counts as a block: the scheduler
    /// cannot tell them apart at this moment.
    #[inline]
    pub fn left(&self, member: Member) {
        if let Some(record) = self.record(member) {
            add(&record.blocks, 1);
        }
    }

    /// Children of recorded tasks that found the table full.
    pub fn unrecorded(&self) -> usize {
        self.unrecorded.load(Relaxed)
    }

    /// The records, in the order in which the tasks were spawned.
    pub fn read(&self) -> Result<Vec<TaskProfile>, Error> {
        let len = self.len.load(Relaxed);
        let mut tasks = Vec::new();
        tasks.try_reserve_exact(len).map_err(|_| Error::NoMemory)?;
        tasks.extend(self.records[..len].iter().map(|record| TaskProfile {
            key: TaskKey::from_bits(record.key.load(Relaxed)),
            run: Counts(record.run.load(Relaxed)),
            dispatches: record.dispatches.load(Relaxed),
            yields: record.yields.load(Relaxed),
            preemptions: record.preemptions.load(Relaxed),
            departures: record.blocks.load(Relaxed),
        }));
        Ok(tasks)
    }
}
