//! The order in which cases start.

use super::case::Needs;

/// Returns the place in `waiting` of the next case that may start beside those in `running`. This is
/// the first that builds for another architecture than they do, or else the first. Cases that run
/// alone come after all others.
pub(super) fn next(waiting: &[&Needs], running: &[&Needs]) -> Option<usize> {
    let may_start = |needs: &Needs| running.iter().all(|other| needs.can_run_beside(other));
    let mut candidates = (0..waiting.len())
        .filter(|&at| !waiting[at].alone && may_start(waiting[at]))
        .peekable();
    let first = candidates.peek().copied();
    let is_building = |at: usize| {
        waiting[at].arch.is_some() && running.iter().any(|other| other.arch == waiting[at].arch)
    };
    let best = candidates.find(|&at| !is_building(at)).or(first);
    let only_alone = running.is_empty() && waiting.iter().all(|needs| needs.alone);
    best.or((only_alone && !waiting.is_empty()).then_some(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a x` builds and boots the images `a x` of the architecture `x`; `-` needs nothing, and
    /// `!` runs alone.
    fn needs(words: &[&str]) -> Vec<Needs> {
        let of = |word: &&str| Needs {
            alone: *word == "!",
            arch: word.split_once(' ').map(|(_, arch)| arch.to_owned()),
            holds: word
                .contains(' ')
                .then(|| (*word).to_owned())
                .into_iter()
                .collect(),
        };
        words.iter().map(of).collect()
    }

    #[test]
    fn next_case_is_first_that_may_start() {
        let cases: [(&[&str], &[&str], Option<usize>); 12] = [
            (&[], &[], None),
            (&["a x", "b y"], &[], Some(0)),
            // Another architecture is preferred. A case without one counts as another.
            (&["b x", "a y", "-"], &["a x"], Some(1)),
            (&["b x"], &["a x"], Some(0)),
            (&["b x", "-"], &["a x"], Some(1)),
            // The running case holds the resource of the waiting one.
            (&["a x"], &["a x"], None),
            (&["a x", "b x"], &["a x"], Some(1)),
            // Cases that run alone are last, even if the others have to wait.
            (&["!", "a x"], &[], Some(1)),
            (&["!", "a x"], &["a x"], None),
            (&["!"], &["a x"], None),
            (&["!", "!"], &[], Some(0)),
            (&["a x", "!"], &["!"], None),
        ];
        for (waiting, running, expected) in cases {
            let (first, second) = (needs(waiting), needs(running));
            let found = next(&Vec::from_iter(&first), &Vec::from_iter(&second));
            assert_eq!(found, expected, "{waiting:?} beside {running:?}");
        }
    }
}
