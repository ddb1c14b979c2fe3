//! A real profile, damaged in ten thousand ways. Each time it is refused, or there is a plan and the program that
//! follows it finishes. No task is lost, nothing panics and nothing hangs.
//!
//! The profile is that of the app `batch`:
//! `make run A=apps/sched-tests/batch FEATURES=sched_pbg SCALE=10 PROFILE_OUT=batch-x86_64.pbg`

use std::sync::Arc;

use axsched_ext::BaseScheduler;
use axsched_ext::clock::VirtualClock;
use axsched_ext::pbg::stored::{Architecture, StoredProfile, decode, encode};
use axsched_ext::pbg::{About, ControlSource, LoadError, PbgScheduler, PbgTask, PerThread};

const RECORDED: &[u8] = include_bytes!("data/batch-x86_64.pbg");
const CORRUPTIONS: usize = 10_000;

/// Returns the profile as if it had been recorded on this machine.
fn real() -> StoredProfile {
    let mut profile = decode(RECORDED).unwrap();
    profile.header.architecture = Architecture::HERE;
    profile
}

fn about(profile: &StoredProfile) -> About {
    About {
        program: profile.header.program,
        frequency_hz: profile.header.frequency_hz,
        cpus: 1,
        timing: profile.header.timing,
    }
}

/// Marsaglia's xorshift, so that a failure can be reproduced.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Returns a profile with one to four kinds of damage. Half of them have the right checksum and length, as the decoder
/// does not look behind wrong ones.
fn damaged(good: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes[at] = [0, 0x7f, 0x80, 0xff][random.below(4)],
            3 => bytes.truncate(at.max(1)),
            4 => bytes.insert(at, random.next() as u8),
            5 => drop(bytes.remove(at)),
            _ => {
                let (a, b) = (at, random.below(bytes.len()));
                bytes.swap(a, b);
            }
        }
        if bytes.len() < 2 {
            break;
        }
    }
    if random.below(2) == 0 && bytes.len() > 20 {
        let end = bytes.len() - 4;
        let len = bytes.len() as u32;
        bytes[12..16].copy_from_slice(&len.to_le_bytes());
        let sum = crc32fast::hash(&bytes[..end]);
        bytes[end..].copy_from_slice(&sum.to_le_bytes());
    }
    bytes
}

/// Spawns forty tasks, plays them to their ends with yields, blocks and ticks, and returns the number that have
/// ended.
fn played(random: &mut Random) -> usize {
    type Scheduler = PbgScheduler<usize, VirtualClock, PerThread>;
    const TASKS: usize = 40;
    let mut scheduler = Scheduler::new();
    let task = |i| Arc::new(PbgTask::new(i));
    scheduler.add_task(task(TASKS)); // gc
    let control = PerThread::control();
    // Without a profile the call is refused.
    let _ = control.start_pbg();
    let tasks: Vec<_> = (0..TASKS).map(task).collect();
    tasks
        .iter()
        .for_each(|task| scheduler.add_task(task.clone()));
    let mut asleep = Vec::new();
    let mut ended = 0;
    let mut turns = 0;
    loop {
        turns += 1;
        assert!(turns < 100_000, "a task waits for ever");
        let Some(current) = scheduler.pick_next_task() else {
            match asleep.pop() {
                Some(task) => scheduler.put_prev_task(task, false),
                None => break,
            }
            continue;
        };
        VirtualClock::advance(random.next() % 20_000_000);
        match random.below(8) {
            0..=2 => ended += usize::from(*current.inner() < TASKS), // exits
            3 => asleep.push(current),
            4 => {
                let preempt = scheduler.task_tick(&current);
                scheduler.put_prev_task(current, preempt);
            }
            _ => scheduler.put_prev_task(current, false),
        }
    }
    assert!(tasks.iter().all(|task| Arc::strong_count(task) == 1));
    ended
}

#[test]
fn undamaged_profile_is_taken() {
    let profile = real();
    let control = PerThread::renew();
    let bytes = encode(&profile).unwrap();
    assert_eq!(control.load(&bytes, &about(&profile)), Ok(32));
    assert_eq!(played(&mut Random(1)), 40);
    assert_eq!(control.status().unwrap().planned, 32);
}

#[test]
fn ten_thousand_corruptions_end_in_a_refusal_or_a_plan() {
    let profile = real();
    let good = encode(&profile).unwrap();
    let about = about(&profile);
    let mut random = Random(0x5042_4721);
    let (mut refused, mut mismatched, mut planned) = (0, 0, 0);
    for i in 0..CORRUPTIONS {
        let bytes = damaged(&good, &mut random);
        let control = PerThread::renew();
        match control.load(&bytes, &about) {
            Ok(tasks) => {
                planned += 1;
                let plan = control.plan().unwrap().unwrap();
                assert_eq!(plan.tasks().len(), tasks, "corruption {i}");
                // A profile that is taken is sound and in its one form, checksum and all.
                let taken = decode(&bytes).unwrap();
                assert_eq!(encode(&taken), Ok(bytes), "corruption {i}");
            }
            Err(LoadError::Decode(_)) => refused += 1,
            Err(LoadError::Mismatch(_)) => mismatched += 1,
            Err(LoadError::Call(error)) => panic!("corruption {i}: {error}"),
        }
        assert_eq!(played(&mut random), 40, "corruption {i}");
    }
    println!("{refused} refused, {mismatched} of no use, {planned} planned");
    // Each way is taken often enough to mean something.
    assert!(refused > 1000 && mismatched > 5 && planned > 500);
}
