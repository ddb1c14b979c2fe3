//! Random schedules of threads that wake, cancel, join and serve, made by [Shuttle](shuttle). They find a lost wake, a
//! state that is not foreseen, and an output that is dropped twice.
//!
//! `AXCOOP_SCHEDULES` is the number of schedules of all scenarios together; `make lost-wakes` sets 10^6.
//! [`faulty_lost_wakes`](../faulty_lost_wakes.rs) does the same with faulty states, and finds the lost wake.
#![allow(dead_code, reason = "not all that the crate offers is called here")]

extern crate alloc;

include!("schedules/whole.rs");

type Scenario = (&'static str, fn());

/// Returns the number of schedules for each of this many scenarios.
fn schedules(scenarios: usize) -> usize {
    let all = std::env::var("AXCOOP_SCHEDULES").map_or(2_000_usize, |all| {
        all.parse().expect("AXCOOP_SCHEDULES is a number")
    });
    all.div_ceil(scenarios)
}

/// One test for all scenarios: a domain number is open once at a time.
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
        ("a priority is donated and taken back", scenarios::donations),
        (
            "a worker is taken away while it begins",
            scenarios::a_worker_is_taken_away,
        ),
        (
            "a poll waits for what another worker runs",
            scenarios::no_coroutine_waits_beside_an_idle_worker,
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
