//! The rules of [`state`](crate::state): each step from each state.

use crate::state::{Begun, State, Suspended, Woken};

fn running() -> State {
    let state = State::queued();
    assert_eq!(state.begin(), Begun::Poll);
    state
}

fn idle() -> State {
    let state = running();
    assert!(!state.is_woken());
    assert_eq!(state.suspend(), Suspended::Idle);
    state
}

fn done() -> State {
    let state = running();
    state.finish();
    state
}

#[test]
fn rule_1_wake_of_an_idle_one_queues_it() {
    let state = idle();
    assert_eq!(state.wake(), Woken::MustBeQueued);
    assert_eq!(state.begin(), Begun::Poll);
    assert_eq!(idle().cancel(), Woken::MustBeQueued);
}

#[test]
fn rule_2_wake_of_a_queued_one_changes_nothing() {
    let state = State::queued();
    assert_eq!(state.wake(), Woken::Already);
    assert_eq!(state.wake(), Woken::Already);
    assert!(!state.wake_running(), "it does not run");
    assert_eq!(state.begin(), Begun::Poll);
    assert!(!state.is_woken(), "the wake is over when the poll begins");
    assert_eq!(state.suspend(), Suspended::Idle);
}

#[test]
fn rule_4_wake_of_a_running_one_is_remembered() {
    let state = running();
    assert_eq!(state.wake(), Woken::Already);
    assert!(state.is_woken());
    let state = running();
    assert!(state.wake_running());
    assert!(state.is_woken());
    assert!(!state.wake_running(), "it has been woken");
    assert_eq!(state.wake(), Woken::Already);
}

#[test]
fn rule_5_without_a_wake_it_becomes_idle() {
    assert!(!idle().wake_running());
    assert_eq!(idle().wake(), Woken::MustBeQueued);
}

#[test]
fn rule_6_woken_while_running_is_queued_again() {
    // The worker sees the wake after the poll.
    let state = running();
    assert_eq!(state.wake(), Woken::Already);
    assert!(state.is_woken());
    assert_eq!(state.wake(), Woken::Already);
    assert_eq!(state.begin(), Begun::Poll);
    // It sees the wake only in the step that would have made it idle.
    let state = running();
    assert!(!state.is_woken());
    assert_eq!(state.wake(), Woken::Already);
    assert_eq!(state.suspend(), Suspended::Queued);
    assert_eq!(state.wake(), Woken::Already);
    assert_eq!(state.begin(), Begun::Poll);
}

#[test]
fn rule_7_it_ends_from_running_woken_or_not() {
    assert!(!running().is_done());
    assert!(done().is_done());
    let state = running();
    assert_eq!(state.wake(), Woken::Already);
    state.finish();
    assert!(state.is_done());
}

#[test]
fn rule_8_nothing_changes_it_after_the_end() {
    let state = done();
    assert_eq!(state.wake(), Woken::Already);
    assert_eq!(state.cancel(), Woken::Already);
    assert!(!state.wake_running());
    assert!(state.is_done());
}

#[test]
fn rule_9_cancel_takes_the_place_of_the_next_poll() {
    let state = State::queued();
    assert_eq!(state.cancel(), Woken::Already);
    assert_eq!(state.begin(), Begun::Cancel);
    // During a poll that ends pending.
    let state = running();
    assert_eq!(state.cancel(), Woken::Already);
    assert_eq!(state.suspend(), Suspended::Queued);
    assert_eq!(state.begin(), Begun::Cancel);
    let state = running();
    assert_eq!(state.cancel(), Woken::Already);
    assert!(state.is_woken());
    assert_eq!(state.begin(), Begun::Cancel);
    // During the last poll.
    let state = running();
    assert_eq!(state.cancel(), Woken::Already);
    state.finish();
    assert!(state.is_done());
}
