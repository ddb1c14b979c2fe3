//! First in, first out: the policy of this program, which others use as well.

#![no_std]
#![cfg(target_os = "none")]

use axsched_ext::delegated::{AgentPolicy, Kind, Message, TaskId, TaskQueue};

/// First in, first out.
#[derive(Default)]
pub struct Fifo {
    ready: TaskQueue,
}

impl AgentPolicy for Fifo {
    fn told(&mut self, message: Message) {
        match message.kind() {
            kind if kind.is_ready() => self.ready.push_back(message.task()),
            Kind::REDISCOVER => self.ready.clear(),
            _ => {}
        }
    }

    fn choose(&mut self, _: usize) -> Option<TaskId> {
        self.ready.pop_front()
    }
}
