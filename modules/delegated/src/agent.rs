//! [`Agent`]: what the task that decides may do.

use alloc::{boxed::Box, vec, vec::Vec};
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::*;

use sched_smp::Machine;

use crate::decision::{Decision, NextTask};
use crate::enclave::{End, end, kick, kick_other, tell};
use crate::message::{Kind, Message};
use crate::ring::{Messages, Words};
use crate::status::{State, Status, TaskId};
use crate::table::{CpuWords, EnclaveWords, MAX_TASKS, Pinned, SystemTable, TableSource};

/// The agent ended or was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The enclave has ended. [`Enclave::report`](crate::Enclave::report) says why.
    Ended,
    /// Another agent has taken its place.
    Replaced,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "the enclave has ended",
            Self::Replaced => "another agent has taken the place of this one",
        })
    }
}

impl core::error::Error for Stopped {}

/// The reason why a decision is refused at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The enclave has ended, or the agent was replaced.
    Stopped,
    /// No task of this enclave has this identity: it is dead, has departed or belongs to another.
    NoTask,
    /// The task is not ready.
    NotReady,
    /// The task has another sequence number, so the agent has messages to read.
    Stale,
    /// The CPU is not in the enclave, or may not run the task now ([`Agent::may_run`]).
    Cpu,
    /// [`MAX_DECISIONS`](crate::MAX_DECISIONS) decisions wait for the CPU.
    Full,
}

/// A decision: run this task on this CPU.
#[derive(Clone, Copy, Debug)]
pub struct Commit {
    /// Names the task.
    pub task: TaskId,
    /// Names the CPU.
    pub cpu: usize,
    /// The sequence number that the task must have; `None` for any.
    pub seq: Option<u32>,
    /// The CPU refuses it if the agent has been told of something that wakes it, and tells the agent
    /// [`Kind::RECALLED`].
    pub unless_told: bool,
    /// It preempts the delegated task that runs on the CPU. Another CPU gets an IPI; the agent's own
    /// CPU is about to pick anyway.
    pub preempts: bool,
}

impl Commit {
    /// Returns the decision to run a task on a CPU when that CPU picks next.
    pub const fn new(task: TaskId, cpu: usize) -> Self {
        Self {
            task,
            cpu,
            seq: None,
            unless_told: false,
            preempts: false,
        }
    }
}

/// A decision that waits, for [`Agent::withdraw`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    cpu: usize,
    position: u32,
    decision: u64,
}

/// The agent of an enclave. If it is dropped, the enclave ends, unless another agent has taken its
/// place.
pub struct Agent<M: TableSource = SystemTable> {
    enclave: &'static EnclaveWords,
    /// The value of the enclave's `agent` while this one decides.
    name: usize,
    cpu: usize,
    /// The words of its CPU, and the messages from there.
    own: &'static CpuWords,
    /// The messages that are read as they are. It is `None` while all are [filtered](Self::read_filtered),
    /// because several CPUs send some, or some may have been overtaken.
    ring: Option<&'static Messages>,
    /// Its CPU is the only one of the enclave.
    is_alone: bool,
    /// The machine, if several CPUs are connected.
    machine: Option<&'static Machine>,
    /// The CPU whose messages are read next.
    reads: usize,
    /// 1 more than the next task that is gone.
    gone: u32,
    /// The slot at which the search for ready tasks goes on; `None` if none goes on.
    finds: Option<usize>,
    /// The last status word of each task of which the agent was told.
    known: Box<[Status; MAX_TASKS]>,
    /// The CPUs that have refused each task since it became ready (bit mask).
    refused_by: Box<[u64; MAX_TASKS]>,
    table: PhantomData<fn() -> M>,
}

/// Returns this value for each task. No array of them is on the stack.
pub(crate) fn of_each_task<A: Copy>(value: A) -> Box<[A; MAX_TASKS]> {
    let all = vec![value; MAX_TASKS].try_into();
    all.unwrap_or_else(|_| unreachable!("it has this length"))
}

impl<M: TableSource> Agent<M> {
    pub(crate) fn new(enclave: &'static EnclaveWords, name: usize, cpu: usize) -> Self {
        // Messages that wait come first. This one voids them.
        enclave.rediscover();
        Self {
            enclave,
            name,
            cpu,
            own: &M::table().cpus[cpu],
            ring: None,
            is_alone: enclave.cpus.load(Relaxed) == 1 << cpu,
            machine: M::smp_state().machine(),
            reads: 0,
            gone: 0,
            finds: None,
            known: of_each_task(Status(0)),
            refused_by: of_each_task(0),
            table: PhantomData,
        }
    }

    #[inline(always)]
    fn cpu_words(&self, cpu: usize) -> &'static CpuWords {
        &M::table().cpus[cpu]
    }

    /// Returns the CPU of the agent.
    pub const fn cpu(&self) -> usize {
        self.cpu
    }

    /// Returns the CPUs of the enclave (bit mask).
    pub fn cpus(&self) -> u64 {
        self.enclave.cpus.load(Relaxed)
    }

    /// Checks that the agent still decides.
    ///
    /// # Errors
    /// [`Stopped`]
    #[inline(always)]
    pub fn check(&self) -> Result<(), Stopped> {
        match self.enclave.agent.load(Relaxed) == self.name {
            true => Ok(()),
            false => Err(self.why_stopped()),
        }
    }

    #[cold]
    fn why_stopped(&self) -> Stopped {
        match self.enclave.is_active() {
            true => Stopped::Replaced,
            false => Stopped::Ended,
        }
    }

    /// Takes the next message. Messages of one task come in the order of their sequence numbers, and
    /// those that a later one has overtaken are left out.
    #[inline(always)]
    pub fn read(&mut self) -> Option<Message> {
        if let Some(ring) = self.ring {
            if let Some(words) = ring.pop() {
                return Some(Message::from_words(words));
            }
            if !self.enclave.has_rare.load(Acquire) {
                return None;
            }
        }
        // No message has two words that are 0. They fit into registers, and an `Option` does not.
        match self.read_filtered() {
            [0, 0] => None,
            words => Some(Message::from_words(words)),
        }
    }

    /// Takes the messages that wait, as [`read`](Self::read) does, and tells each.
    #[inline(always)]
    pub(crate) fn read_each(&mut self, mut told: impl FnMut(Message)) {
        if let Some(ring) = self.ring {
            ring.pop_each(|words| told(Message::from_words(words)));
            if !self.enclave.has_rare.load(Acquire) {
                return;
            }
        }
        self.read_each_filtered(&mut told);
    }

    #[cold]
    #[inline(never)]
    fn read_each_filtered(&mut self, told: &mut impl FnMut(Message)) {
        loop {
            match self.read_filtered() {
                [0, 0] => return,
                words => told(Message::from_words(words)),
            }
        }
    }

    /// Takes the next message if several CPUs send some, or if some may have been overtaken. Returns zeros
    /// if there is none.
    #[inline(never)]
    fn read_filtered(&mut self) -> Words {
        let words = self.find_or_pop().or_else(|| self.read_rare());
        match words {
            Some(words) if self.check().is_ok() => words,
            Some(_) => {
                self.leave_to_next();
                [0; 2]
            }
            None => [0; 2],
        }
    }

    /// Makes the next agent find all tasks, because this one has read messages since it was replaced.
    #[cold]
    #[inline(never)]
    fn leave_to_next(&self) {
        self.enclave.rediscover();
        tell::<M>(self.enclave, false);
    }

    /// Takes the next task that is found, or the next message that was not overtaken.
    fn find_or_pop(&mut self) -> Option<Words> {
        if self.finds.is_some()
            && let Some(found) = self.find_next()
        {
            return Some(found);
        }
        let cpus = self.machine.map_or(1, |machine| machine.cpus);
        let mut empty = 0;
        while empty < cpus {
            let Some(words) = self.enclave.messages[self.reads].pop() else {
                self.reads = (self.reads + 1) % cpus;
                empty += 1;
                continue;
            };
            let message = Message::from_words(words);
            let (index, generation) = (message.task().index(), message.task().generation());
            if !M::table().slots[index].status().is_of(message.task()) {
                continue; // its slot has another task by now
            }
            let known = &mut self.known[index];
            let is_overtaken = match message.kind() {
                Kind::TICK => (message.seq().wrapping_sub(known.seq()) as i32) < 0,
                _ => message.seq().wrapping_sub(known.seq()) as i32 <= 0,
            };
            if generation == known.generation() && is_overtaken {
                continue;
            }
            *known = Status::new(generation, State::Free, 0, message.seq());
            self.note_refusal(message);
            return Some(words);
        }
        None
    }

    /// Keeps the CPUs that have refused a task since it became ready.
    fn note_refusal(&mut self, message: Message) {
        let refused_by = &mut self.refused_by[message.task().index()];
        if message.kind() == Kind::AFFINITY {
            *refused_by |= 1 << message.cpu();
            if self.enclave.cpus.load(Relaxed) & !*refused_by == 0 {
                *refused_by = 1 << message.cpu(); // its affinity has changed meanwhile
            }
        } else if message.kind() != Kind::RECALLED {
            *refused_by = 0;
        }
    }

    /// Returns a task that is gone, or begins to rediscover the tasks.
    fn read_rare(&mut self) -> Option<Words> {
        let words = self.enclave;
        words.has_rare.swap(false, AcqRel);
        if self.gone == 0 && words.dead.load(Relaxed) != 0 {
            self.gone = words.dead.swap(0, AcqRel);
        }
        if let Some(index) = (self.gone as usize).checked_sub(1) {
            words.has_rare.swap(true, Relaxed); // look again
            let slot = &M::table().slots[index];
            self.gone = slot.next_dead.load(Relaxed);
            let farewell = slot.farewell();
            // A message that another CPU has written meanwhile comes too late.
            self.known[index] = slot.status();
            M::table().free_slot(slot);
            return Some(farewell);
        }
        if !words.lost.swap(false, SeqCst) {
            if self.machine.is_none() {
                self.ring = Some(&words.messages[self.cpu]);
            }
            return None;
        }
        self.ring = None;
        self.finds = Some(0);
        Some(Message::rediscover(self.cpu))
    }

    /// Finds the next ready task of the enclave.
    fn find_next(&mut self) -> Option<Words> {
        let slots = M::table().used_slots();
        let mut next = self.finds?;
        while let Some(slot) = slots.get(next) {
            let index = next;
            next += 1;
            let status = slot.status();
            if status.is_ready() && slot.is_in(self.enclave) {
                self.finds = Some(next);
                self.known[index] = status;
                self.refused_by[index] = 0;
                return Some(slot.words(Kind::FOUND, status));
            }
        }
        self.finds = None;
        None
    }

    /// Returns the status of a task of the enclave.
    #[inline]
    pub fn status(&self, task: TaskId) -> Option<Status> {
        let slot = &M::table().slots[task.index()];
        let status = slot.status();
        (status.is_of(task) && slot.is_in(self.enclave)).then_some(status)
    }

    /// Returns true if a CPU of the enclave may run a ready task, as far as is known. A task that was
    /// preempted has to stay on its CPU on riscv64. A CPU may also have refused the task for its affinity
    /// since it became ready. [`commit`](Self::commit) refuses such a decision.
    #[inline]
    pub fn may_run(&self, task: TaskId, cpu: usize) -> bool {
        let may_run = |status| self.may_run_at(task, status, cpu);
        self.has_cpu(cpu) && self.status(task).is_some_and(may_run)
    }

    /// Returns true if a CPU may run the task, which has this status.
    #[inline(always)]
    fn may_run_at(&self, task: TaskId, status: Status, cpu: usize) -> bool {
        match status.state() {
            State::Stays => status.cpu() == cpu,
            _ => self.refused_by[task.index()] >> cpu & 1 == 0,
        }
    }

    /// Returns true if a CPU of the enclave waits for a decision and has none.
    #[inline]
    pub fn is_free(&self, cpu: usize) -> bool {
        let words = self.cpu_words(cpu);
        if self.is_alone && cpu == self.cpu {
            return words.decisions.has_none();
        }
        self.has_cpu(cpu) && self.is_idle(cpu) && words.decisions.has_none()
    }

    /// Returns true if a CPU belongs to the enclave.
    #[inline(always)]
    fn has_cpu(&self, cpu: usize) -> bool {
        cpu < 64 && self.cpus() >> cpu & 1 != 0
    }

    /// Returns true if a CPU of the enclave runs none of its tasks. The agent's own CPU runs the agent.
    #[inline(always)]
    pub(crate) fn is_idle(&self, cpu: usize) -> bool {
        cpu == self.cpu || self.cpu_words(cpu).decisions.is_free()
    }

    /// Returns true if no decision waits for a CPU.
    #[inline(always)]
    pub(crate) fn has_no_decision(&self, cpu: usize) -> bool {
        self.cpu_words(cpu).decisions.has_none()
    }

    #[inline(always)]
    fn examine(&self, commit: &Commit) -> Result<u64, Refused> {
        self.check().map_err(|_| Refused::Stopped)?;
        let status = self.status(commit.task).ok_or(Refused::NoTask)?;
        if !status.is_ready() {
            return Err(Refused::NotReady);
        }
        if commit.seq.is_some_and(|seq| seq != status.seq()) {
            return Err(Refused::Stale);
        }
        if !self.has_cpu(commit.cpu) {
            return Err(Refused::Cpu);
        }
        if !self.is_alone && !self.may_run_at(commit.task, status, commit.cpu) {
            return Err(Refused::Cpu);
        }
        let mut flags = 0;
        if commit.unless_told {
            flags |= Decision::UNLESS_TOLD;
        }
        if commit.preempts {
            flags |= Decision::PREEMPTS;
        }
        Ok(Decision::new(commit.task, status.seq(), flags).0)
    }

    #[inline(always)]
    fn push(&self, cpu: usize, decision: u64) -> Result<Ticket, Refused> {
        let position = self.cpu_words(cpu).decisions.push(decision);
        let position = position.ok_or(Refused::Full)?;
        Ok(Ticket {
            cpu,
            position,
            decision,
        })
    }

    /// Interrupts a CPU that has a decision, if it must look at once.
    #[inline(always)]
    fn notify(&self, cpu: usize, preempts: bool) {
        if cpu != self.cpu
            && let Some(machine) = self.machine
            && (preempts || self.cpu_words(cpu).decisions.are_awaited())
        {
            kick_other::<M>(machine, cpu);
        }
    }

    /// Decides that a ready task runs on a CPU of the enclave, after the decisions that wait there.
    /// On the agent's own CPU that is when the agent waits. A CPU checks the decision again when it
    /// follows it.
    ///
    /// # Errors
    /// [`Refused`]. After [`Refused::Full`] and [`Refused::Cpu`] the task still waits for a decision.
    #[inline(always)]
    pub fn commit(&self, commit: Commit) -> Result<Ticket, Refused> {
        let ticket = self.push(commit.cpu, self.examine(&commit)?)?;
        self.notify(commit.cpu, commit.preempts);
        Ok(ticket)
    }

    /// Runs a task on the agent's own CPU when the agent waits, before all decisions that wait there.
    /// If the task is not ready then, or is none of this enclave, the agent runs again.
    ///
    /// Returns the task of the call before, if it has not run since. This one takes its place.
    #[inline(always)]
    #[must_use = "a task that is returned waits for a decision again"]
    pub fn run_next(&self, task: TaskId) -> Option<TaskId> {
        match self.own.next.swap(NextTask::of(task).0, AcqRel) {
            0 => None,
            before => self.taken(NextTask(before)),
        }
    }

    /// Returns the task whose place [`run_next`](Self::run_next) has taken. If that was a decision of the next
    /// agent, it stands.
    #[cold]
    #[inline(never)]
    fn taken(&self, before: NextTask) -> Option<TaskId> {
        if self.check().is_err() {
            self.own.next.store(before.0, Release);
            return None;
        }
        before.task()
    }

    /// Returns true if the agent's CPU is the only one of the enclave.
    #[inline(always)]
    pub const fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Commits a group: all decisions, or none if one is refused. The CPUs are told when all have
    /// been made.
    ///
    /// # Errors
    /// The index of the first decision that was refused, and why.
    pub fn commit_all(&self, group: &[Commit]) -> Result<(), (usize, Refused)> {
        let mut decisions = Vec::with_capacity(group.len());
        for (at, commit) in group.iter().enumerate() {
            decisions.push(self.examine(commit).map_err(|refused| (at, refused))?);
            if group[..at].iter().any(|other| other.task == commit.task) {
                return Err((at, Refused::NotReady));
            }
        }
        let mut tickets = Vec::with_capacity(group.len());
        for (at, (commit, decision)) in group.iter().zip(decisions).enumerate() {
            match self.push(commit.cpu, decision) {
                Ok(ticket) => tickets.push(ticket),
                Err(refused) => {
                    // A CPU may have followed some: the group was for tasks that all were ready.
                    for ticket in tickets {
                        self.withdraw(ticket);
                    }
                    return Err((at, refused));
                }
            }
        }
        for commit in group {
            self.notify(commit.cpu, commit.preempts);
        }
        Ok(())
    }

    /// Adds decisions to a CPU that it follows without the agent. A task may stand in a plan several
    /// times. A decision whose task is not ready when its turn comes is left out. Returns the number
    /// of decisions that were added.
    pub fn plan(&self, cpu: usize, tasks: &[TaskId]) -> usize {
        if self.check().is_err() || !self.has_cpu(cpu) {
            return 0;
        }
        let decisions = &self.cpu_words(cpu).decisions;
        let added = decisions.push_all(tasks, |task| Decision::any(task).0);
        if added > 0 {
            self.notify(cpu, false);
        }
        added
    }

    /// Preempts the task of the enclave that runs on another CPU, without another in its place.
    ///
    /// # Errors
    /// [`Refused::Stopped`], [`Refused::Cpu`], [`Refused::Full`]
    pub fn preempt(&self, cpu: usize) -> Result<(), Refused> {
        self.check().map_err(|_| Refused::Stopped)?;
        if !self.has_cpu(cpu) {
            return Err(Refused::Cpu);
        }
        // A decision about no task is refused after it has preempted.
        let none = Decision::new(TaskId::from_bits(0), 0, Decision::PREEMPTS);
        self.push(cpu, none.0)?;
        kick::<M>(cpu);
        Ok(())
    }

    /// Withdraws a decision. Returns false if the CPU has taken it already.
    pub fn withdraw(&self, ticket: Ticket) -> bool {
        let decisions = &self.cpu_words(ticket.cpu).decisions;
        decisions.withdraw(ticket.position, ticket.decision)
    }

    /// Waits until there is a message. `yield_now` is a yield of the calling task, whose CPU is
    /// [`cpu`](Self::cpu). It may return without a message.
    ///
    /// # Errors
    /// [`Stopped`]
    #[inline(always)]
    pub fn wait(&self, yield_now: impl FnOnce()) -> Result<(), Stopped> {
        yield_now();
        self.check()
    }
}

impl<M: TableSource> Drop for Agent<M> {
    fn drop(&mut self) {
        M::table().free_gone(self.gone);
        let enclave = Pinned::new(self.enclave);
        match self.check() {
            Ok(()) => end::<M>(enclave.0, End::AgentLeft, TaskId::from_bits(0), [0; 2]),
            Err(Stopped::Replaced) => self.leave_to_next(),
            Err(Stopped::Ended) => {}
        }
    }
}
