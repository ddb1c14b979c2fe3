//! Whose turn it is: the fallback queue's (rule 7) and the root's (rule 9).

/// Ticks that pass while a task outside the plan is ready before their queue gets a turn
/// of a whole tick (rule 7): such tasks have at least a tenth of the CPU together. Enough
/// for `main` and `gc` to go on, little enough that a plan loses at most a ninth
/// of its time even to a task that takes all it can get.
pub const PLAN_TICKS: u32 = 9;

/// What a tick does to a task outside the plan that it hits while a planned one is ready.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It is in the middle of its turn.
    GoesOn,
    /// Its turn begins with this tick.
    Begins,
    /// It has no turn, or its turn has ended.
    Over,
}

/// What has to be known to tell whose turn it is.
pub struct Turns {
    /// Ticks since a task outside the plan had its last turn, or since there was
    /// none ready (rule 7).
    plan_ticks: u32,
    /// The fallback queue's turn has come (rule 7).
    due: bool,
    /// The fallback queue has its turn of a whole tick: after so many ticks more it ends.
    /// 0 is no turn.
    left: u8,
    /// The root has the CPU, as it woke and went first (rule 9).
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

    /// The root has woken. Returns whether it may go first (rule 9), and then it does.
    pub const fn take_root_turn(&mut self) -> bool {
        take_bool(&mut self.root_may)
    }

    /// Whether the fallback queue's turn has come.
    #[inline]
    pub const fn is_due(&self) -> bool {
        self.due
    }

    /// The fallback queue is served now. Returns whether its turn begins with that: where no
    /// planned task is ready, it may be served before its turn.
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

    /// A tick hit a planned task; `outside_ready` is whether somebody is in the fallback
    /// queue. Returns whether the turn of that queue has come.
    #[inline]
    pub const fn tick_planned(&mut self, outside_ready: bool) -> bool {
        self.root_may = true;
        self.root_ran = false;
        if outside_ready {
            self.plan_ticks += 1;
            self.due |= self.plan_ticks >= PLAN_TICKS;
        } else {
            // Nobody saves up turns by not being ready.
            self.plan_ticks = 0;
            self.due = false;
        }
        outside_ready && self.plan_ticks >= PLAN_TICKS
    }

    /// Counts a tick that hits a task outside the plan while no planned one is ready.
    pub const fn tick_alone(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// A tick hit a task outside the plan while a planned one is ready. It gives
    /// way, unless its turn begins with this tick: a planned task that blocks
    /// before every tick must not take the ticks' worth from it (rule 7).
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
