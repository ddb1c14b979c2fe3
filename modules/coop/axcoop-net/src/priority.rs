//! The priority of the poller: that of its most urgent work.
//!
//! Rules:
//! 1. **Waiters.** While there are waiters, it has the priority of the most urgent one. A waiter that arrives, or
//!    becomes more urgent, counts at once. One that leaves counts until the next round has ended.
//! 2. **Rings.** A ring counts with its priority until a round has been made for it. So written bytes are sent at the
//!    priority of the write.
//! 3. With neither it has [`Priority::DEFAULT`], like a task.
//! 4. **Marks.** It marks its priority in [`SUMMARY`], as a domain with one ready coroutine. `sched_coop` picks by
//!    that, and a worker with less urgent coroutines yields to it under every policy. While it sleeps nothing is
//!    marked; a ring or a tick marks the priority before it wakes the poller.
//! 5. LOOK AGAIN (of [`axcoop_summary`]): a ring is noted and then marked. The poller clears the marks and then looks
//!    at the notes. So no noted ring stays unmarked, and a stale mark is cleared after the next round.

use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst};

use axcoop_summary::{Bits, DOMAINS, DomainId, PRIORITIES, Priority, SUMMARY};

/// The number of waiters of each priority.
static WAITING: [AtomicUsize; PRIORITIES] = [const { AtomicUsize::new(0) }; PRIORITIES];
/// The priorities rung for since the last round began (bit mask).
static RUNG: AtomicU8 = AtomicU8::new(0);
/// The poller's domain, or [`DOMAINS`] without one: then nothing is marked.
static DOMAIN: AtomicU8 = AtomicU8::new(DOMAINS as u8);

const _: () = assert!(PRIORITIES <= u8::BITS as usize);

/// Counts a waiter while it exists.
#[derive(Debug)]
pub(crate) struct Waiting(Priority);

impl Waiting {
    /// Counts a waiter. One that is new, or has a new priority, rings then.
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

/// Notes and marks a ring of this priority.
pub(crate) fn note_ring(priority: Priority) {
    RUNG.fetch_or(1 << priority.index(), SeqCst);
    mark_priority(priority);
}

/// Sets the poller's domain. Called by the poller.
pub(crate) fn set_domain(domain: Option<DomainId>) {
    DOMAIN.store(domain.map_or(DOMAINS, DomainId::index) as u8, SeqCst);
}

/// Begins a round, for all rings so far. Called by the poller.
pub(crate) fn begin_round() {
    RUNG.store(0, SeqCst);
}

/// Ends the round. Called by the poller.
pub(crate) fn end_round() {
    end_round_while(|| {});
}

/// Ends the round. Calls `others` at the moment at which a ring is most likely to be missed.
fn end_round_while(others: impl FnOnce()) {
    let Some(domain) = domain() else {
        return;
    };
    let level = level();
    others();
    mark_priority(level);
    let above = Bits::own_above(domain, level);
    if SUMMARY.any(above) {
        SUMMARY.clear_all(above);
        mark_priority(self::level()); // LOOK AGAIN
    }
}

/// Clears the marks before a sleep. The poller does not sleep if a ring comes from here on, or has come since the
/// round began. Called by the poller.
pub(crate) fn clear_marks() {
    if let Some(domain) = domain() {
        SUMMARY.clear_all(Bits::own(domain));
    }
}

/// Marks the priority. Called before the poller is woken.
pub(crate) fn mark() {
    mark_priority(level());
}

/// Returns the priority of rules 1 to 3.
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

fn mark_priority(priority: Priority) {
    if let Some(domain) = domain() {
        SUMMARY.mark(domain, priority);
    }
}

/// Returns the number of waiters.
#[cfg(test)]
pub(crate) fn waiting() -> usize {
    WAITING.iter().map(|waiting| waiting.load(SeqCst)).sum()
}

/// Forgets the waiters of a failed test.
#[cfg(test)]
pub(crate) fn forget() {
    WAITING.iter().for_each(|waiting| waiting.store(0, SeqCst));
}

#[cfg(all(test, not(target_os = "none")))]
mod tests {
    use super::*;
    use crate::tests::{DOMAIN, Net};

    #[test]
    fn rule_5_waiter_that_arrives_during_a_clear_is_marked() {
        let net = Net::new();
        let urgent = Priority::new(1);
        note_ring(urgent);
        begin_round();
        let mut waiting = None;
        end_round_while(|| {
            waiting = Some(Waiting::at(urgent));
            note_ring(urgent);
        });
        assert_eq!(SUMMARY.of(DOMAIN), Some(urgent));
        drop((waiting, net));
    }
}
