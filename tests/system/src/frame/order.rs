//! Which case is next.

use super::case::Needs;

/// The next of `waiting`, if one may start beside those that are `running`: the first that
/// builds for another architecture than they do, or the first. Those that want to be alone
/// come after all others.
pub(super) fn next(waiting: &[&Needs], running: &[&Needs]) -> Option<usize> {
    let may_start = |needs: &Needs| running.iter().all(|other| needs.goes_with(other));
    let mut candidates = (0..waiting.len())
        .filter(|&at| !waiting[at].alone && may_start(waiting[at]))
        .peekable();
    let first = candidates.peek().copied();
    let is_building = |at: usize| {
        waiting[at].arch.is_some() && running.iter().any(|other| other.arch == waiting[at].arch)
    };
    if let Some(at) = candidates.find(|&at| !is_building(at)).or(first) {
        return Some(at);
    }
    if !running.is_empty() || waiting.iter().any(|needs| !needs.alone) {
        return None; // it will be their turn
    }
    (!waiting.is_empty()).then_some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boots(app: &str, arch: &str) -> Needs {
        Needs {
            alone: false,
            arch: Some(arch.into()),
            holds: vec![format!("{app} {arch}")],
        }
    }

    fn alone() -> Needs {
        Needs {
            alone: true,
            ..Needs::default()
        }
    }

    #[test]
    fn the_first_goes_first() {
        assert_eq!(next(&[&boots("a", "x"), &boots("b", "y")], &[]), Some(0));
        assert_eq!(next(&[], &[]), None);
    }

    #[test]
    fn beside_a_case_one_of_another_architecture_is_preferred() {
        let running = boots("a", "x");
        let waiting = [boots("b", "x"), boots("a", "y"), Needs::default()];
        let waiting: Vec<_> = waiting.iter().collect();
        assert_eq!(next(&waiting, &[&running]), Some(1));
        assert_eq!(next(&waiting[..1], &[&running]), Some(0));
        assert_eq!(next(&[waiting[0], waiting[2]], &[&running]), Some(1));
    }

    #[test]
    fn two_that_hold_the_same_are_never_beside_each_other() {
        let running = boots("a", "x");
        assert_eq!(next(&[&boots("a", "x")], &[&running]), None);
        assert_eq!(
            next(&[&boots("a", "x"), &boots("b", "x")], &[&running]),
            Some(1)
        );
    }

    #[test]
    fn who_wants_to_be_alone_comes_last_and_is() {
        let (alone, other) = (alone(), boots("a", "x"));
        assert_eq!(next(&[&alone, &other], &[]), Some(1));
        assert_eq!(next(&[&alone], &[&other]), None);
        assert_eq!(next(&[&alone, &alone], &[]), Some(0));
        assert_eq!(next(&[&alone], &[&alone]), None);
        assert_eq!(next(&[&other], &[&alone]), None);
        // One that waits for what another holds is still before it.
        assert_eq!(next(&[&alone, &other], &[&other]), None);
    }
}
