//! The rules of [`wheel`](crate::time::wheel).

use std::collections::BTreeMap;
use std::pin::Pin;

use crate::time::wheel::{LEVELS, Node, Step, Wheel};

/// Numbers that are the same in each run (xorshift64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Returns a number of up to this many bits, each size as often as another.
    fn up_to_bits(&mut self, bits: u64) -> u64 {
        let bits = self.below(bits + 1);
        self.next() & ((1 << bits) - 1)
    }
}

fn nodes(n: usize) -> Pin<Box<[Node]>> {
    Box::into_pin((0..n).map(|_| Node::new()).collect())
}

/// Makes all steps, and returns their number and that of the due timers.
fn steps(wheel: &mut Wheel, now: u64) -> (usize, usize) {
    let (mut all, mut due) = (0, 0);
    loop {
        match wheel.step(now) {
            Step::Due(_) => due += 1,
            Step::Moved => {}
            Step::Nothing => return (all, due),
        }
        all += 1;
    }
}

/// Compares the wheel with a map over 100,000 random inserts, removals and waits. Times are near and far, some beyond
/// the last slot of the top level.
#[test]
fn rules_1_to_3_wheel_matches_a_map() {
    for seed in 1..=4_u64 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let all = nodes(500);
        let mut wheel = Wheel::new();
        let mut model: BTreeMap<(u64, usize), ()> = BTreeMap::new();
        let mut times: Vec<Option<u64>> = vec![None; all.len()];
        let mut now = random.up_to_bits(43);
        for turn in 0..25_000 {
            let n = random.below(all.len() as u64) as usize;
            match (random.below(8), times[n]) {
                (0..5, None) => {
                    let at = now.saturating_sub(2) + random.up_to_bits(41);
                    // SAFETY: the nodes outlive the wheel.
                    let is_in = unsafe { wheel.insert(&all[n], at, now) };
                    assert_eq!(is_in, at > now.max(wheel.hand()));
                    if is_in {
                        times[n] = Some(at);
                        model.insert((at, n), ());
                    }
                }
                (0..5, Some(at)) => {
                    wheel.remove(&all[n]);
                    times[n] = None;
                    model.remove(&(at, n));
                }
                (kind, _) => {
                    // Sometimes to the exact time of a timer, or just before.
                    let to = match (kind, model.keys().next()) {
                        (5, Some(&(at, _))) => at,
                        (6, Some(&(at, _))) => at - 1,
                        _ => now + random.up_to_bits(if turn % 50 == 0 { 40 } else { 14 }),
                    };
                    now = now.max(to);
                    // One step at a time, as under a lock.
                    loop {
                        match wheel.step(now) {
                            Step::Nothing => break,
                            _ => wheel.assert_valid_now_and_then(&mut random),
                        }
                    }
                    while let Some((&(at, n), ())) = model.first_key_value() {
                        if at > now {
                            break;
                        }
                        model.pop_first();
                        assert!(all[n].is_due(), "late: {at}, it is {now}");
                        times[n] = None;
                    }
                    for &(at, n) in model.keys() {
                        assert!(all[n].is_in(), "early: {at}, it is {now}");
                    }
                }
            }
            assert_eq!(wheel.waiting(), model.len());
            match (wheel.next(), model.keys().next()) {
                (Some(next), Some(&(at, _))) => assert!(next <= at && next > wheel.hand()),
                (None, None) => {}
                (next, model) => panic!("{next:?} {model:?}"),
            }
            if turn % 16 == 0 {
                wheel.assert_valid();
            }
        }
    }
}

impl Wheel {
    fn assert_valid_now_and_then(&self, random: &mut Random) {
        if random.below(256) == 0 {
            self.assert_valid();
        }
    }
}

#[test]
fn rule_4_each_of_100_000_timers_takes_at_most_a_step_a_level() {
    const N: usize = 100_000;
    let all = nodes(N);
    let mut wheel = Wheel::new();
    let mut random = Random(11);
    for node in &all[..] {
        let at = 1 + random.up_to_bits(36);
        // SAFETY: the nodes outlive the wheel.
        assert!(unsafe { wheel.insert(node, at, 0) });
    }
    let mut calls = 0;
    let mut now = 0;
    let mut due = 0;
    while let Some(next) = wheel.next() {
        assert!(next > now);
        now = next;
        let (steps, of_them_due) = steps(&mut wheel, now);
        assert!(steps > 0, "the wheel wants to be looked at for nothing");
        calls += steps;
        due += of_them_due;
    }
    assert_eq!(due, N);
    assert!(calls <= N * LEVELS, "{calls}");
}

#[test]
fn rule_2_time_beyond_the_top_level_is_reached_in_several_rounds() {
    let all = nodes(1);
    let mut wheel = Wheel::new();
    let at = (u64::MAX >> 20) + 1;
    // SAFETY: the nodes outlive the wheel.
    assert!(unsafe { wheel.insert(&all[0], at, 5) });
    let mut turns = 0;
    while let Some(next) = wheel.next() {
        let (_, due) = steps(&mut wheel, next);
        assert_eq!(due != 0, next >= at);
        turns += 1;
    }
    assert!(all[0].is_due());
    // 2^44 granules, 63 slots of 2^30 at a time, and the digits below.
    assert!(turns <= (1 << 14) / 63 + 1 + LEVELS, "{turns}");
}

#[test]
fn rule_3_timer_removed_while_its_slot_is_open_is_gone() {
    let all = nodes(3);
    let mut wheel = Wheel::new();
    for node in &all[..] {
        // SAFETY: the nodes outlive the wheel.
        assert!(unsafe { wheel.insert(node, 100, 0) });
    }
    assert!(matches!(wheel.step(64), Step::Moved));
    wheel.remove(&all[1]);
    wheel.assert_valid();
    assert_eq!(wheel.next(), Some(64), "one is still to be moved");
    wheel.remove(&all[2]);
    wheel.assert_valid();
    assert_eq!(wheel.next(), Some(100));
    assert!(matches!(wheel.step(99), Step::Nothing));
    assert!(matches!(wheel.step(100), Step::Due(None)));
    assert!(all[0].is_due());
    assert_eq!(wheel.next(), None);
}
