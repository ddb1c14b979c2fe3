//! The rules of [`table`](crate::task::table).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;

use proptest::prelude::*;

use super::machine::Machine;
use crate::task::table::{Directory, NoSlot, Table, USED_UP};

/// A block, of which only the address matters.
fn block(n: usize) -> *const () {
    core::ptr::without_provenance(64 * (n + 1))
}

fn take(of: &mut (Table, Directory), machine: &Machine, n: usize) -> (u32, u32) {
    let (table, directory) = of;
    let index = table.take(machine, directory).unwrap();
    let slot = table.slot(index).unwrap();
    assert!(slot.block.get().is_null(), "the slot is taken");
    slot.block.set(block(n));
    let generation = slot.next_generation().unwrap();
    // SAFETY: it is taken.
    let found = unsafe { directory.slot(index) };
    assert!(core::ptr::eq(found, slot), "the directory leads elsewhere");
    (index, generation)
}

/// Removes the block of a slot.
fn remove(of: &mut (Table, Directory), machine: &Machine, index: u32) {
    of.0.remove_block(machine, index);
}

fn new() -> ((Table, Directory), Machine) {
    ((Table::new(), Directory::new()), Machine::default())
}

fn clear((mut all, directory): (Table, Directory), machine: &Machine) {
    all.clear(machine, &directory);
    assert_eq!(machine.memory.load(Relaxed), 0);
}

#[test]
fn rule_2_slot_with_used_up_generations_is_not_used_again() {
    let (mut table, machine) = new();
    let (index, _) = take(&mut table, &machine, 0);
    table.0.slot(index).unwrap().set_generation(USED_UP);
    remove(&mut table, &machine, index);
    let others: BTreeSet<_> = (0..600).map(|n| take(&mut table, &machine, n).0).collect();
    assert!(!others.contains(&index));
    for index in others {
        remove(&mut table, &machine, index);
    }
    clear(table, &machine);
}

#[test]
fn rule_3_all_empty_chunks_but_one_are_freed() {
    let (mut table, machine) = new();
    let all: Vec<_> = (0..100_000)
        .map(|n| take(&mut table, &machine, n))
        .collect();
    let lists = 512 * 32 + (2 * 512 + 8) * 8;
    let at_most = 100_000 * 16 + 256 * 16 + lists;
    assert!(machine.memory.load(Relaxed) <= at_most, "16 bytes each");
    for &(index, _) in &all {
        remove(&mut table, &machine, index);
    }
    let left = machine.memory.load(Relaxed);
    assert!(left <= 256 * 16 + lists, "{left} bytes are left");
    // Their generations go on.
    let old: BTreeMap<_, _> = all.into_iter().collect();
    let new: Vec<_> = (0..100_000)
        .map(|n| take(&mut table, &machine, n))
        .collect();
    for &(index, generation) in &new {
        assert!(old.get(&index).is_none_or(|&of| of < generation));
    }
    for (index, _) in new {
        remove(&mut table, &machine, index);
    }
    clear(table, &machine);
}

#[test]
fn no_memory_is_an_error_and_changes_nothing() {
    let (mut table, machine) = new();
    machine.limit.store(6000, Relaxed);
    let all: Vec<_> = (0..256).map(|n| take(&mut table, &machine, n)).collect();
    assert_eq!(
        table.0.take(&machine, &table.1),
        Err(NoSlot::OutOfMemory(4096))
    );
    assert_eq!(table.0.used(), 256);
    machine.limit.store(0, Relaxed);
    let (index, _) = take(&mut table, &machine, 256);
    remove(&mut table, &machine, index);
    all.iter()
        .for_each(|&(index, _)| remove(&mut table, &machine, index));
    clear(table, &machine);
}

proptest! {
    /// Compares the blocks, by index and generation, with a list.
    #[test]
    fn rule_1_name_is_never_used_again(steps in prop::collection::vec((0_usize..600, any::<bool>()), 0..2000)) {
        let (mut table, machine) = new();
        let mut there: Vec<(u32, u32, usize)> = Vec::new();
        let mut names = BTreeSet::new();
        for (n, (at, takes)) in steps.into_iter().enumerate() {
            if takes || there.is_empty() {
                let (index, generation) = take(&mut table, &machine, n);
                prop_assert!(names.insert((index, generation)), "a name comes twice");
                there.push((index, generation, n));
            } else {
                let (index, generation, n) = there.swap_remove(at % there.len());
                let slot = table.0.slot(index).unwrap();
                prop_assert_eq!((slot.generation(), slot.block.get()), (generation, block(n)));
                remove(&mut table, &machine, index);
                let is_stale = table.0.slot(index).is_none_or(|slot| slot.block.get().is_null());
                prop_assert!(is_stale);
            }
            prop_assert_eq!(table.0.used(), there.len());
        }
        there.iter().for_each(|&(index, ..)| remove(&mut table, &machine, index));
        clear(table, &machine);
    }
}
