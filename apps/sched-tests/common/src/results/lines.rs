//! From figures to the result lines.

use alloc::string::ToString;
use core::mem;

use axsched_ext::pbg::{self, Status};
use sched_tests_results::{
    COUNTED, Context, CostLine, Divergence, Followed, PbgLine, PhaseLines, Refused, RunLine,
    TaskLine, TickPhase, TraceLine, events::EventsLine,
};

use super::phase::{Phase, Setting, TaskResult};

/// Returns the lines of a phase and of its tasks.
pub fn phase_lines(setting: &Setting, phase: &Phase) -> PhaseLines {
    let tasks = phase.tasks.iter();
    PhaseLines {
        run: run_line(setting, phase),
        tasks: tasks.map(|task| task_line(setting, phase, task)).collect(),
    }
}

fn task_line(setting: &Setting, phase: &Phase, task: &TaskResult) -> TaskLine {
    TaskLine {
        context: context(setting, phase.name),
        task: task.name.clone(),
        submit_ns: task.submit_ns,
        first_run_ns: task.first_run_ns,
        finish_ns: task.finish_ns,
        turnaround_ns: task.turnaround_ns(),
        run_ns: task.run_ns,
        dispatches: task.dispatches,
        yields: task.yields,
        groups: task.groups,
        run_in_window_ns: task.run_in_window_ns,
        wrong: !task.ok,
    }
}

/// Returns a line for each task of a phase that was traced.
pub fn trace_lines(setting: &Setting, phase: &Phase) -> impl Iterator<Item = TraceLine> {
    phase.tasks.iter().filter_map(move |task| {
        let timeline = task.timeline.as_ref()?;
        Some(TraceLine {
            context: context(setting, phase.name),
            task: task.name.clone(),
            bin_ns: timeline.bin_ns,
            run_ns: timeline.run_ns.clone(),
            blocked_ns: timeline.blocked_ns.clone(),
        })
    })
}

/// Prints the lines with the events of a phase, if they were kept. The phase has no events
/// afterwards.
pub fn event_lines(setting: &Setting, phase: &mut Phase, mut print: impl FnMut(EventsLine)) {
    for mut log in mem::take(&mut phase.events).take() {
        log.head.context = context(setting, phase.name);
        log.lines().for_each(&mut print);
    }
}

fn run_line(setting: &Setting, phase: &Phase) -> RunLine {
    let account = phase.account;
    RunLine {
        context: context(setting, phase.name),
        timing: setting.timing.into(),
        scale: setting.scale,
        tasks: phase.tasks.len(),
        avg_turnaround_ns: phase.avg_turnaround_ns(),
        max_turnaround_ns: phase.max_turnaround_ns(),
        makespan_ns: phase.makespan_ns(),
        context_switches: phase.context_switches,
        srpt_bound_ns: phase.srpt_bound_ns(setting.smp),
        jain: phase.jain(),
        ns_per_yield: phase.ns_per_yield(setting),
        tick_phase: phase.tick_phase.map(tick_phase),
        tasks_run_ns: account.map(|account| account.tasks_run_ns),
        main_run_ns: account.map(|account| account.main_run_ns),
        gc_run_ns: account.map(|account| account.gc_run_ns),
        rest_run_ns: account.map(|account| account.rest_run_ns),
        idle_ns: account.map(|account| account.idle_ns),
        holds_handles: phase.holds_handles,
        traced: phase.tasks.iter().any(|task| task.timeline.is_some()),
        pass: phase.pass,
    }
}

/// Returns the line of the cost of a yield among `tasks` tasks that do nothing else. Under counted time a nanosecond is an instruction, and the key says so.
pub fn cost_line(setting: &Setting, phase: &str, tasks: usize, ns_per_yield: f64) -> CostLine {
    // `core` has no `round`; a cost is never negative.
    let cost = (ns_per_yield * 10.0 + 0.5) as u64 as f64 / 10.0;
    let is_counted = setting.timing == COUNTED;
    CostLine {
        context: context(setting, phase),
        timing: setting.timing.into(),
        scale: setting.scale,
        tasks,
        instructions_per_yield: is_counted.then_some(cost),
        ns_per_yield: (!is_counted).then_some(cost),
    }
}

/// Returns the line of a profile from there that was refused.
pub fn refused_line(setting: &Setting, from: &str, why: &str) -> PbgLine {
    PbgLine::Refused(Refused {
        app: setting.app.into(),
        arch: setting.arch.into(),
        from: from.into(),
        refused: why.into(),
    })
}

/// Returns the line of a replay that has ended, of a profile from there. The averages are turnarounds:
/// of the measured run, and of the replay.
pub fn followed_line(
    setting: &Setting,
    from: &str,
    status: &Status,
    measured_ns: u64,
    replayed_ns: u64,
) -> Followed {
    Followed {
        app: setting.app.into(),
        arch: setting.arch.into(),
        from: from.into(),
        planned: status.planned,
        matched: status.matched,
        missing: status.missing(),
        unplanned: status.unplanned,
        diverged: status.diverged(),
        demoted: status.demoted,
        dropped: status.dropped,
        turns: status.turns,
        late: status.late,
        behind: status.behind,
        turnaround_permille: status.turnaround_permille,
        first: status.first.map(|first| Divergence {
            why: first.cause.name().into(),
            task: first.task.to_string(),
            expected: first.expected,
            found: first.found,
        }),
        measured_avg_turnaround_ns: measured_ns,
        slower: is_slower(measured_ns, replayed_ns),
    }
}

/// Returns true if the average turnaround is longer by more than the share by which PBG judges itself.
fn is_slower(measured_ns: u64, replayed_ns: u64) -> bool {
    let by = u128::from(pbg::BEHIND_FRACTION);
    u128::from(replayed_ns) * by > u128::from(measured_ns) * (by + 1)
}

/// Returns the keys that every line of a phase begins with.
pub fn context(setting: &Setting, phase: &str) -> Context {
    Context {
        app: setting.app.into(),
        arch: setting.arch.into(),
        smp: u32::try_from(setting.smp).unwrap_or(u32::MAX),
        sched: setting.sched.into(),
        phase: phase.into(),
    }
}

/// A tick phase is below 1,000, as an image has three digits for it.
fn tick_phase(thousandths: u64) -> TickPhase {
    let phase = u16::try_from(thousandths).map(TickPhase::try_from);
    phase
        .ok()
        .and_then(Result::ok)
        .expect("a tick phase of three digits")
}

#[cfg(test)]
mod tests {
    use alloc::{format, vec::Vec};

    use axsched_ext::units::TaskKey;

    use super::*;
    use crate::{
        results::{
            Account, Question, ResultLine,
            phase::tests::{SETTING, phase},
        },
        trace::Timeline,
    };

    #[test]
    fn pbg_lines_have_the_keys_of_a_status() {
        let head = r#"SCHED-PBG {"app":"realtime","arch":"x86_64","from":"disk","#;
        let first = pbg::Divergence {
            cause: pbg::Cause::Run,
            task: TaskKey::ROOT.child(0),
            expected: 10,
            found: 21,
        };
        for (replayed_ns, slower, first) in [(1_050, false, None), (1_051, true, Some(first))] {
            let status = Status {
                first,
                ..Status::default()
            };
            let text = status.to_string();
            let keys = text.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
            let own = format!(r#","measured_avg_turnaround_ns":1000,"slower":{slower}}}"#);
            let line = followed_line(&SETTING, "disk", &status, 1_000, replayed_ns);
            let line = PbgLine::Followed(line).to_line();
            assert_eq!(line, format!("{head}{keys}{own}"));
        }
        assert_eq!(
            refused_line(&SETTING, "disk", "found `a\"b`").to_line(),
            r#"SCHED-PBG {"app":"realtime","arch":"x86_64","from":"disk","refused":"found `a\"b`"}"#
        );
    }

    #[test]
    fn task_lines_are_as_documented() {
        let phase = phase();
        assert_eq!(
            task_line(&SETTING, &phase, &phase.tasks[1]).to_line(),
            r#"SCHED-TASK {"app":"realtime","arch":"x86_64","smp":1,"sched":"pbg","phase":"replay","task":"short1","submit_ns":10,"first_run_ns":10,"finish_ns":1000,"turnaround_ns":990,"run_ns":500,"dispatches":2,"yields":7}"#
        );
    }

    #[test]
    fn run_lines_are_as_documented() {
        // The bound: short1 runs from 10 to 510, long is done at 2500.
        assert_eq!(
            run_line(&SETTING, &phase()).to_line(),
            r#"SCHED-RUN {"app":"realtime","arch":"x86_64","smp":1,"sched":"pbg","phase":"replay","timing":"icount","scale":1,"tasks":2,"avg_turnaround_ns":1995,"max_turnaround_ns":3000,"makespan_ns":3000,"context_switches":9,"srpt_bound_ns":1500,"jain":0.8,"pass":true}"#
        );
    }

    #[test]
    fn the_account_stands_in_the_run_line() {
        let mut phase = phase();
        phase.tick_phase = Some(125);
        phase.holds_handles = true;
        phase.account = Some(Account {
            tasks_run_ns: 2_500,
            main_run_ns: 1,
            gc_run_ns: 2,
            rest_run_ns: 3,
            idle_ns: 494,
            makespan_ns: 3_000,
            cpus: 1,
            is_counted: true,
        });
        let line = run_line(&SETTING, &phase).to_line();
        let end = r#","tick_phase":125,"tasks_run_ns":2500,"main_run_ns":1,"gc_run_ns":2,"rest_run_ns":3,"idle_ns":494,"holds_handles":true,"pass":true}"#;
        assert!(line.ends_with(end), "{line}");
    }

    #[test]
    fn the_price_of_a_yield_stands_in_the_run_line() {
        let mut phase = phase();
        phase.question = Question::YieldCost { rounds: 10 };
        phase.tasks[0].finish_ns = 1_000_000;
        let price = phase.ns_per_yield(&SETTING);
        assert!(price.is_some());
        assert_eq!(run_line(&SETTING, &phase).ns_per_yield, price);
    }

    #[test]
    fn trace_lines_are_as_documented() {
        let mut phase = phase();
        assert_eq!(trace_lines(&SETTING, &phase).count(), 0);
        phase.tasks[1].timeline = Some(Timeline {
            bin_ns: 400,
            run_ns: [0, 390, 110].into(),
            blocked_ns: [0, 0, 20].into(),
        });
        let lines: Vec<_> = trace_lines(&SETTING, &phase)
            .map(|line| line.to_line())
            .collect();
        assert_eq!(
            lines,
            [
                r#"SCHED-TRACE {"app":"realtime","arch":"x86_64","smp":1,"sched":"pbg","phase":"replay","task":"short1","bin_ns":400,"run_ns":[0,390,110],"blocked_ns":[0,0,20]}"#
            ]
        );
        let line = run_line(&SETTING, &phase).to_line();
        assert!(line.ends_with(r#","traced":true,"pass":true}"#), "{line}");
    }

    #[test]
    fn shares_have_groups_and_their_own_jain_index() {
        let mut phase = phase();
        phase.question = Question::Shares { window_ns: 1_000 };
        for (task, run_ns) in phase.tasks.iter_mut().zip([200, 100]) {
            task.groups = Some(7);
            task.run_in_window_ns = Some(run_ns);
        }
        let line = task_line(&SETTING, &phase, &phase.tasks[0]).to_line();
        assert!(
            line.ends_with(r#""yields":7,"groups":7,"run_in_window_ns":200}"#),
            "{line}"
        );
        // Over 200 and 100, not over the times run or the ends.
        let line = run_line(&SETTING, &phase).to_line();
        assert!(line.ends_with(r#""jain":0.9,"pass":true}"#), "{line}");
    }

    #[test]
    fn cost_lines_are_as_documented() {
        assert_eq!(
            cost_line(&SETTING, "idle", 4, 201.96).to_line(),
            r#"SCHED-COST {"app":"realtime","arch":"x86_64","smp":1,"sched":"pbg","phase":"idle","timing":"icount","scale":1,"tasks":4,"instructions_per_yield":202.0}"#
        );
        let real = Setting {
            timing: "real",
            ..SETTING
        };
        let line = cost_line(&real, "idle", 4, 0.04).to_line();
        assert!(line.ends_with(r#""tasks":4,"ns_per_yield":0.0}"#), "{line}");
    }

    #[test]
    fn a_phase_without_tasks_has_a_line_too() {
        let empty = Phase {
            tasks: [].into(),
            pass: false,
            ..phase()
        };
        let line = run_line(&SETTING, &empty).to_line();
        assert!(
            line.ends_with(r#""srpt_bound_ns":0,"jain":1.0,"pass":false}"#),
            "{line}"
        );
    }
}
