//! CPU time on either side of a deadline, in any unit of time that is the same throughout.

/// Returns the part of a stay on the CPU, from `entered` to `left`, that lies after `deadline`.
#[cfg(any(target_os = "none", test))]
#[inline]
pub const fn time_after(deadline: u64, entered: u64, left: u64) -> u64 {
    let begin = if entered > deadline {
        entered
    } else {
        deadline
    };
    left.saturating_sub(begin)
}

/// Returns the part of `run`, the CPU time of a task between `first_run` and `finish`, that lies
/// before `deadline` if it was spread evenly.
#[cfg(any(not(target_os = "none"), test))]
pub fn share_before(deadline: u64, first_run: u64, finish: u64, run: u64) -> u64 {
    if finish <= deadline {
        return run;
    }
    let inside = deadline.saturating_sub(first_run);
    (u128::from(run) * u128::from(inside) / u128::from(finish - first_run)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stay_is_cut_at_the_deadline() {
        assert_eq!(time_after(100, 10, 90), 0);
        assert_eq!(time_after(100, 10, 100), 0);
        assert_eq!(time_after(100, 10, 130), 30);
        assert_eq!(time_after(100, 100, 130), 30);
        assert_eq!(time_after(100, 120, 130), 10);
        assert_eq!(time_after(u64::MAX, 10, 130), 0);
    }

    #[test]
    fn stays_add_up_to_the_whole_wherever_the_deadline_is() {
        let stays = [(3, 7), (7, 12), (20, 21), (30, 45)];
        for deadline in 0..50 {
            let late: u64 = stays.map(|(e, l)| time_after(deadline, e, l)).iter().sum();
            let counted = stays
                .iter()
                .flat_map(|&(e, l)| e..l)
                .filter(|&t| t >= deadline);
            assert_eq!(late, counted.count() as u64, "deadline {deadline}");
        }
    }

    #[test]
    fn a_share_is_in_proportion() {
        assert_eq!(share_before(100, 0, 100, 40), 40);
        assert_eq!(share_before(100, 0, 200, 40), 20);
        assert_eq!(share_before(100, 50, 150, 40), 20);
        assert_eq!(share_before(100, 150, 200, 40), 0);
    }
}
