//! The turns of one CPU: the fallback queue's (rule 7) and the root's (rule 9).
//!
//! **The tenth of the outsiders.** While a task outside the plan waits, each tick that hits a
//! planned task is counted. At the [`PLAN_TICKS`]th the fallback queue's turn is due, and the next
//! pick takes a task from that queue. The turn lasts until the next tick or, if the root has used
//! part of the present one, until the tick after that. The tasks of the queue share it. So all
//! outsiders together have at least one tick in `PLAN_TICKS` + 1. On several CPUs each CPU counts
//! for itself.
//!
//! **The root.** A root that wakes goes first, once between two ticks that hit planned tasks. It does
//! not use up a turn of the fallback queue that comes due meanwhile.

/// The number of ticks that hit planned tasks between two turns of the fallback queue, while that
/// queue has a ready task (rule 7).
///
/// So all tasks of the queue together have at least a tenth of the CPU. That is enough for `main`
/// and `gc` to make progress. It costs a plan at most a ninth of its time, even beside a task that
/// computes without end.
pub const PLAN_TICKS: u32 = 9;

/// The effect of a tick on a task outside the plan that it hits while a planned task is ready.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It is in the middle of its turn.
    GoesOn,
    /// Its turn begins with this tick.
    Begins,
    /// It has no turn, or its turn has ended.
    Over,
}

/// The state of the turns of one CPU.
pub struct Turns {
    /// The number of ticks since the last turn of the fallback queue, or since it had no ready task
    /// (rule 7).
    plan_ticks: u32,
    /// The fallback queue's turn is due (rule 7).
    due: bool,
    /// The ticks that are left of the fallback queue's turn; 0 without a turn.
    left: u8,
    /// The root has the CPU because it woke and went first (rule 9).
    root_runs: bool,
    /// The root had the CPU since the last tick.
    root_ran: bool,
    /// A tick has hit a planned task since the root had the CPU last.
    root_may: bool,
}

impl Turns {
    pub const NEW: Self = Self {
        plan_ticks: 0,
        due: false,
        left: 0,
        root_runs: false,
        root_ran: false,
        root_may: true,
    };

    /// Begins a dispatch that ends the turn of the last one; `root_goes_first` tells that the
    /// CPU goes to the root by rule 9.
    #[inline]
    pub const fn dispatch(&mut self, root_goes_first: bool) {
        self.left = 0;
        self.root_runs = root_goes_first;
        self.root_ran |= root_goes_first;
    }

    /// Returns true if the fallback queue has its turn.
    #[inline]
    pub const fn is_fallback_turn(&self) -> bool {
        self.left > 0
    }

    /// Returns true if the running task is outside the plan and has a turn.
    pub const fn is_a_turn(&self) -> bool {
        self.is_fallback_turn() || self.root_runs
    }

    /// Takes the root's turn when it wakes. Returns true if it goes first (rule 9).
    pub const fn take_root_turn(&mut self) -> bool {
        take_bool(&mut self.root_may)
    }

    /// Returns true if the fallback queue's turn is due.
    #[inline]
    pub const fn is_due(&self) -> bool {
        self.due
    }

    /// Serves the fallback queue. Returns true if its turn begins with that: if no planned task is
    /// ready, it may be served before its turn.
    #[inline]
    pub const fn serve_fallback(&mut self) -> bool {
        let begins = take_bool(&mut self.due);
        if begins {
            self.begin();
        }
        begins
    }

    const fn begin(&mut self) {
        self.plan_ticks = 0;
        // If the root went first, some of this tick is over.
        self.left = 1 + self.root_ran as u8;
    }

    /// Counts a tick that hits a planned task; `outside_ready` is true if the fallback queue has a
    /// task. Returns true if the turn of that queue is due.
    #[inline]
    pub const fn tick_planned(&mut self, outside_ready: bool) -> bool {
        self.root_may = true;
        self.root_ran = false;
        if outside_ready {
            self.plan_ticks += 1;
            self.due |= self.plan_ticks >= PLAN_TICKS;
        } else {
            // A queue without a ready task saves no turns up.
            self.plan_ticks = 0;
            self.due = false;
        }
        outside_ready && self.plan_ticks >= PLAN_TICKS
    }

    /// Counts a tick that hits a task outside the plan while no planned one is ready.
    pub const fn tick_alone(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Counts a tick that hits a task outside the plan while a planned one is ready. It gives way,
    /// unless its turn begins with this tick: a planned task that blocks before every tick must not
    /// take the ticks from it (rule 7).
    #[inline]
    pub const fn tick_outside(&mut self) -> Turn {
        self.root_ran = false;
        let root_runs = take_bool(&mut self.root_runs);
        if self.left > 0 {
            self.left -= 1;
            return if self.left == 0 {
                Turn::Over
            } else {
                Turn::GoesOn
            };
        }
        self.plan_ticks += 1;
        if self.plan_ticks >= PLAN_TICKS {
            if !root_runs {
                self.begin();
                return Turn::Begins;
            }
            // The root has had its own; the turn is for those behind it.
            self.due = true;
        }
        Turn::Over
    }
}

const fn take_bool(flag: &mut bool) -> bool {
    core::mem::replace(flag, false)
}
