//! [`Timeline`]s as a file for Perfetto.
//!
//! Each phase is a process, so that tasks of the same name in two phases are two threads. Perfetto
//! derives the state of a task without a CPU from the switches and wakings.

use std::io::{self, Write};

use prost::Message;

use super::{
    proto::{
        CounterDescriptor, FtraceEvent, FtraceEventBundle, Process, ProcessTree,
        SchedSwitchFtraceEvent, SchedWakingFtraceEvent, TYPE_COUNTER, ThreadOfTree, Trace,
        TracePacket, TrackDescriptor, TrackEvent,
    },
    timeline::{Left, State, Stay, ThreadKind, Timeline, Wake},
};

/// All packets come from one writer.
const WRITER: u32 = 1;

/// The first pid of a phase, and the distance to that of the next phase.
const PIDS: usize = 100_000;

/// The name of the idle thread in Linux; its pid is 0.
const IDLE: &str = "swapper";

/// The priority of an ordinary task in Linux, as no policy here has such priorities.
const PRIO: i32 = 120;

/// The largest number of events in a bundle, which is a packet.
const BUNDLE: usize = 1_000;

/// Linux's task states.
const READY: i64 = 0;
const SLEEPS: i64 = 1;
const DEAD: i64 = 16;

/// Writes the phases, each at the time since boot at which it was.
pub fn write(timelines: &[Timeline], out: &mut impl Write) -> io::Result<()> {
    for (number, timeline) in (1..).zip(timelines) {
        Phase { timeline, number }.write(out)?;
    }
    Ok(())
}

struct Phase<'a> {
    timeline: &'a Timeline,
    /// The place of the phase in the file, from 1.
    number: usize,
}

impl Phase<'_> {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        packet(
            out,
            TracePacket {
                process_tree: Some(self.process_tree()),
                ..TracePacket::default()
            },
        )?;
        for cpu in 0..self.timeline.cpus {
            let events = self.events(cpu);
            let last = events.len().div_ceil(BUNDLE);
            for (i, events) in (1..).zip(events.chunks(BUNDLE)) {
                packet(
                    out,
                    TracePacket {
                        ftrace_events: Some(FtraceEventBundle {
                            cpu: Some(cpu),
                            event: events.to_vec(),
                            lost_events: (self.timeline.lost > 0 && i == last).then_some(true),
                        }),
                        ..TracePacket::default()
                    },
                )?;
            }
        }
        self.write_counter(out)
    }

    fn pid(&self, thread: usize) -> i32 {
        match self.timeline.threads[thread].kind {
            ThreadKind::Idle => 0,
            _ => (self.number * PIDS + thread) as i32,
        }
    }

    fn comm(&self, thread: usize) -> String {
        match self.timeline.threads[thread].kind {
            ThreadKind::Idle => IDLE.to_owned(),
            _ => self.timeline.threads[thread].name.clone(),
        }
    }

    fn at(&self, ns: u64) -> Option<u64> {
        Some(self.timeline.start_ns + ns)
    }

    fn process_tree(&self) -> ProcessTree {
        let pid = Some((self.number * PIDS) as i32);
        let named = (0..self.timeline.threads.len()).filter(|&i| self.pid(i) != 0);
        ProcessTree {
            processes: vec![Process {
                pid,
                cmdline: vec![self.timeline.name.clone()],
            }],
            threads: named
                .map(|i| ThreadOfTree {
                    tid: Some(self.pid(i)),
                    name: Some(self.comm(i)),
                    tgid: pid,
                })
                .collect(),
        }
    }

    /// Returns a CPU's switches and wakings by time. At the same time a task is woken before it
    /// gets the CPU, and after it has left one.
    fn events(&self, cpu: u32) -> Vec<FtraceEvent> {
        let stays: Vec<&Stay> = (self.timeline.stays.iter())
            .filter(|s| s.cpu == cpu)
            .collect();
        let mut events = Vec::with_capacity(stays.len() + 1);
        let mut wakes = self
            .timeline
            .wakes
            .iter()
            .filter(|w| w.cpu == cpu)
            .peekable();
        let mut before: Option<&Stay> = None;
        for next in stays.iter().copied().map(Some).chain([None]) {
            let at_ns = next.map_or(self.timeline.end_ns, |stay| stay.from_ns);
            let leaves = |wake: &Wake| before.is_some_and(|before| before.thread == wake.thread);
            while let Some(wake) = wakes.next_if(|w| w.at_ns <= at_ns && !leaves(w)) {
                events.push(self.waking(wake));
            }
            events.push(self.switch(at_ns, before, next));
            before = next;
        }
        events
    }

    fn switch(&self, at_ns: u64, before: Option<&Stay>, next: Option<&Stay>) -> FtraceEvent {
        // Before the first stay and after the last no thread is known.
        let pid = |stay: Option<&Stay>| Some(stay.map_or(0, |stay| self.pid(stay.thread)));
        let comm =
            |stay: Option<&Stay>| Some(stay.map_or(IDLE.to_owned(), |stay| self.comm(stay.thread)));
        let state = before.map_or(READY, |before| {
            match (before.left, self.timeline.threads[before.thread].kind) {
                (Left::Blocked, _) | (Left::Unknown, ThreadKind::System) => SLEEPS,
                (Left::Ended, _) => DEAD,
                (Left::Yielded | Left::Preempted | Left::Unknown, _) => READY,
            }
        });
        FtraceEvent {
            timestamp: self.at(at_ns),
            pid: pid(before).map(i32::cast_unsigned),
            sched_switch: Some(SchedSwitchFtraceEvent {
                prev_comm: comm(before),
                prev_pid: pid(before),
                prev_prio: Some(PRIO),
                prev_state: Some(state),
                next_comm: comm(next),
                next_pid: pid(next),
                next_prio: Some(PRIO),
            }),
            sched_waking: None,
        }
    }

    fn waking(&self, wake: &Wake) -> FtraceEvent {
        FtraceEvent {
            timestamp: self.at(wake.at_ns),
            pid: Some(self.pid(wake.by).cast_unsigned()),
            sched_switch: None,
            sched_waking: Some(SchedWakingFtraceEvent {
                comm: Some(self.comm(wake.thread)),
                pid: Some(self.pid(wake.thread)),
                prio: Some(PRIO),
                success: Some(1),
                target_cpu: Some(wake.to as i32),
            }),
        }
    }

    /// Writes the number of tasks that are ready and have no CPU, each time that it changes.
    fn write_counter(&self, out: &mut impl Write) -> io::Result<()> {
        let track_uuid = Some(self.number as u64);
        packet(
            out,
            TracePacket {
                track_descriptor: Some(TrackDescriptor {
                    uuid: track_uuid,
                    name: Some(format!("ready tasks: {}", self.timeline.name)),
                    counter: Some(CounterDescriptor {
                        unit_name: Some("tasks".into()),
                    }),
                }),
                ..TracePacket::default()
            },
        )?;
        for (at_ns, ready) in ready_counts(self.timeline) {
            packet(
                out,
                TracePacket {
                    timestamp: self.at(at_ns),
                    track_event: Some(TrackEvent {
                        r#type: Some(TYPE_COUNTER),
                        track_uuid,
                        counter_value: Some(ready),
                    }),
                    ..TracePacket::default()
                },
            )?;
        }
        Ok(())
    }
}

/// Returns the number of tasks that are ready and have no CPU, at the start and each time that it
/// changes.
pub fn ready_counts(timeline: &Timeline) -> Vec<(u64, i64)> {
    let mut changes = Vec::new();
    for interval in timeline.states().iter().flatten() {
        if interval.state == State::Ready {
            changes.push((interval.from_ns, 1));
            changes.push((interval.to_ns, -1));
        }
    }
    changes.sort_unstable();
    let (mut counts, mut ready) = (vec![(0, 0)], 0);
    for of_moment in changes.chunk_by(|a, b| a.0 == b.0) {
        let change: i64 = of_moment.iter().map(|(_, change)| change).sum();
        ready += change;
        match counts.last_mut() {
            Some((at_ns, last)) if *at_ns == of_moment[0].0 => *last = ready,
            _ if change != 0 => counts.push((of_moment[0].0, ready)),
            _ => {}
        }
    }
    counts
}

/// Writes a message with one packet. Concatenated messages are one message with all packets.
fn packet(out: &mut impl Write, packet: TracePacket) -> io::Result<()> {
    let packet = TracePacket {
        trusted_packet_sequence_id: Some(WRITER),
        ..packet
    };
    out.write_all(
        &Trace {
            packet: vec![packet],
        }
        .encode_to_vec(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::timeline::tests::sample;

    fn events() -> Vec<String> {
        let mut bytes = Vec::new();
        write(&[sample()], &mut bytes).unwrap();
        let packets = Trace::decode(&*bytes).unwrap().packet;
        let bundles = packets
            .into_iter()
            .filter_map(|packet| packet.ftrace_events);
        let in_short = |event: FtraceEvent| {
            let at = event.timestamp.unwrap();
            match (event.sched_switch, event.sched_waking) {
                (Some(switch), None) => format!(
                    "{at} {} {} {}",
                    switch.prev_comm(),
                    switch.prev_state(),
                    switch.next_comm()
                ),
                (None, Some(waking)) => {
                    format!("{at} {} wakes {}", event.pid.unwrap(), waking.comm())
                }
                other => panic!("{other:?}"),
            }
        };
        bundles
            .flat_map(|bundle| bundle.event)
            .map(in_short)
            .collect()
    }

    #[test]
    fn a_timeline_is_switches_and_wakings() {
        assert_eq!(
            events(),
            [
                "1000 swapper 0 main",
                "1002 100000 wakes a",
                "1004 100000 wakes b",
                "1010 main 1 a",
                "1020 a 1 swapper",
                "1040 0 wakes a",
                "1050 swapper 0 a",
                "1055 a 0 b",
                "1070 b 16 a",
                "1080 a 16 swapper",
            ]
        );
    }

    #[test]
    fn the_counter_is_the_length_of_the_queue() {
        let expected = [(0, 0), (2, 1), (4, 2), (10, 1), (40, 2), (50, 1), (70, 0)];
        assert_eq!(ready_counts(&sample()), expected);
    }
}
