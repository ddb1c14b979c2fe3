//! The rules of [`table`](crate::table).

use alloc::vec::Vec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;

use proptest::prelude::*;

use super::machine::Machine;
use crate::block::Header;
use crate::table::{NoSlot, Table};

/// A block, of which nothing but the address counts.
fn block(n: usize) -> *const Header {
    core::ptr::without_provenance(64 * (n + 1))
}

fn take(table: &mut Table, machine: &Machine, n: usize) -> (u32, u32) {
    let index = table.take(machine).unwrap();
    let slot = table.slot(index).unwrap();
    assert!(slot.block.is_null(), "it is somebody else's");
    slot.block = block(n);
    (index, slot.generation)
}

#[test]
fn rule_2_a_slot_whose_generations_are_used_up_is_not_used_again() {
    let (mut table, machine) = (Table::new(), Machine::default());
    let (index, _) = take(&mut table, &machine, 0);
    table.slot(index).unwrap().generation = u32::MAX;
    table.ends(&machine, index);
    let others: BTreeSet<_> = (0..600).map(|n| take(&mut table, &machine, n).0).collect();
    assert!(!others.contains(&index));
    for index in others {
        table.ends(&machine, index);
    }
    table.clear(&machine);
    assert_eq!(machine.memory.load(Relaxed), 0);
}

#[test]
fn rule_3_chunks_are_given_back_but_for_one() {
    let (mut table, machine) = (Table::new(), Machine::default());
    let all: Vec<_> = (0..100_000)
        .map(|n| take(&mut table, &machine, n))
        .collect();
    let at_most = 100_000 * 16 + 256 * 16 + 512 * 32;
    assert!(machine.memory.load(Relaxed) <= at_most, "16 bytes each");
    for &(index, _) in &all {
        table.ends(&machine, index);
    }
    let left = machine.memory.load(Relaxed);
    assert!(left <= 256 * 16 + 512 * 32, "{left} bytes are left");
    // And their generations go on.
    let old: BTreeMap<_, _> = all.into_iter().collect();
    let new: Vec<_> = (0..100_000)
        .map(|n| take(&mut table, &machine, n))
        .collect();
    for &(index, generation) in &new {
        assert!(old.get(&index).is_none_or(|&of| of < generation));
    }
    for (index, _) in new {
        table.ends(&machine, index);
    }
    table.clear(&machine);
    assert_eq!(machine.memory.load(Relaxed), 0);
}

#[test]
fn no_memory_is_an_error_and_changes_nothing() {
    let (mut table, machine) = (Table::new(), Machine::default());
    machine.limit.store(6000, Relaxed);
    let all: Vec<_> = (0..256).map(|n| take(&mut table, &machine, n)).collect();
    assert_eq!(table.take(&machine), Err(NoSlot::OutOfMemory(4096)));
    assert_eq!(table.used(), 256);
    machine.limit.store(0, Relaxed);
    let (index, _) = take(&mut table, &machine, 256);
    table.ends(&machine, index);
    all.iter()
        .for_each(|&(index, _)| table.ends(&machine, index));
    table.clear(&machine);
}

proptest! {
    /// Rule 1: who is in it, by index and generation, against a map.
    #[test]
    fn rule_1_a_name_is_of_one_coroutine(steps in prop::collection::vec((0_usize..600, any::<bool>()), 0..2000)) {
        let (mut table, machine) = (Table::new(), Machine::default());
        let mut there: Vec<(u32, u32, usize)> = Vec::new();
        let mut names = BTreeSet::new();
        for (n, (at, takes)) in steps.into_iter().enumerate() {
            if takes || there.is_empty() {
                let (index, generation) = take(&mut table, &machine, n);
                prop_assert!(names.insert((index, generation)), "a name comes twice");
                there.push((index, generation, n));
            } else {
                let (index, generation, n) = there.swap_remove(at % there.len());
                let slot = table.slot(index).unwrap();
                prop_assert_eq!((slot.generation, slot.block), (generation, block(n)));
                table.ends(&machine, index);
                let is_stale = table.slot(index).is_none_or(|slot| slot.block.is_null());
                prop_assert!(is_stale);
            }
            prop_assert_eq!(table.used(), there.len());
        }
        there.iter().for_each(|&(index, ..)| table.ends(&machine, index));
        table.clear(&machine);
        prop_assert_eq!(machine.memory.load(Relaxed), 0);
    }
}
