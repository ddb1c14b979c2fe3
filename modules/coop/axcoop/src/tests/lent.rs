//! The parts of a priority, compared with a list.

use axcoop_summary::Priority;
use proptest::prelude::*;

use crate::task::lent::Lent;

#[test]
fn at_least_253_loans_of_one_priority_count() {
    let mut lent = Lent::only(Priority::LAST);
    for _ in 0..254 {
        assert!(lent.lend(2));
    }
    assert!(!lent.lend(2));
    assert!(lent.lend(3), "another priority has its own count");
    // There is always room for the base.
    lent.move_base(7, 2);
    for _ in 0..254 {
        lent.returns(2);
    }
    assert_eq!(lent.most_urgent(), 2);
    lent.move_base(2, 7);
    assert_eq!(lent.most_urgent(), 3);
}

proptest! {
    #[test]
    fn most_urgent_part_counts(base in 0_usize..8, steps in prop::collection::vec((0_usize..8, 0..3), 0..100)) {
        let mut base = base;
        let mut lent = Lent::only(Priority::new(base));
        let mut model: Vec<usize> = Vec::new();
        for (priority, what) in steps {
            match what {
                0 => {
                    assert!(lent.lend(priority));
                    model.push(priority);
                }
                1 => {
                    if let Some(at) = model.iter().position(|&of| of == priority) {
                        model.swap_remove(at);
                        lent.returns(priority);
                    }
                }
                _ => {
                    lent.move_base(base, priority);
                    base = priority;
                }
            }
            let expected = model.iter().copied().min().unwrap_or(7).min(base);
            prop_assert_eq!(lent.most_urgent(), expected);
        }
    }
}
