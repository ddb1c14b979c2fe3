//! Recording: what each task of the program did, in a table of fixed size.
//!
//! The table is written by the scheduler under the run queue's lock, and read by
//! `measure_end` from a task. The fields are relaxed atomics (LOCK in
//! [`task`](crate::task)), single writer, updated by load and store. If the reader
//! is preempted, each field it reads is exact, but not all are of one moment: a
//! measurement is meant to end after its tasks.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::error::{Error, reserved};
use super::record::{OUTSIDE, Record};
use super::stored::{Label, MAX_TASKS, Place, StoredTask};
use crate::units::{Counts, TaskKey};

/// The table of records.
pub struct Recorder {
    records: Box<[Record]>,
    root: Record,
    len: AtomicUsize,
    /// Children of recorded tasks that found the table full.
    unrecorded: AtomicUsize,
}

impl Recorder {
    /// An empty table, for good: the scheduler may look at it at any time.
    pub fn leak() -> Result<&'static Self, Error> {
        let mut records = reserved(MAX_TASKS)?;
        records.resize_with(MAX_TASKS, Record::new);
        // A vector of one, because `Box::new` aborts where memory is short.
        let mut one = reserved(1)?;
        one.push(Self {
            records: records.into_boxed_slice(),
            root: Record::new(),
            len: AtomicUsize::new(0),
            unrecorded: AtomicUsize::new(0),
        });
        Ok(&one.leak()[0])
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.len.store(0, Relaxed);
        self.unrecorded.store(0, Relaxed);
        self.root.start_as_root();
    }

    /// The root's record: what it does is written there, and not read.
    pub const fn root(&'static self) -> &'static Record {
        &self.root
    }

    /// A task was spawned by the one with the record `parent`; its record.
    pub fn spawned(
        &'static self,
        parent: &'static Record,
        label: Option<&Label>,
        now: Counts,
    ) -> &'static Record {
        if ptr::eq(parent, &OUTSIDE) {
            return &OUTSIDE;
        }
        let ordinal = parent.next_ordinal();
        let index = self.len.load(Relaxed);
        let Some(record) = self.records.get(index) else {
            self.unrecorded
                .store(self.unrecorded.load(Relaxed) + 1, Relaxed);
            return &OUTSIDE; // rule 4
        };
        let key = match label {
            Some(label) => TaskKey::labelled(label.as_str()),
            None => parent.key().child(ordinal as u32),
        };
        record.start(key, parent, ordinal, index as u64, label, now);
        self.len.store(index + 1, Relaxed);
        record
    }

    /// Children of recorded tasks that found the table full.
    pub fn unrecorded(&self) -> u64 {
        self.unrecorded.load(Relaxed) as u64
    }

    /// The records at `now`, in the order in which the tasks were spawned; `running`
    /// is that of the task that has the CPU. Second, how many were left out.
    ///
    /// Tasks that share a key are, since none of them could be told from the others:
    /// those with the same label, or (see [`TaskKey`] on how unlikely that is) whose
    /// keys collide. And so are their children, but for those with a label of their
    /// own: a replay has nothing to know them by. Cost: n log n.
    pub fn read(&self, now: Counts, running: &Record) -> Result<(Vec<StoredTask>, u64), Error> {
        let records = &self.records[..self.len.load(Relaxed)];
        let mut keys: Vec<TaskKey> = reserved(records.len())?;
        keys.extend(records.iter().map(|record| record.key()));
        keys.sort_unstable();
        let is_shared = |key: TaskKey| {
            let first = keys.partition_point(|&k| k < key);
            keys.get(first + 1) == Some(&key)
        };
        let mut tasks: Vec<StoredTask> = reserved(records.len())?;
        // Where the tasks went, for their children.
        let mut places: Vec<Option<u32>> = reserved(records.len())?;
        for record in records {
            let mut task = record.read(now, ptr::eq(record, running))?;
            let mut is_known = !is_shared(record.key());
            if let Place::Child { parent, ordinal } = task.place {
                let parent = places[parent as usize];
                is_known &= parent.is_some() || task.label.is_some();
                // A child without its parent is found by its label alone.
                task.place =
                    parent.map_or(Place::Several, |parent| Place::Child { parent, ordinal });
            }
            if !is_known {
                places.push(None);
                continue;
            }
            places.push(Some(tasks.len() as u32));
            tasks.push(task);
        }
        let left_out = (records.len() - tasks.len()) as u64;
        Ok((tasks, left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{RECORDED_PHASES, split};
    use super::super::stored::{Ended, Figure, PhaseOrder, StoredPhase};
    use super::*;

    /// Plays `(kind, counts)`: `r` runs and yields, `p` runs and is preempted, `b`
    /// runs and blocks for 100, `.` runs for its exit; a wait of 10 before each.
    fn played(steps: &[(char, u64)]) -> StoredTask {
        played_on(Recorder::leak().unwrap(), steps)
    }

    fn played_on(recorder: &'static Recorder, steps: &[(char, u64)]) -> StoredTask {
        recorder.clear();
        let mut now = 1000;
        let record = recorder.spawned(recorder.root(), None, Counts(now));
        for &(kind, run) in steps {
            now += 10;
            record.begins(Counts(now));
            now += run;
            if kind == 'p' {
                record.preempted();
            }
            record.ends(Counts(now));
            if kind == 'b' {
                now += 100;
                record.woken(Counts(now));
            }
        }
        let (mut tasks, left_out) = recorder.read(Counts(now), &OUTSIDE).unwrap();
        assert_eq!((tasks.len(), left_out), (1, 0));
        tasks.remove(0)
    }

    fn phases(task: &StoredTask) -> Vec<(Ended, u64, u64, u64)> {
        let tuple = |p: &StoredPhase| (p.ended, p.intervals, p.run.0, p.blocked.0);
        task.phases.list.iter().map(tuple).collect()
    }

    /// The last burst adds two at most, and a list that grows cannot be refused.
    #[test]
    fn room_for_all_phases_is_asked_for_at_once() {
        let record = Recorder::leak().unwrap();
        let record = record.spawned(record.root(), None, Counts(0));
        record.begins(Counts(0));
        let list = record.read_phases(1).unwrap().list;
        assert_eq!(list.len(), 1);
        assert!(list.capacity() >= RECORDED_PHASES + 2);
    }

    #[test]
    fn rule_3_run_ready_and_blocked_are_kept_apart() {
        let task = played(&[('r', 5), ('p', 7), ('r', 1), ('b', 20), ('r', 4), ('.', 3)]);
        let once = |figure: Figure| (figure.total, figure.least, figure.most);
        let each = task.figures.to_array().map(once);
        // run, ready, blocked, dispatches, yields, preemptions, blocks
        let expected = [40, 60, 100, 6, 3, 1, 1].map(|value| (value, value, value));
        assert_eq!(each, expected);
    }

    #[test]
    fn rule_3_phases_tell_yields_blocks_and_the_exit() {
        let task = played(&[('r', 6), ('r', 6), ('b', 6), ('p', 2), ('.', 3)]);
        let expected = [
            (Ended::Yield, 2, 12, 0),
            (Ended::Block, 1, 6, 100),
            (Ended::Exit, 1, 5, 0),
        ];
        assert_eq!(phases(&task), expected);
    }

    #[test]
    fn rule_3_like_phases_are_one_and_a_change_begins_another() {
        let mut steps = [('b', 50); 100].to_vec();
        steps.extend([('b', 500); 10]);
        steps.push(('.', 1));
        let expected = [
            (Ended::Block, 100, 5000, 10_000),
            (Ended::Block, 10, 5000, 1000),
            (Ended::Exit, 1, 1, 0),
        ];
        assert_eq!(phases(&played(&steps)), expected);
    }

    #[test]
    fn rule_3_shorter_is_a_change_too() {
        let mut steps = [('b', 500); 10].to_vec();
        steps.extend([('b', 50); 100]);
        steps.push(('.', 1));
        let expected = [
            (Ended::Block, 10, 5000, 1000),
            (Ended::Block, 100, 5000, 10_000),
            (Ended::Exit, 1, 1, 0),
        ];
        assert_eq!(phases(&played(&steps)), expected);
    }

    #[test]
    fn rule_3_only_who_has_run_has_blocked_and_then_time_ready_goes_on() {
        let recorder = Recorder::leak().unwrap();
        recorder.clear();
        let record = recorder.spawned(recorder.root(), None, Counts(1000));
        record.woken(Counts(1005)); // it only changes queues
        record.begins(Counts(1010));
        record.ends(Counts(1015));
        record.woken(Counts(1115));
        record.woken(Counts(1130)); // and again
        let (tasks, _) = recorder.read(Counts(1140), &OUTSIDE).unwrap();
        let figures = tasks[0].figures.to_array().map(|figure| figure.total);
        assert_eq!(figures, [5, 10, 100, 1, 0, 0, 1]);
        assert_eq!(phases(&tasks[0]), [(Ended::Block, 1, 5, 100)]);
    }

    #[test]
    fn rule_3_the_time_of_a_burst_is_shared_without_overflow() {
        let [yields, last] = split(Ended::Block, 1 << 62, 1024, 0, Counts::ZERO);
        assert_eq!((yields.run.0, last.run.0), (1023 << 52, 1 << 52));
    }

    #[test]
    fn rule_3_a_record_that_is_used_again_says_nothing_of_the_task_before() {
        let recorder = Recorder::leak().unwrap();
        let before: Vec<_> = (0..100)
            .flat_map(|i| [('r', 1 << (i % 9)), ('p', 3), ('b', 1)])
            .collect();
        played_on(recorder, &before);
        let again = &recorder.records[0];
        recorder.spawned(again, None, Counts(1));
        let steps = [('r', 6), ('p', 2), ('b', 6), ('.', 3)];
        assert_eq!(played_on(recorder, &steps), played(&steps));
        let child = recorder.spawned(again, None, Counts(1));
        let key = TaskKey::ROOT.child(0).child(0);
        assert_eq!(child.key(), key);
    }

    #[test]
    fn rule_4_a_table_that_was_full_is_empty_again() {
        let recorder = Recorder::leak().unwrap();
        for _ in 0..2 {
            recorder.clear();
            assert_eq!(recorder.unrecorded(), 0);
            for _ in 0..MAX_TASKS + 2 {
                recorder.spawned(recorder.root(), None, Counts(1));
            }
            assert_eq!(recorder.unrecorded(), 2);
        }
    }

    #[test]
    fn rule_4_a_record_that_is_full_coarsens() {
        let steps: Vec<_> = (0..100)
            .flat_map(|i| [('r', 1 << (i % 9)), ('b', 1)])
            .chain([('.', 7)])
            .collect();
        let task = played(&steps);
        assert_eq!(task.phases.order, PhaseOrder::ByEnding);
        let endings: Vec<_> = phases(&task).iter().map(|p| (p.0, p.1)).collect();
        let expected = [(Ended::Yield, 100), (Ended::Block, 100), (Ended::Exit, 1)];
        assert_eq!(endings, expected);
        let sum: u64 = phases(&task).iter().map(|p| p.2).sum();
        assert_eq!(sum, task.figures.run.total, "no time is lost");
    }

    #[test]
    fn a_run_interval_that_is_still_open_counts_until_now() {
        let recorder = Recorder::leak().unwrap();
        recorder.clear();
        let record = recorder.spawned(recorder.root(), None, Counts(1000));
        record.begins(Counts(1010));
        let (tasks, _) = recorder.read(Counts(1017), record).unwrap();
        let figures = tasks[0].figures;
        assert_eq!((figures.run.total, figures.ready.total), (7, 10));
    }

    #[test]
    fn tasks_that_share_a_key_are_left_out_with_whom_they_spawned() {
        let recorder = Recorder::leak().unwrap();
        recorder.clear();
        let label = Label::new("twin").unwrap();
        let spawn = |parent, label| recorder.spawned(parent, label, Counts(1));
        let root = recorder.root();
        let by_itself = Label::new("by itself").unwrap();
        let first = spawn(root, Some(&label));
        let child = spawn(first, None);
        spawn(child, None);
        spawn(child, Some(&by_itself));
        let other = spawn(root, None);
        spawn(root, Some(&label));
        spawn(other, None);
        let (tasks, left_out) = recorder.read(Counts(2), &OUTSIDE).unwrap();
        let keys: Vec<_> = tasks.iter().map(|task| task.key).collect();
        let other = TaskKey::ROOT.child(1);
        let expected = [TaskKey::labelled("by itself"), other, other.child(0)];
        assert_eq!(keys, expected);
        assert_eq!(tasks[0].place, Place::Several);
        let (parent, ordinal) = (1, 0);
        assert_eq!(tasks[2].place, Place::Child { parent, ordinal });
        assert_eq!(left_out, 4);
    }
}
