//! The parts that programs share to simulate their policies on the host. A time unit is a nanosecond,
//! and an instruction takes one.

use delegated::{
    Agent, AgentPolicy, DelegatedTask, Enclave, Settings, TaskId, ThreadTable, decide,
};
use sched_core::clock::{Clock, VirtualClock};
use sched_model::model::{self, Config, CpuMask, ModelTask, Op};
use sched_smp::ThreadSmpState;

/// The table of a simulation.
pub type Table = ThreadTable<ThreadSmpState>;

/// The time of a call into `axtask`. A yield under RR is a call and a switch, and takes 178 instructions
/// (docs/delegated.md, x86_64).
pub const CALL: u64 = 58;
const SWITCH: u64 = 178 - CALL;
/// The cost of following an agent's decision in a pick.
const FOLLOWS: u64 = 353 - 178;
/// The way of an interrupt to another CPU. From a decision until its task runs in place of another it takes
/// 871 there (docs/delegated.md).
const INTERRUPT: u64 = 871 - CALL - SWITCH - FOLLOWS;

/// Returns the machine of a simulation, in which an agent decides.
pub fn config(cpus: usize, tick: u64, on_call: fn(u32)) -> Config {
    Config {
        cpus,
        tick_period: tick,
        call_cost: CALL,
        switch_cost: SWITCH,
        pick_cost_by_load: vec![FOLLOWS],
        on_time: VirtualClock::set,
        on_call,
        stealing: true,
        interrupts: |_| [Some(INTERRUPT), None],
        time_limit: Some(u64::MAX / 2),
        is_checked: false,
        ..Config::default()
    }
}

/// Returns the virtual time.
pub fn now() -> u64 {
    VirtualClock::now().0
}

/// Returns the program of an agent on CPU 0: a call that attaches it, and rounds of a call and of
/// `round` time units for `length`.
pub fn agent(attaches: u32, decides: u32, round: u64, length: u64) -> Op {
    let times = length / (CALL + round);
    Op::spawn(
        "agent",
        [
            Op::Migrate(CpuMask::one(0)),
            Op::Call(attaches),
            Op::Call(decides),
            Op::Run(round),
            Op::Again { steps: 2, times },
        ],
    )
}

/// Calls `with` with the calling task of the model.
fn with_current<R>(with: impl FnOnce(usize, &DelegatedTask<ModelTask, Table>) -> R) -> R {
    let (cpu, task) = model::here().expect("a task calls");
    // SAFETY: the delegated scheduler runs, whose tasks have this type. The task is alive while it
    // calls.
    with(cpu, unsafe { &*task.cast() })
}

/// An enclave of a simulation under the delegated scheduler, and its agent. Its methods are for tasks of
/// the model.
pub struct Served<P> {
    enclave: Enclave<Table>,
    agent: Option<(Agent<Table>, P)>,
}

impl<P: AgentPolicy> Served<P> {
    /// Makes an enclave of these CPUs (bit mask), without a watchdog.
    ///
    /// # Panics
    /// If a CPU has not joined.
    pub fn new(cpus: u64, tick: u64) -> Self {
        let settings = Settings {
            limit: None,
            ..Settings::new(tick)
        };
        Self {
            enclave: Enclave::new(cpus, settings).expect("all CPUs have joined"),
            agent: None,
        }
    }

    /// Lets this policy decide on the fast path.
    ///
    /// # Panics
    /// If the enclave has ended.
    pub fn set_fast_path(&self, policy: P)
    where
        P: Send + 'static,
    {
        assert!(self.enclave.set_fast_path(Some(Box::new(policy))).is_ok());
    }

    /// Makes the calling task the agent, with this policy.
    ///
    /// # Panics
    /// If there is an agent.
    pub fn attach(&mut self, policy: P) {
        let agent = with_current(|cpu, task| self.enclave.attach(task, cpu));
        self.agent = Some((agent.expect("no other agent"), policy));
    }

    /// Reads all messages, and decides for all CPUs.
    pub fn decide(&mut self) {
        if let Some((agent, policy)) = &mut self.agent {
            while let Some(message) = agent.read() {
                policy.told(message);
            }
            decide(agent, policy);
        }
    }

    /// Delegates the calling task, which joins at its next yield.
    ///
    /// # Panics
    /// If it is refused.
    pub fn delegate(&self) -> TaskId {
        with_current(|_, task| self.enclave.delegate(task)).expect("a slot")
    }
}

/// The enclave ends.
impl<P> Drop for Served<P> {
    fn drop(&mut self) {
        self.enclave.end();
    }
}
