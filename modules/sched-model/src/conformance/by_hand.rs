//! Rules 1 to 13, which call the scheduler by hand.

use std::sync::{Arc, Weak};

use super::rng::Rng;
use super::subject::{Holds, Subject, expect, expect_drains, expect_task};
use crate::model::ModelScheduler;

pub(super) fn empty_pick_is_none<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    let (mut scheduler, _) = s.filled(0);
    for _ in 0..3 {
        expect_drains(&mut scheduler, &[])?;
    }
    for task in s.tasks(3) {
        scheduler.add_task(task.clone());
        expect_drains(&mut scheduler, &[task])?;
        expect_drains(&mut scheduler, &[])?;
    }
    Ok(())
}

pub(super) fn every_add_is_picked_once<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    for n in [1, 2, 3, 10, 300] {
        let (mut scheduler, tasks) = s.filled(n);
        expect_drains(&mut scheduler, &tasks)?;
    }
    Ok(())
}

pub(super) fn put_and_pick_conserve<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    let mut rng = Rng(s.promises.seed);
    for _ in 0..s.promises.random_programs {
        let n = 1 + rng.below(8) as usize;
        let (mut scheduler, mut ready) = s.filled(n);
        let mut blocked: Vec<Arc<S::Task>> = Vec::new();
        let mut removed: Vec<Arc<S::Task>> = Vec::new();
        let mut current: Option<Arc<S::Task>> = None;
        let mut time = 0;
        for _ in 0..60 {
            time += rng.below(20);
            (s.promises.on_time)(time);
            let any = |rng: &mut Rng, of: &[Arc<S::Task>]| rng.below(of.len() as u64) as usize;
            match (rng.below(8), current.take()) {
                // A yield, preemption or block: the current task goes somewhere, and then comes the
                // pick.
                (action @ 0..=3, leaving) => {
                    match (action, leaving) {
                        (0..=2, Some(task)) => {
                            scheduler.put_prev_task(task.clone(), action == 2);
                            ready.push(task);
                        }
                        (_, Some(task)) => blocked.push(task),
                        (_, None) => {}
                    }
                    let found = scheduler.pick_next_task();
                    let is_found =
                        |t: &Arc<S::Task>| found.as_ref().is_some_and(|f| Arc::ptr_eq(f, t));
                    match ready.iter().position(is_found) {
                        Some(place) => current = Some(ready.swap_remove(place)),
                        None => {
                            expect_task("pick_next_task", ready.first(), found.as_ref())?;
                        }
                    }
                }
                (4, keeps) => {
                    current = keeps;
                    if !blocked.is_empty() {
                        let task = blocked.swap_remove(any(&mut rng, &blocked));
                        scheduler.put_prev_task(task.clone(), false);
                        ready.push(task);
                    }
                }
                (5, keeps) => {
                    current = keeps;
                    if let Some(task) = &current {
                        // Either answer is right.
                        let _ = scheduler.task_tick(task);
                    }
                }
                (6, keeps) => {
                    current = keeps;
                    if let Some(task) = &current {
                        let _ = scheduler.set_priority(task, rng.below(64) as isize - 32);
                    }
                }
                (_, keeps) => {
                    current = keeps;
                    if let Some(task) = removed.pop() {
                        scheduler.add_task(task.clone());
                        ready.push(task);
                    } else if !ready.is_empty() {
                        let task = ready.swap_remove(any(&mut rng, &ready));
                        let found = scheduler.remove_task(&task);
                        expect_task("remove_task", Some(&task), found.as_ref())?;
                        removed.push(task);
                    }
                }
            }
        }
        expect_drains(&mut scheduler, &ready)?;
    }
    Ok(())
}

pub(super) fn remove_of_absent_is_none<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    for others in [0, 1, 3] {
        let (mut scheduler, mut tasks) = s.filled(others);
        let absent = &s.tasks(1)[0];
        expect_task(
            "remove_task of a new task",
            None,
            scheduler.remove_task(absent).as_ref(),
        )?;
        scheduler.add_task(absent.clone());
        let found = scheduler.remove_task(absent);
        expect_task("remove_task of a ready task", Some(absent), found.as_ref())?;
        let found = scheduler.remove_task(absent);
        expect_task("remove_task of a removed task", None, found.as_ref())?;
        if let Some(picked) = scheduler.pick_next_task() {
            let found = scheduler.remove_task(&picked);
            expect_task("remove_task of a running task", None, found.as_ref())?;
            tasks.retain(|task| !Arc::ptr_eq(task, &picked));
        }
        expect_drains(&mut scheduler, &tasks)?;
    }
    Ok(())
}

pub(super) fn remove_of_present_returns_it<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    for n in [1, 2, 5] {
        for place in 0..n {
            let (mut scheduler, mut tasks) = s.filled(n);
            let task = tasks.remove(place);
            let found = scheduler.remove_task(&task);
            expect_task("remove_task", Some(&task), found.as_ref())?;
            expect_drains(&mut scheduler, &tasks)?;
        }
    }
    Ok(())
}

pub(super) fn add_after_remove_works<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    let (mut scheduler, tasks) = s.filled(3);
    for round in 0..9 {
        let task = &tasks[round % 3];
        let found = scheduler.remove_task(task);
        expect_task("remove_task", Some(task), found.as_ref())?;
        scheduler.add_task(task.clone());
        // Time passes for a task between the rounds.
        if let Some(current) = scheduler.pick_next_task() {
            let _ = scheduler.task_tick(&current);
            scheduler.put_prev_task(current, round % 2 == 0);
        }
    }
    expect_drains(&mut scheduler, &tasks)
}

pub(super) fn drop_releases_the_queued<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    let (mut scheduler, tasks) = s.filled(5);
    if let Some(current) = scheduler.pick_next_task() {
        scheduler.put_prev_task(current, true);
    }
    drop(scheduler);
    for task in &tasks {
        let owners = Arc::strong_count(task);
        expect("owners after the scheduler's drop", 1, owners, owners == 1)?;
    }
    Ok(())
}

pub(super) fn the_dead_are_let_go<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    let (mut scheduler, tasks) = s.filled(3);
    let dead: Vec<Weak<S::Task>> = tasks.iter().map(Arc::downgrade).collect();
    drop(tasks);
    // Every task leaves, after a tick and a yield, and is dropped here.
    for _ in 0..3 {
        for _ in 0..2 {
            if let Some(current) = scheduler.pick_next_task() {
                let _ = scheduler.task_tick(&current);
                scheduler.put_prev_task(current, false);
            }
        }
        drop(scheduler.pick_next_task());
    }
    expect_drains(&mut scheduler, &[])?;
    for task in dead {
        let owners = task.strong_count();
        expect("owners after the next pick", 0, owners, owners == 0)?;
    }
    Ok(())
}

pub(super) fn a_lone_task_may_be_ticked_for_ever<S: ModelScheduler>(
    s: &mut Subject<'_, S>,
) -> Holds {
    for preempt in [false, true] {
        let (mut scheduler, tasks) = s.filled(1);
        for time in 0..5_000 {
            (s.promises.on_time)(time * 10);
            let Some(current) = scheduler.pick_next_task() else {
                return expect_task("pick_next_task", tasks.first(), None);
            };
            for _ in 0..time % 8 {
                let _ = scheduler.task_tick(&current);
            }
            scheduler.put_prev_task(current, preempt);
        }
        expect_drains(&mut scheduler, &tasks)?;
    }
    Ok(())
}

pub(super) fn queues_are_independent<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    if s.promises.max_cpus < 2 {
        return Ok(());
    }
    let tasks = s.tasks(8);
    let mut queues = [(s.make)(0), (s.make)(1)];
    let mut inside = [Vec::new(), Vec::new()];
    for (i, task) in tasks.iter().enumerate() {
        queues[i % 2].add_task(task.clone());
        inside[i % 2].push(task.clone());
    }
    if let Some(current) = queues[1].pick_next_task() {
        queues[1].put_prev_task(current, false);
    }
    // One task changes its queue as a wake on another CPU does it.
    if let Some(moved) = queues[0].pick_next_task() {
        let _ = queues[0].task_tick(&moved);
        inside[0].retain(|task| !Arc::ptr_eq(task, &moved));
        inside[1].push(moved.clone());
        queues[1].put_prev_task(moved, false);
    }
    expect_drains(&mut queues[1], &inside[1])?;
    expect_drains(&mut queues[0], &inside[0])
}

pub(super) fn a_put_needs_no_pick_before<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    for preempt in [false, true] {
        for ready in [0, 1, 3] {
            let (mut scheduler, mut tasks) = s.filled(ready);
            let main = s.tasks(1).remove(0);
            let _ = scheduler.task_tick(&main);
            scheduler.put_prev_task(main.clone(), preempt);
            tasks.push(main);
            expect_drains(&mut scheduler, &tasks)?;
        }
    }
    Ok(())
}

pub(super) fn init_is_harmless<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    let mut scheduler = (s.make)(0);
    scheduler.init();
    let tasks = s.tasks(4);
    tasks
        .iter()
        .for_each(|task| scheduler.add_task(task.clone()));
    expect_drains(&mut scheduler, &tasks)
}

pub(super) fn any_priority_is_answered<S: ModelScheduler>(s: &mut Subject<'_, S>) -> Holds {
    let (mut scheduler, tasks) = s.filled(3);
    for priority in [0, 1, -1, 19, -20, 20, -21, 100, isize::MAX, isize::MIN] {
        if let Some(current) = scheduler.pick_next_task() {
            let first = scheduler.set_priority(&current, priority);
            let again = scheduler.set_priority(&current, priority);
            let call = format!("set_priority to {priority} once more");
            expect(&call, first, again, first == again)?;
            let _ = scheduler.task_tick(&current);
            scheduler.put_prev_task(current, priority % 2 == 0);
        }
    }
    expect_drains(&mut scheduler, &tasks)
}
