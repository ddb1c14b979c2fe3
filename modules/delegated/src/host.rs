//! [`AgentPolicy`]: a policy in ordinary code, and the loop that runs it in an agent's task.

use alloc::vec::Vec;

use crate::agent::{Agent, Commit, Refused, Stopped};
use crate::message::Message;
use crate::status::TaskId;
use crate::table::TableSource;

/// A policy that an agent's task runs ([`serve`]), or the scheduler itself
/// ([`set_fast_path`](crate::Enclave::set_fast_path)).
pub trait AgentPolicy {
    /// Is told what happened. After [`Kind::REDISCOVER`](crate::Kind::REDISCOVER) it forgets all tasks. A task
    /// for which [`is_ready`](crate::Kind::is_ready) is true waits for a decision from then on. On the fast
    /// path it must not allocate.
    fn told(&mut self, message: Message);

    /// Chooses the ready task that runs next on a CPU that has nothing to do, and forgets it.
    fn choose(&mut self, cpu: usize) -> Option<TaskId>;

    /// Returns true if the task of the enclave that runs on a CPU must give way to the one that is chosen
    /// next, or to none. An agent asks in each round about each CPU that has something to do. The fast
    /// path asks at a tick of that CPU.
    fn is_preempted(&mut self, _cpu: usize) -> bool {
        false
    }
}

/// Serves an enclave until it ends or the agent is replaced. `yield_now` yields the calling task.
/// Returns why it stopped.
pub fn serve<M: TableSource>(
    agent: &mut Agent<M>,
    policy: &mut impl AgentPolicy,
    yield_now: impl Fn(),
) -> Stopped {
    if agent.is_alone() {
        return serve_alone(agent, policy, yield_now);
    }
    loop {
        agent.read_each(|message| policy.told(message));
        decide(agent, policy);
        if let Err(stopped) = agent.wait(&yield_now) {
            return stopped;
        }
    }
}

/// Serves an enclave whose only CPU is that of the agent.
#[inline(always)]
fn serve_alone<M: TableSource>(
    agent: &mut Agent<M>,
    policy: &mut impl AgentPolicy,
    yield_now: impl Fn(),
) -> Stopped {
    let cpu = agent.cpu();
    loop {
        agent.read_each(|message| policy.told(message));
        if let Some(task) = policy.choose(cpu)
            && let Some(before) = agent.run_next(task)
        {
            recall(policy, before, cpu); // a message came first
        }
        if let Err(stopped) = agent.wait(&yield_now) {
            return stopped;
        }
    }
}

/// Makes the next decision for each CPU that has nothing to do, or that the policy preempts. A task that
/// a CPU may not run waits for another CPU, or for the next call.
#[inline(never)]
pub fn decide<M: TableSource>(agent: &Agent<M>, policy: &mut impl AgentPolicy) {
    let mut refused = Vec::new();
    let mut cpus = agent.cpus();
    while cpus != 0 {
        let cpu = cpus.trailing_zeros() as usize;
        cpus &= cpus - 1;
        while agent.has_no_decision(cpu) {
            let preempts = !agent.is_idle(cpu);
            if preempts && !policy.is_preempted(cpu) {
                break;
            }
            let Some(task) = policy.choose(cpu) else {
                if preempts {
                    let _ = agent.preempt(cpu); // it fails only if the agent has stopped
                }
                break;
            };
            let commit = Commit {
                preempts,
                ..Commit::new(task, cpu)
            };
            match agent.commit(commit) {
                Ok(_) | Err(Refused::Stopped) => break,
                Err(Refused::Full | Refused::Cpu) => refused.push(task),
                // A message about it is on the way.
                Err(Refused::NoTask | Refused::NotReady | Refused::Stale) => {}
            }
        }
        for task in refused.drain(..) {
            recall(policy, task, cpu);
        }
    }
}

/// Gives a task back to the policy, which waits for a decision again.
#[cold]
fn recall(policy: &mut impl AgentPolicy, task: TaskId, cpu: usize) {
    policy.told(Message::recalled(task, cpu));
}
