//! Explores every order in which an agent and its CPUs can touch the rings and the handshakes. The model
//! checker [loom] runs each scenario with every value that the memory orders allow. The code is that of
//! every build; here its atomics are loom's.
//!
//! Rings of decisions have two entries here. An interrupt comes at any time after it was sent.
#![cfg(loom)]

extern crate alloc;

#[path = "../src/handshake.rs"]
#[expect(dead_code, reason = "the variants for one CPU")]
mod handshake;
#[path = "../src/ring.rs"]
#[expect(dead_code, reason = "the variants for one CPU")]
mod ring;
#[path = "../src/status.rs"]
#[expect(dead_code, reason = "agents and decisions are not here")]
mod status;

mod interleavings {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use loom::cell::UnsafeCell;
    use loom::sync::atomic::{AtomicBool, Ordering::AcqRel};
    use loom::thread;

    use crate::handshake::{Bell, StatusWord};
    use crate::ring::{Decisions, Messages};
    use crate::status::{State, Status};

    /// Runs a scenario in every order, and prints the number of executions.
    fn explore(name: &str, scenario: impl Fn() + Send + Sync + 'static) {
        let executions = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&executions);
        loom::model(move || {
            counted.fetch_add(1, Relaxed);
            scenario();
        });
        let executions = executions.load(Relaxed);
        println!("interleavings: delegated: {name}: {executions} executions");
    }

    /// Starts a thread on what is shared. A scenario gives each agent and each CPU one: the main thread,
    /// which starts them, would have to be preempted to run late, and the checker limits preemptions.
    fn start<S, T>(shared: &Arc<S>, body: impl FnOnce(&S) -> T + 'static) -> thread::JoinHandle<T>
    where
        S: 'static,
        T: 'static,
    {
        let shared = Arc::clone(shared);
        thread::spawn(move || body(&shared))
    }

    /// Takes all decisions that wait.
    fn take_all(decisions: &Decisions) -> Vec<u64> {
        let mut taken = Vec::new();
        while let Some(decision) = decisions.first() {
            if decisions.take(decision) {
                taken.push(decision);
            }
        }
        taken
    }

    /// Makes these decisions. Returns those for which there was room.
    fn push_all(decisions: &Decisions, wanted: &[u64]) -> Vec<u64> {
        let has_room = |decision: &&u64| decisions.push(**decision).is_some();
        wanted.iter().filter(has_room).copied().collect()
    }

    /// Makes a plan of these decisions. Returns those for which there was room.
    fn plan(decisions: &Decisions, wanted: &[u64]) -> Vec<u64> {
        let added = decisions.push_all(wanted, |decision| decision);
        wanted[..added].to_vec()
    }

    /// Makes decisions, and returns those for which there was room.
    type Decide = fn(&Decisions, &[u64]) -> Vec<u64>;

    /// Each decision for which there was room is taken once, in the order of its agent.
    #[test]
    fn each_decision_of_two_agents_is_taken_once() {
        let cases: [(_, Decide, Decide, &[u64]); 3] = [
            ("two agents decide for a CPU", push_all, push_all, &[21]),
            (
                "an agent plans while another decides",
                push_all,
                plan,
                &[21, 23],
            ),
            ("two agents plan for a CPU", plan, plan, &[21, 23]),
        ];
        for (name, one, two, wanted) in cases {
            explore(name, move || {
                let decisions = Arc::new(Decisions::default());
                let first = start(&decisions, move |shared| one(shared, &[11]));
                let second = start(&decisions, move |shared| two(shared, wanted));
                let cpu = start(&decisions, take_all);
                let (first, second) = (first.join().unwrap(), second.join().unwrap());
                let mut taken = cpu.join().unwrap();
                taken.extend(take_all(&decisions));
                let of = |agent: u64| taken.iter().filter(move |d| **d / 10 == agent).copied();
                assert_eq!(of(1).collect::<Vec<_>>(), first);
                assert_eq!(of(2).collect::<Vec<_>>(), second);
                assert!(decisions.is_empty() && first.len() + second.len() >= 2);
            });
        }
    }

    /// Decides by a plan of one, and then one by one.
    fn plan_and_push_all(decisions: &Decisions, wanted: &[u64]) -> Vec<u64> {
        [
            plan(decisions, &wanted[..1]),
            push_all(decisions, &wanted[1..]),
        ]
        .concat()
    }

    /// An agent that finds the ring full while the CPU empties it leaves no gap.
    #[test]
    fn full_ring_that_is_emptied_has_no_gap() {
        let cases: [(_, Decide); 2] = [
            ("an agent fills a ring that its CPU empties", push_all),
            (
                "an agent plans for a ring that its CPU empties",
                plan_and_push_all,
            ),
        ];
        for (name, decide) in cases {
            explore(name, move || {
                let decisions = Arc::new(Decisions::default());
                let before = push_all(&decisions, &[3, 5]);
                assert_eq!(before.len(), 2);
                let agent = start(&decisions, move |shared| decide(shared, &[7, 9]));
                let cpu = start(&decisions, take_all);
                let added = agent.join().unwrap();
                let mut taken = cpu.join().unwrap();
                taken.extend(take_all(&decisions));
                assert_eq!(taken, [before, added].concat());
                assert!(decisions.is_empty());
                assert_eq!(push_all(&decisions, &[11, 13, 15]), [11, 13]);
            });
        }
    }

    /// A decision is withdrawn or taken, and never both.
    #[test]
    fn decision_is_withdrawn_or_taken() {
        explore("an agent withdraws what its CPU takes", || {
            let decisions = Arc::new(Decisions::default());
            let position = decisions.push(3).unwrap();
            decisions.push(5).unwrap();
            let agent = start(&decisions, move |shared| shared.withdraw(position, 3));
            let cpu = start(&decisions, take_all);
            let was_withdrawn = agent.join().unwrap();
            let taken = cpu.join().unwrap();
            let expected: &[u64] = if was_withdrawn { &[5] } else { &[3, 5] };
            assert_eq!(taken, expected);
        });
    }

    /// FREE: a CPU that finds no decision is interrupted if one is made.
    #[test]
    fn free_cpu_hears_of_a_decision() {
        let cases: [(_, Decide); 2] = [
            ("a CPU becomes free while an agent decides", push_all),
            ("a CPU becomes free while an agent plans", plan),
        ];
        for (name, decide) in cases {
            explore(name, move || {
                let decisions = Arc::new(Decisions::default());
                let agent = start(&decisions, move |shared| {
                    assert_eq!(decide(shared, &[3]), [3]);
                    shared.are_awaited()
                });
                let cpu = start(&decisions, |shared| {
                    let finds = || shared.first().is_some();
                    finds() || shared.become_free() && finds()
                });
                let is_interrupted = agent.join().unwrap();
                assert!(cpu.join().unwrap() || is_interrupted);
            });
        }
    }

    /// DEKKER: an agent that waits hears of a message, and reads all that was written before.
    #[test]
    fn waiting_agent_hears_of_a_message() {
        explore("an agent waits while two CPUs tell it", || {
            let shared = Arc::new((Bell::default(), [Messages::default(), Messages::default()]));
            shared.1.iter().for_each(|ring| ring.set_length(2));
            let tells = [0, 1].map(|cpu| {
                start(&shared, move |(bell, rings)| {
                    assert!(rings[cpu].push([cpu as u64; 2]));
                    bell.ring()
                })
            });
            let read =
                |rings: &[Messages]| rings.iter().filter(|ring| ring.pop().is_some()).count();
            let agent = start(&shared, move |(bell, rings)| {
                bell.silence();
                (read(rings), bell.wait())
            });
            let is_interrupted = tells.map(|told| told.join().unwrap()).contains(&true);
            let (first, is_told) = agent.join().unwrap();
            assert!(first == 2 || is_told || is_interrupted);
            assert_eq!(first + read(&shared.1), 2);
        });
    }

    /// No message is lost that had room, and none comes twice.
    #[test]
    fn each_message_is_read_once() {
        explore("an agent reads while a CPU writes", || {
            let ring = Arc::new(Messages::default());
            ring.set_length(2);
            let cpu = start(&ring, |ring| {
                let has_room = |n: &u64| ring.push([*n, *n]);
                (1..5).filter(has_room).collect::<Vec<u64>>()
            });
            let agent = start(&ring, |ring| (0..2).filter_map(|_| ring.pop()).collect());
            let written = cpu.join().unwrap();
            let mut read: Vec<_> = agent.join().unwrap();
            while let Some(words) = ring.pop() {
                read.push(words);
            }
            let first: Vec<_> = read.iter().map(|words| words[0]).collect();
            assert_eq!(first, written);
            assert!(
                ring.push([6, 6]) && ring.push([7, 7]),
                "there is room again"
            );
            assert!(!ring.push([8, 8]), "there is none");
            assert!(read.iter().all(|words| words[0] == words[1]));
        });
    }

    /// The second agent may move the head back. Then a message may come again, but none is written over
    /// without a refusal.
    #[test]
    fn ring_of_two_agents_is_full_at_its_length() {
        explore("an agent reads beside the one that replaces it", || {
            let ring = Arc::new(Messages::default());
            ring.set_length(2);
            assert!(ring.push([1, 1]) && ring.push([2, 2]));
            let agents = [1, 2].map(|reads| {
                start(&ring, move |ring| {
                    (0..reads).filter_map(|_| ring.pop()).count()
                })
            });
            let cpu = start(&ring, |ring| (3..5).filter(|&n| ring.push([n, n])).count());
            let _read = agents.map(|agent| agent.join().unwrap());
            let meanwhile = cpu.join().unwrap();
            let later = (5..9).take_while(|&n| ring.push([n, n])).count();
            assert!(later <= 2, "{meanwhile} and {later} had room");
        });
    }

    /// SLOT: of two CPUs that want a ready task one gets it, with all that was written about it. A CPU that
    /// waits for the end of a flight is interrupted at that end.
    #[test]
    fn task_in_flight_is_taken_once_and_late() {
        explore("two CPUs want a task that is in flight", || {
            let in_flight = Status::new(1, State::InFlight, 0, 1);
            let shared = Arc::new((
                StatusWord::default(),
                UnsafeCell::new(0),
                AtomicBool::new(false),
            ));
            shared.0.set(in_flight);
            let wants = [1, 2].map(|cpu| {
                start(&shared, move |(word, stack, is_taken)| {
                    let mut status = word.get();
                    if status.state() == State::InFlight {
                        if word.await_landing(cpu, status) {
                            return true; // it waits
                        }
                        status = word.get();
                    }
                    if status.state() == State::Ready
                        && word.change(status, status.with(State::Running, cpu))
                    {
                        assert!(!is_taken.swap(true, AcqRel));
                        // SAFETY: this thread alone has claimed the task.
                        stack.with_mut(|at| unsafe { assert_eq!(*at, 7) });
                    }
                    false
                })
            });
            let flies = start(&shared, move |(word, stack, _)| {
                // SAFETY: the task is in flight here.
                stack.with_mut(|at| unsafe { *at = 7 });
                word.set(in_flight.with(State::Ready, 0));
                word.take_waiters()
            });
            let interrupted = flies.join().unwrap();
            for (cpu, waits) in [1, 2].into_iter().zip(wants) {
                let waits = waits.join().unwrap();
                assert!(!waits || interrupted >> cpu & 1 != 0, "CPU {cpu} waits");
            }
        });
    }
}
