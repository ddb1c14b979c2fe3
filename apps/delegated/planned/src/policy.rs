//! [`Planned`]: a policy that measures, and then follows a plan.
//!
//! A task is known by its place among the tasks that come. That works for a program that spawns the same tasks in each
//! round.

use alloc::{collections::BTreeSet, vec::Vec};

use axsched_ext::delegated::{AgentPolicy, Kind, MAX_TASKS, Message, TaskId};

/// The plan: the rank of each task, by its place. Without a plan the rank is the time at which the task became ready.
#[derive(Default)]
pub struct Planned {
    ranks: Option<Vec<u64>>,
    /// The ready tasks, by their ranks.
    ready: BTreeSet<(u64, TaskId)>,
    /// The place of each task, by its index.
    places: Vec<usize>,
    /// The work of each task, by its place, in counts.
    work: Vec<u64>,
    messages: u64,
}

impl Planned {
    /// Returns a policy that follows the plan made from what this one has measured.
    pub fn plan(self) -> Self {
        Self {
            ranks: Some(self.work),
            ..Self::default()
        }
    }
}

impl AgentPolicy for Planned {
    fn told(&mut self, message: Message) {
        let index = message.task().index();
        self.messages += 1;
        match message.kind() {
            Kind::REDISCOVER => return self.ready.clear(),
            Kind::NEW => {
                self.places.resize(MAX_TASKS, 0);
                self.places[index] = self.work.len();
                self.work.push(0);
            }
            _ => {}
        }
        let Some(place) = self.places.get(index).copied() else {
            return;
        };
        self.work[place] = self.work[place].max(message.run());
        if message.kind().is_ready() {
            let rank = self
                .ranks
                .as_ref()
                .and_then(|ranks| ranks.get(place).copied());
            self.ready
                .insert((rank.unwrap_or(self.messages), message.task()));
        }
    }

    fn choose(&mut self, _: usize) -> Option<TaskId> {
        self.ready.pop_first().map(|(_, task)| task)
    }
}
