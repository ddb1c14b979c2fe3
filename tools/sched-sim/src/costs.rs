//! The cost of a yield under each policy: the table of `make cost`.

/// The cost of a yield, in nanoseconds, by the number of tasks that are ready or run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct YieldCost {
    /// `(tasks, cost)`, tasks ascending.
    points: Vec<(u64, f64)>,
}

impl YieldCost {
    /// Creates the cost from measured points. For the same number of tasks the later point counts.
    pub fn new(points: impl IntoIterator<Item = (u64, f64)>) -> Self {
        let mut sorted: Vec<(u64, f64)> = Vec::new();
        for (tasks, cost) in points {
            match sorted.binary_search_by_key(&tasks, |point| point.0) {
                Ok(place) => sorted[place].1 = cost,
                Err(place) => sorted.insert(place, (tasks, cost)),
            }
        }
        Self { points: sorted }
    }

    /// Returns the cost for a task that is alone, and so keeps the CPU.
    pub fn alone_ns(&self) -> f64 {
        self.points.first().map_or(0.0, |point| point.1)
    }

    /// Returns the cost for one of `tasks` tasks that keeps the CPU. It is the cost of a yield to
    /// another task less `switch_ns`, the time of the switch itself, and never less than that of a
    /// task alone.
    pub fn kept_ns(&self, tasks: u64, switch_ns: f64) -> f64 {
        match tasks {
            0..=1 => self.alone_ns(),
            _ => (self.switched_ns(tasks) - switch_ns).max(self.alone_ns()),
        }
    }

    /// Returns the cost with a switch to another of `tasks` tasks. Between two measured numbers of
    /// tasks it is linear in their logarithm. Above the largest, and below the smallest that is at
    /// least 2, it is the cost measured there.
    pub fn switched_ns(&self, tasks: u64) -> f64 {
        let switched = || self.points.iter().filter(|point| point.0 > 1);
        let below = switched().take_while(|point| point.0 <= tasks).last();
        let above = switched().find(|point| point.0 > tasks);
        match (below, above) {
            (Some(&(a, cost_a)), Some(&(b, cost_b))) => {
                // The logarithms of powers of two are exact, so all machines find the same cost.
                let part = (tasks as f64 / a as f64).log2() / (b as f64 / a as f64).log2();
                cost_a + part * (cost_b - cost_a)
            }
            (Some(one), None) | (None, Some(one)) => one.1,
            (None, None) => self.alone_ns(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_interpolated_between_measured_numbers_of_tasks() {
        let cost = YieldCost::new([(256, 800.0), (4, 400.0), (1, 100.0), (64, 600.0)]);
        assert_eq!(cost.alone_ns(), 100.0);
        assert_eq!(
            [1, 4, 64].map(|tasks| cost.kept_ns(tasks, 350.0)),
            [100.0, 100.0, 250.0]
        );
        let found = [2, 4, 16, 64, 128, 256, 4096].map(|tasks| cost.switched_ns(tasks));
        assert_eq!(found, [400.0, 400.0, 500.0, 600.0, 700.0, 800.0, 800.0]);
        assert_eq!(YieldCost::new([(1, 7.0)]).switched_ns(5), 7.0);
    }
}
