//! [`Enclave`]: some CPUs and some tasks under one agent.

use core::fmt;
use core::ptr;
use core::sync::atomic::{Ordering::*, fence};

use sched_core::task::Task;
use sched_smp::Machine;

use crate::agent::Agent;
use crate::host::AgentPolicy;
use crate::message::{Kind, Kinds};
use crate::ring::MAX_MESSAGES;
use crate::status::TaskId;
use crate::table::{
    CpuWords, EnclaveWords, MAX_ENCLAVES, NO_CPU, NUMBER, Pinned, SystemTable, TableSource, phase,
    rerouted, route, urgent,
};
use crate::task::{AGENT, DEPARTS, DelegatedState};
use alloc::boxed::Box;

/// The reason why a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The number of messages in a ring is not within 1 to [`MAX_MESSAGES`].
    RingLength(usize),
    /// There are [`MAX_ENCLAVES`] enclaves. One that has ended counts as long as tasks are leaving it or a
    /// call on it works.
    NoEnclave,
    /// The set of CPUs is empty, or this CPU does not exist, has not joined or belongs to another
    /// enclave.
    Cpu(usize),
    /// [`MAX_TASKS`](crate::MAX_TASKS) tasks are delegated.
    NoSlot,
    /// The task is delegated already, or is an agent.
    Taken,
    /// The enclave has an agent, or this CPU has one of another enclave.
    HasAgent,
    /// The enclave has ended.
    Ended,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RingLength(n) => write!(f, "{n} messages in a ring: must be 1 to {MAX_MESSAGES}"),
            Self::NoEnclave => write!(f, "no enclave is free: at most {MAX_ENCLAVES} at a time"),
            Self::Cpu(cpu) => write!(f, "CPU {cpu}: must be connected and in no other enclave"),
            Self::NoSlot => write!(
                f,
                "at most {} tasks are delegated at a time",
                crate::MAX_TASKS
            ),
            Self::Taken => f.write_str("the task is delegated already, or is an agent"),
            Self::HasAgent => f.write_str("the enclave or the CPU has an agent already"),
            Self::Ended => f.write_str("the enclave has ended"),
        }
    }
}

impl core::error::Error for Refusal {}

/// The reason why an enclave has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum End {
    /// [`Enclave::end`] was called.
    Asked = 0,
    /// A task waited for longer than the watchdog allows.
    Watchdog = 1,
    /// The agent was dropped, or its task is dead.
    AgentLeft = 2,
}

/// The report about an enclave that has ended. Its text is one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Tells why it has ended.
    pub end: End,
    /// The task that waited longest, for the watchdog.
    pub task: TaskId,
    /// The time for which it had waited, in counts.
    pub waited: u64,
    /// The messages that the agent had not read.
    pub unread: usize,
    /// The time since a decision was followed, in counts.
    pub since_decision: u64,
    /// The enclave had an agent.
    pub had_agent: bool,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.end {
            End::Asked => f.write_str("the enclave was ended"),
            End::AgentLeft => f.write_str("the enclave has ended: its agent has ended"),
            End::Watchdog => write!(
                f,
                "the enclave has ended: task {:?} waited {} counts; {} left {} messages unread, and \
                 the last decision was followed {} counts before",
                self.task,
                self.waited,
                if self.had_agent {
                    "the agent"
                } else {
                    "no agent: it"
                },
                self.unread,
                self.since_decision
            ),
        }
    }
}

/// The settings of an enclave.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The number of messages that wait in the ring of each CPU, 1 to [`MAX_MESSAGES`].
    pub ring: usize,
    /// The longest time that a task may be ready without running, in counts; `None` turns the
    /// watchdog off.
    pub limit: Option<u64>,
    /// The messages that are sent.
    pub sends: Kinds,
    /// The messages that go before decisions and preempt delegated tasks.
    pub wakes: Kinds,
}

impl Settings {
    /// Returns the default: rings of 256 messages, a limit of 10 ticks, all messages but ticks, and
    /// none that wakes. So the agent runs when a CPU has nothing to do.
    ///
    /// `tick` is the length of a tick in counts of the CPU's counter.
    pub const fn new(tick: u64) -> Self {
        Self {
            ring: 256,
            limit: Some(10 * tick),
            sends: Kinds::ALL.without(Kind::TICK),
            wakes: Kinds::NONE,
        }
    }
}

/// A set of CPUs and of tasks under one agent. It is a handle, and may be copied.
pub struct Enclave<M: TableSource = SystemTable> {
    number: usize,
    generation: u32,
    table: core::marker::PhantomData<fn() -> M>,
}

impl<M: TableSource> Clone for Enclave<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: TableSource> Copy for Enclave<M> {}

impl<M: TableSource> Enclave<M> {
    /// Makes an enclave of these CPUs (bit mask). No CPU is in two enclaves.
    ///
    /// # Errors
    /// - [`Refusal::RingLength`]
    /// - [`Refusal::Cpu`]: a CPU joins at its first pick, so this may pass.
    /// - [`Refusal::NoEnclave`]
    pub fn new(cpus: u64, settings: Settings) -> Result<Self, Refusal> {
        if !(1..=MAX_MESSAGES).contains(&settings.ring) {
            return Err(Refusal::RingLength(settings.ring));
        }
        let table = M::table();
        let connected = M::smp_state().machine().map_or(1, |machine| machine.cpus);
        let is_in = |cpu: usize| cpus >> cpu & 1 != 0;
        for (cpu, words) in table.cpus.iter().enumerate() {
            let is_there = cpu < connected;
            let has_joined = is_there && words.has_joined.load(Acquire);
            let is_taken = is_in(cpu) && words.enclave().is_some();
            if is_there && !has_joined || is_in(cpu) && !is_there || is_taken || cpus == 0 {
                return Err(Refusal::Cpu(cpu));
            }
        }
        let may_begin = |enclave: &EnclaveWords| {
            let before = enclave.phase.load(Acquire);
            let is_empty = enclave.members.load(Acquire) == 0;
            let is_left = before == phase::UNUSED || before == phase::ENDED && is_empty;
            let phase = &enclave.phase;
            if !is_left || (phase.compare_exchange(before, phase::BEGUN, AcqRel, Relaxed)).is_err()
            {
                return false;
            }
            // Another enclave may have come and ended in between.
            let is_empty = enclave.members.load(SeqCst) == 0;
            if !is_empty {
                phase.store(before, Release);
            }
            is_empty
        };
        let number = table.enclaves.iter().position(may_begin);
        let number = number.ok_or(Refusal::NoEnclave)?;
        let enclave = &table.enclaves[number];
        for ring in &enclave.messages[..connected] {
            ring.set_length(settings.ring);
        }
        let generation = enclave.generation.fetch_add(1, AcqRel) + 1;
        enclave.cpus.store(cpus, Relaxed);
        enclave.agent_cpu.store(NO_CPU, Relaxed);
        enclave.agent.store(0, Relaxed);
        enclave.number.store(number as u32, Relaxed);
        enclave.has_rare.store(false, Relaxed);
        enclave.limit.store(settings.limit.unwrap_or(0), Relaxed);
        enclave.lost.store(false, Relaxed);
        enclave.dead.store(0, Relaxed);
        *enclave.fast.lock() = None;
        enclave.phase.store(phase::ACTIVE, Release);
        enclave
            .route
            .store(route(settings.sends, settings.wakes), Release);
        for (cpu, words) in table.cpus.iter().enumerate().filter(|(cpu, _)| is_in(*cpu)) {
            if !words.join(enclave) {
                end::<M>(enclave, End::Asked, TaskId::from_bits(0), [0; 2]);
                return Err(Refusal::Cpu(cpu)); // another call has taken it meanwhile
            }
            words.decisions.end_wait();
            kick::<M>(cpu);
        }
        Ok(Self {
            number,
            generation,
            table: core::marker::PhantomData,
        })
    }

    /// Returns its words, which become no other enclave's while they are pinned.
    fn words(&self) -> Result<Pinned, Refusal> {
        let words = Pinned::new(&M::table().enclaves[self.number]);
        // An enclave that is active is the last one with these words.
        let is_this = words.is_active() && words.generation.load(Acquire) == self.generation;
        is_this.then_some(words).ok_or(Refusal::Ended)
    }

    /// Delegates a task. It joins at its next put: when it yields, is preempted or woken. Then the
    /// agent is told [`Kind::NEW`].
    ///
    /// # Errors
    /// [`Refusal::Ended`], [`Refusal::Taken`], [`Refusal::NoSlot`]
    pub fn delegate<T>(&self, task: &Task<T, DelegatedState<M>>) -> Result<TaskId, Refusal> {
        let words = self.words()?;
        if !task.policy_state().link().is_null() {
            return Err(Refusal::Taken);
        }
        let table = M::table();
        words.members.fetch_add(1, AcqRel);
        let Some(slot) = table.take_slot(words.0) else {
            words.members.fetch_sub(1, AcqRel);
            return Err(Refusal::NoSlot);
        };
        let id = slot.task(slot.status());
        if !task.policy_state().enter(slot) {
            table.free_slot(slot);
            return Err(Refusal::Taken);
        }
        Ok(id)
    }

    /// Takes the calling task out of its enclave. It leaves at its next put, so the caller yields.
    pub fn depart<T>(task: &Task<T, DelegatedState<M>>) {
        let link = task.policy_state().link();
        if !link.is_null() && link.addr() & AGENT == 0 {
            // It may have left since, and have another slot.
            let marked = link.map_addr(|at| at | DEPARTS);
            task.policy_state().change_link(link, marked);
        }
    }

    /// Makes the calling task the agent, whose affinity has to be this CPU alone. It is the only agent
    /// there, and may serve several enclaves. The agent begins with [`Kind::REDISCOVER`].
    ///
    /// # Errors
    /// [`Refusal::Ended`], [`Refusal::HasAgent`], and [`Refusal::Taken`] for a delegated task
    pub fn attach<T>(
        &self,
        task: &Task<T, DelegatedState<M>>,
        cpu: usize,
    ) -> Result<Agent<M>, Refusal> {
        if self.words()?.agent.load(Acquire) != 0 {
            return Err(Refusal::HasAgent);
        }
        self.replace(task, cpu)
    }

    /// Makes the calling task the agent as [`attach`](Self::attach) does, in place of any agent that
    /// the enclave has. That one is told so by its next wait, check or decision.
    ///
    /// # Errors
    /// As [`attach`](Self::attach). [`Refusal::HasAgent`] means that the CPU has an agent of another
    /// enclave, or that the calling task is the agent already.
    pub fn replace<T>(
        &self,
        task: &Task<T, DelegatedState<M>>,
        cpu: usize,
    ) -> Result<Agent<M>, Refusal> {
        let words = self.words()?;
        let table = M::table();
        let here = table.cpus.get(cpu).ok_or(Refusal::Cpu(cpu))?;
        let (there, old) = (here.agent(), task.policy_state().link());
        let mask = words.mask();
        let is_own = there != 0 && there == old.addr();
        let is_replaced = here.serves.load(Acquire) & !mask == 0;
        if words.has_agent(old.addr()) || there != 0 && !is_own && !is_replaced {
            return Err(Refusal::HasAgent);
        }
        if !old.is_null() && old.addr() & AGENT == 0 {
            return Err(Refusal::Taken);
        }
        let link = match is_own {
            true => there,
            false => (table.agents.fetch_add(1, AcqRel) + 1) << 2 | AGENT,
        };
        let new = ptr::without_provenance_mut(link);
        if !task.policy_state().change_link(old, new) {
            return Err(Refusal::Taken); // another call has delegated it meanwhile
        }
        let before = words.agent_cpu.load(Acquire);
        if before != NO_CPU && before as usize != cpu {
            table.cpus[before as usize].stop_serving(&words);
        }
        here.attach(link);
        // A preemption since the change took it for an agent that was replaced.
        task.policy_state().change_link(ptr::null_mut(), new);
        here.serves.fetch_or(mask, AcqRel);
        let number = words.attached.fetch_add(1, AcqRel) as usize;
        let agent = link | number << NUMBER;
        words.agent.store(agent, Release);
        words.agent_cpu.store(cpu as u32, SeqCst);
        if before != NO_CPU {
            wake_replaced::<M>(before as usize);
        }
        fence(SeqCst); // an end that does not see this agent is seen here
        if !words.is_active() {
            withdraw(&words, here, link, agent);
        }
        Ok(Agent::new(words.0, agent, cpu))
    }

    /// Lets this policy decide on the fast path, within the scheduler, in place of an agent. `None`
    /// ends that. The policy is told of each ready task.
    ///
    /// It is called under a run queue's lock with interrupts off, so it may not allocate, log or wake.
    /// No two tasks call this for one enclave at the same time.
    ///
    /// # Errors
    /// [`Refusal::Ended`]
    pub fn set_fast_path(
        &self,
        policy: Option<Box<dyn AgentPolicy + Send>>,
    ) -> Result<Option<Box<dyn AgentPolicy + Send>>, Refusal> {
        let words = self.words()?;
        let reroute = |is_fast| {
            let route = |before| Some(rerouted(before, is_fast));
            _ = words.route.fetch_update(SeqCst, SeqCst, route);
        };
        reroute(false);
        let is_set = policy.is_some();
        let before = core::mem::replace(&mut *words.fast.lock(), policy);
        // The policy, or the agent, has to find the tasks.
        words.rediscover();
        if is_set {
            reroute(true);
            // Ready tasks may wait for a CPU that has nothing else to do.
            words.each_cpu().for_each(kick::<M>);
        } else {
            tell::<M>(&words, false);
        }
        Ok(before)
    }

    /// Ends the enclave. Its tasks go on under round robin.
    pub fn end(&self) {
        if let Ok(words) = self.words() {
            end::<M>(words.0, End::Asked, TaskId::from_bits(0), [0; 2]);
        }
    }

    /// Returns the report of its end, if it has ended.
    pub fn report(&self) -> Option<Report> {
        let words = &M::table().enclaves[self.number];
        let has_ended = words.generation.load(Acquire) == self.generation
            && words.phase.load(Acquire) == phase::ENDED;
        has_ended.then(|| Report {
            end: match words.ended_by.load(Relaxed) {
                0 => End::Asked,
                1 => End::Watchdog,
                _ => End::AgentLeft,
            },
            task: TaskId::from_bits(words.ended_task.load(Relaxed)),
            waited: words.ended_wait.load(Relaxed),
            unread: words.ended_unread.load(Relaxed) as usize,
            since_decision: words.ended_silence.load(Relaxed),
            had_agent: words.had_agent.load(Relaxed),
        })
    }
}

/// Lets the agent run that waits on this CPU, since it may have been replaced.
#[cold]
#[inline(never)]
fn wake_replaced<M: TableSource>(cpu: usize) {
    M::table().cpus[cpu].bell.ring();
    kick::<M>(cpu);
}

/// Takes an agent away from an enclave that has ended while it was attached. The agent's next check says
/// that the enclave has ended.
#[cold]
#[inline(never)]
fn withdraw(enclave: &EnclaveWords, here: &CpuWords, link: usize, agent: usize) {
    here.stop_serving(enclave);
    if here.serves.load(Acquire) == 0 {
        here.detach(link); // the end may have done so already
    }
    _ = (enclave.agent).compare_exchange(agent, 0, AcqRel, Relaxed);
}

/// Ends an enclave. Only the first call counts. The times are those of the watchdog's report.
pub fn end<M: TableSource>(
    enclave: &'static EnclaveWords,
    by: End,
    task: TaskId,
    [waited, silence]: [u64; 2],
) {
    let (table, _pinned) = (M::table(), Pinned::new(enclave));
    let ended = (enclave.phase).compare_exchange(phase::ACTIVE, phase::BEGUN, AcqRel, Relaxed);
    if ended.is_err() {
        return;
    }
    fence(SeqCst); // sees an agent that is being attached, or is seen
    let unread: usize = enclave.messages.iter().map(|ring| ring.len()).sum();
    let agent = enclave.agent.swap(0, AcqRel);
    enclave.ended_by.store(by as u32, Relaxed);
    enclave.ended_task.store(task.to_bits(), Relaxed);
    enclave.ended_wait.store(waited, Relaxed);
    enclave.ended_silence.store(silence, Relaxed);
    enclave.ended_unread.store(unread as u32, Relaxed);
    enclave.had_agent.store(agent != 0, Relaxed);
    enclave.phase.store(phase::ENDED, Release);
    enclave.route.store(0, Release);
    // A task that becomes ready now sees the end (`note_end`), or the CPUs that sweep see the task.
    fence(SeqCst);
    for (cpu, words) in table.cpus.iter().enumerate() {
        words.stop_serving(enclave);
        words.leave(enclave);
        if words.has_joined.load(Acquire) {
            words.urgent.fetch_or(urgent::SWEEP, SeqCst);
            kick::<M>(cpu);
        }
    }
    table.free_gone(enclave.dead.swap(0, AcqRel)); // no agent will read of them
}

/// Ends the enclaves whose agent had this link. Its task is dead.
pub fn agent_died<M: TableSource>(link: usize) {
    for enclave in &M::table().enclaves {
        let enclave = Pinned::new(enclave);
        if enclave.is_active() && enclave.has_agent(link) {
            end::<M>(enclave.0, End::AgentLeft, TaskId::from_bits(0), [0; 2]);
        }
    }
}

/// Tells the agent of an enclave that a message waits.
pub fn tell<M: TableSource>(enclave: &EnclaveWords, wakes: bool) {
    let cpu = enclave.agent_cpu.load(Acquire);
    if cpu == NO_CPU {
        return;
    }
    let words = &M::table().cpus[cpu as usize];
    if wakes {
        words.urgent.fetch_or(urgent::WOKEN, Relaxed);
    }
    if words.bell.ring() || wakes {
        kick::<M>(cpu as usize);
    }
}

/// Makes a CPU look at its words: at its next tick, or at once by an IPI if it is another one.
pub fn kick<M: TableSource>(cpu: usize) {
    match M::smp_state().machine() {
        Some(machine) if (machine.this_cpu)() != cpu => kick_other::<M>(machine, cpu),
        _ => M::table().cpus[cpu].attention.store(true, SeqCst),
    }
}

/// Makes another CPU than that of the caller look at its words at once.
#[inline(always)]
pub fn kick_other<M: TableSource>(machine: &Machine, cpu: usize) {
    if !M::table().cpus[cpu].kicked.swap(true, SeqCst) {
        (machine.interrupt)(cpu);
    }
}
