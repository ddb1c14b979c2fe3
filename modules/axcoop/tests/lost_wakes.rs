//! Random schedules of threads that wake, cancel, join and serve, of [Shuttle](shuttle): a wake that
//! is lost, a state that is not foreseen, an output that is dropped twice would be found.
//!
//! `AXCOOP_SCHEDULES` says how many there are, over all scenarios; `make lost-wakes` has 10^6.
//! [`faulty_lost_wakes`](../faulty_lost_wakes.rs) is the same with other states, and finds the loss.
#![allow(dead_code, reason = "not all that the crate offers is called here")]

extern crate alloc;

include!("schedules/executor.rs");

#[path = "../src/state.rs"]
mod state;

type Scenario = (&'static str, fn());

/// How many schedules each of so many scenarios gets.
fn schedules(scenarios: usize) -> usize {
    let all = std::env::var("AXCOOP_SCHEDULES").map_or(2_000_usize, |all| {
        all.parse().expect("AXCOOP_SCHEDULES is a number")
    });
    all.div_ceil(scenarios)
}

/// The number of a domain is for one scenario at a time.
#[test]
fn no_schedule_loses_a_wake() {
    let scenarios: [Scenario; 12] = [
        (
            "a wake and a poll that ends pending",
            scenarios::wake_and_pending,
        ),
        ("two wakers, two workers", scenarios::two_wakers),
        ("workers come and go", scenarios::workers_come_and_go),
        ("cancelled, woken and waited for", scenarios::cancel_and_end),
        (
            "a name is looked up while its block becomes another's",
            scenarios::names_and_blocks,
        ),
        (
            "a handle is dropped while its coroutine ends",
            scenarios::drop_and_end,
        ),
        ("a coroutine awaits others", scenarios::coroutines_join),
        ("a priority is lent and taken back", scenarios::loans),
        (
            "a worker is taken away while it begins",
            scenarios::a_worker_is_taken_away,
        ),
        (
            "a poll waits for what another worker runs",
            scenarios::nobody_waits_beside_an_idle_worker,
        ),
        (
            "a mark stays while a worker that is alone clears stale ones",
            scenarios::marks_stay_alone,
        ),
        (
            "a mark stays while a worker beside others clears stale ones",
            scenarios::marks_stay_shared,
        ),
    ];
    let each = schedules(scenarios.len());
    for (name, scenario) in scenarios {
        shuttle::check_random(scenario, each);
        println!("schedules: {name}: {each} schedules");
    }
}
