//! How urgent the poller is: as urgent as what it does it for.
//!
//! Rules:
//! 1. **Waiters.** While somebody waits, it has the priority of the most urgent who does. Who comes, or
//!    becomes more urgent while he waits, counts at once; who goes, until the next round has ended.
//! 2. **Rings.** A ring counts with the priority of who rang, until a round has been made for it: so what was
//!    written is sent at the priority of who wrote it.
//! 3. With neither it has [`Priority::DEFAULT`], as a task has.
//! 4. **Said.** It says so in [`SUMMARY`], as a domain of its own that has a coroutine of that priority ready. `sched_coop`
//!    picks by that, and a worker with less urgent coroutines gives way to it, under every policy. While
//!    it sleeps it says nothing; whoever wakes it, a ring or a tick, says it first.
//! 5. LOOK AGAIN, of [`axcoop_summary`]: who rings notes it and then says it; the poller takes back what is
//!    said and then looks at what was noted. So nothing that was noted stays unsaid, and what is said too
//!    much is taken back after the next round.

use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst};

use axcoop_summary::{Bits, DOMAINS, DomainId, PRIORITIES, Priority, SUMMARY};

/// How many wait, of each priority.
static WAITING: [AtomicUsize; PRIORITIES] = [const { AtomicUsize::new(0) }; PRIORITIES];
/// The priorities that have been rung for since the last round began, a bit each.
static RUNG: AtomicU8 = AtomicU8::new(0);
/// The poller's domain; [`DOMAINS`] without one, and then nothing is said.
static DOMAIN: AtomicU8 = AtomicU8::new(DOMAINS as u8);

const _: () = assert!(PRIORITIES <= u8::BITS as usize);

/// Somebody waits, as long as this is there.
#[derive(Debug)]
pub(crate) struct Waiting(Priority);

impl Waiting {
    /// Who begins to, or does so with another priority than before, rings then.
    pub fn at(priority: Priority) -> Self {
        WAITING[priority.index()].fetch_add(1, SeqCst);
        Self(priority)
    }

    pub fn priority(&self) -> Priority {
        self.0
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING[self.0.index()].fetch_sub(1, SeqCst);
    }
}

/// A ring of this priority.
pub(crate) fn rings(priority: Priority) {
    RUNG.fetch_or(1 << priority.index(), SeqCst);
    say(priority);
}

/// Of the poller: this is its domain.
pub(crate) fn serves(domain: Option<DomainId>) {
    DOMAIN.store(domain.map_or(DOMAINS, DomainId::index) as u8, SeqCst);
}

/// Of the poller: a round begins, for all that have rung.
pub(crate) fn begins_round() {
    RUNG.store(0, SeqCst);
}

/// Of the poller: the round has ended.
pub(crate) fn ends_round() {
    ends_round_while(|| {});
}

/// The same, while somebody else does this at the worst moment.
fn ends_round_while(others: impl FnOnce()) {
    let Some(domain) = domain() else {
        return;
    };
    let level = level();
    others();
    say(level);
    let above = Bits::own_above(domain, level);
    if SUMMARY.any(above) {
        SUMMARY.clear_all(above);
        say(self::level()); // LOOK AGAIN
    }
}

/// Of the poller: it is about to sleep. If somebody rings from here on, or has rung since the round began, it does
/// not.
pub(crate) fn rests() {
    if let Some(domain) = domain() {
        SUMMARY.clear_all(Bits::own(domain));
    }
}

/// Of who wakes the poller.
pub(crate) fn wakes() {
    say(level());
}

/// Rules 1 to 3.
fn level() -> Priority {
    let waiting = (0..PRIORITIES).find(|&level| WAITING[level].load(SeqCst) != 0);
    let rung = RUNG.load(SeqCst).trailing_zeros() as usize;
    let most_urgent = waiting.unwrap_or(PRIORITIES).min(rung);
    Priority::try_from(most_urgent).unwrap_or_default()
}

fn domain() -> Option<DomainId> {
    let domain = usize::from(DOMAIN.load(SeqCst));
    (domain < DOMAINS).then(|| DomainId::new(domain))
}

fn say(priority: Priority) {
    if let Some(domain) = domain() {
        SUMMARY.mark(domain, priority);
    }
}

/// How many wait.
#[cfg(test)]
pub(crate) fn waiting() -> usize {
    WAITING.iter().map(|waiting| waiting.load(SeqCst)).sum()
}

/// Forgets those of a test that has failed.
#[cfg(test)]
pub(crate) fn forget() {
    WAITING.iter().for_each(|waiting| waiting.store(0, SeqCst));
}

#[cfg(all(test, not(target_os = "none")))]
mod tests {
    use super::*;
    use crate::tests::{DOMAIN, Net};

    #[test]
    fn rule_5_who_comes_as_it_is_taken_back_is_said() {
        let net = Net::new();
        let urgent = Priority::new(1);
        rings(urgent);
        begins_round();
        let mut waits = None;
        ends_round_while(|| {
            waits = Some(Waiting::at(urgent));
            rings(urgent);
        });
        assert_eq!(SUMMARY.of(DOMAIN), Some(urgent));
        drop((waits, net));
    }
}
