//! Checks that futures yield within the budget, for the tables of all crates with futures. A table names every future
//! that its crate exports; a missing one fails the test.

use std::boxed::Box;
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::ops::RangeInclusive;
use std::path::Path;
use std::pin::Pin;
use std::string::{String, ToString};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;
use std::vec::Vec;
use std::{format, fs, vec};

use axcoop::{Domain, Ended, POLL_BUDGET, Priority, cancel, wake};

/// An await that is always ready at once.
pub struct Awaited {
    /// The futures of the crate in it.
    pub of: &'static [&'static str],
    /// The budget that it spends each time.
    pub spend: usize,
    next: Box<dyn FnMut() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>,
}

/// Makes an entry of the table: an await of these futures, which spends this much each time.
pub fn awaited<F>(
    of: &'static [&'static str],
    spend: usize,
    mut next: impl FnMut() -> F + Send + 'static,
) -> Awaited
where
    F: Future<Output = ()> + Send + 'static,
{
    Awaited {
        of,
        spend,
        next: Box::new(move || Box::pin(next())),
    }
}

/// Asserts that each entry yields: the least urgent coroutine of the domain awaits it, and wakes the most urgent one,
/// which must run within [`POLL_BUDGET`] awaits. Asserts that the table has all futures of these sources.
///
/// The domain must have one worker: on two the urgent coroutine runs in any case.
pub fn assert_each_gives_way(domain: &'static Domain, sources: &Path, table: Vec<Awaited>) {
    let of: BTreeSet<_> = table.iter().flat_map(|awaited| awaited.of).collect();
    let of: Vec<_> = of.into_iter().map(|name| name.to_string()).collect();
    assert_eq!(
        of,
        futures(sources),
        "the table, and the futures that there are"
    );
    let mut bad = Vec::new();
    for (n, awaited) in table.into_iter().enumerate() {
        let (of, spend) = (awaited.of, awaited.spend);
        let awaits = awaits_between_turns(domain, awaited);
        let budget = usize::from(POLL_BUDGET);
        // The lower end holds that it is ready at once, and spends no more than it should.
        let allowed = (budget / spend).saturating_sub(1)..=budget / spend;
        if !allowed.contains(awaits.start()) || !allowed.contains(awaits.end()) {
            bad.push(format!(
                "{n}: {of:?}: {awaits:?} awaits, must be in {allowed:?}"
            ));
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

/// Returns the fewest and the most awaits from a wake of the urgent coroutine to its poll.
fn awaits_between_turns(domain: &'static Domain, mut awaited: Awaited) -> RangeInclusive<usize> {
    const ROUNDS: usize = 5;
    const MOST: usize = 3 * POLL_BUDGET as usize;
    let turns = Arc::new(AtomicUsize::new(0));
    let takes = turns.clone();
    let urgent = async move {
        poll_fn(|_| {
            takes.fetch_add(1, SeqCst);
            Poll::<()>::Pending
        })
        .await
    };
    let handle = domain.spawn(urgent, Priority::FIRST);
    let urgent = handle.cid();
    let busy = async move {
        let (mut fewest, mut most) = (usize::MAX, 0);
        for _ in 0..ROUNDS {
            let before = turns.load(SeqCst);
            wake(urgent).unwrap();
            let mut awaits = 0;
            while awaits < MOST {
                (awaited.next)().await;
                if turns.load(SeqCst) != before {
                    break;
                }
                awaits += 1;
            }
            (fewest, most) = (fewest.min(awaits), most.max(awaits));
        }
        fewest..=most
    };
    let awaits = domain.spawn(busy, Priority::LAST).join().unwrap();
    cancel(urgent).unwrap();
    assert_eq!(handle.join(), Err(Ended::Cancelled));
    awaits
}

/// Returns the names of all futures and of all public asynchronous functions in these sources.
fn futures(sources: &Path) -> Vec<String> {
    let name = |rest: &str| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        rest[..end.unwrap_or(rest.len())].to_string()
    };
    let mut names = BTreeSet::new();
    let mut open = vec![sources.to_path_buf()];
    while let Some(file) = open.pop() {
        if file.ends_with("tests") {
            continue;
        }
        if file.is_dir() {
            open.extend(
                fs::read_dir(&file)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        for line in fs::read_to_string(&file).unwrap().lines() {
            if line.starts_with("impl")
                && let Some((_, rest)) = line.split_once(" Future for ")
            {
                names.insert(name(rest));
            }
            if let Some((_, rest)) = line.split_once("pub async fn ") {
                names.insert(name(rest));
            }
        }
    }
    names.into_iter().collect()
}
