//! The parts of a priority, compared with a list.

use axcoop_summary::Priority;
use proptest::prelude::*;

use crate::task::donations::Donations;

#[test]
fn at_least_253_donations_of_one_priority_count() {
    let mut donations = Donations::only(Priority::LAST);
    for _ in 0..254 {
        assert!(donations.add(2));
    }
    assert!(!donations.add(2));
    assert!(donations.add(3), "another priority has its own count");
    // There is always room for the base.
    donations.move_base(7, 2);
    for _ in 0..254 {
        donations.remove(2);
    }
    assert_eq!(donations.most_urgent(), 2);
    donations.move_base(2, 7);
    assert_eq!(donations.most_urgent(), 3);
}

proptest! {
    #[test]
    fn most_urgent_part_counts(base in 0_usize..8, steps in prop::collection::vec((0_usize..8, 0..3), 0..100)) {
        let mut base = base;
        let mut donations = Donations::only(Priority::new(base));
        let mut model: Vec<usize> = Vec::new();
        for (priority, what) in steps {
            match what {
                0 => {
                    assert!(donations.add(priority));
                    model.push(priority);
                }
                1 => {
                    if let Some(at) = model.iter().position(|&of| of == priority) {
                        model.swap_remove(at);
                        donations.remove(priority);
                    }
                }
                _ => {
                    donations.move_base(base, priority);
                    base = priority;
                }
            }
            let expected = model.iter().copied().min().unwrap_or(7).min(base);
            prop_assert_eq!(donations.most_urgent(), expected);
        }
    }
}
