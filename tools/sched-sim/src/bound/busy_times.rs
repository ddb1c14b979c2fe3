//! The bound of mean busy times, for jobs that come late and sleep, on several CPUs.
//!
//! **Why it is a bound.** A job computes for p in all. Let τ(u) be the time at which it has
//! computed for u. It ends no earlier than τ(u) plus the time that it still computes and sleeps
//! after that. This holds for every u, and so for the mean over all u from 0 to p:
//!
//! > end ≥ M + R, where M is the mean of τ(u), and R is the mean of the time that is left.
//!
//! M is the job's *mean busy time*. R does not depend on the schedule, and is p/2 for a job that
//! never sleeps. So the sum of all R plus the least possible sum of all M is a bound of the sum of
//! ends. Only these limits of a schedule are kept for that sum of M:
//!
//! - At any time no more jobs compute than there are CPUs, each on one CPU.
//! - A *piece* is the computing of a job between two sleeps. No job computes a piece before the
//!   earliest time at which it can reach it. That is the job's submission plus all that it computes
//!   and sleeps before the piece.
//!
//! In arbitrarily small units of time this is a transportation problem, in which a unit of a job's
//! time on a CPU at t costs t/p.
//!
//! **A lower bound of the sum of M.** Let each piece have a price λ for a unit of its time. For any
//! prices the sum is no less than
//!
//! > D(λ) = Σ λ · length − ∫ (the largest λ − t/p of jobs that may compute at t, as many as there are
//! > CPUs, and only those above 0) dt.
//!
//! No schedule takes more than that integral out of the first sum (weak duality). The integral is
//! computed by the trapezoid rule between *breaks*. Between two breaks where no piece becomes free,
//! the integrand is a maximum of sums of straight lines, and so convex. A trapezoid on it is no
//! less than its integral. So the result is a bound for any prices and breaks, and good ones make
//! it high.
//!
//! **Good prices.** Take the schedule that always runs the jobs whose whole time is the shortest.
//! The first prices make λ − t/p of a piece that ends at t equal to that of the next piece on its
//! CPU, or to 0 if there is none. Where this schedule has the least sum of M, as on one CPU, that
//! sum is D at the first prices. Otherwise a subgradient method goes on from them. It raises the
//! price of a piece that is wanted for less than its length, and lowers that of a piece that is
//! wanted for more. A step is a part of the one that would reach the schedule's sum of M if D were
//! linear (Polyak, 1969). The part shrinks after six steps in a row that do not raise D.
//!
//! The relaxation by mean busy times is due to Goemans et al. ("Single machine scheduling with
//! release dates", 2002), and on several machines to Schulz and Skutella ("Scheduling unrelated
//! machines by randomized rounding", 2002).
//!
//! **Cost.** The schedule takes O(n (m + log n)) for n pieces on m CPUs. Each D takes O(n) at each
//! of O(n) breaks; [`WORK`] bounds that in all. For more than [`MOST`] jobs all CPUs are replaced
//! with one that is m times as fast, for which a schedule gives the least sum of M. That
//! generalises the bound of Eastman, Even and Isaacs (1964), and is a good one if there are many
//! more jobs than CPUs.
//!
//! **All machines find the same bound.** It takes sums, differences, products and quotients of
//! `f64`, in an order that depends on the jobs alone. These are rounded, so the result is reduced
//! by [`ROUNDING`].

use std::{cmp::Reverse, collections::BinaryHeap};

use super::job::Job;

/// The most pieces for which prices are searched.
const MOST: usize = 512;
/// The most pieces of a job. If it has more, several are joined, which are free when the first is.
const PIECES: usize = 8;
/// The number of values of λ − t/p that are computed in all.
const WORK: usize = 1 << 20;
/// The distance of two breaks is at most the whole time divided by this number.
const CELLS: u64 = 64;
/// The relative difference to the schedule's sum that is near enough.
const NEAR: f64 = 1e-5;
/// The part by which the result is reduced. Rounding errors are some 1e-13 of it.
const ROUNDING: f64 = 1e-9;

/// The computing of a job between two sleeps, or several such parts joined.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Index of the job.
    job: usize,
    /// The job cannot compute the piece before this time. It is no less than that of the job's
    /// piece before.
    free: u64,
    /// The time that the piece takes, in nanoseconds, above 0.
    length: u64,
}

/// Returns a lower bound of the sum of turnarounds of jobs whose times of submission are known.
///
/// # Panics
/// If one of them is not known.
pub fn sum(jobs: &[Job], cpus: usize) -> f64 {
    if jobs.len() > MOST {
        return sum_of_many(jobs, cpus);
    }
    let (pieces, whole) = pieces_of_all(jobs);
    let mean_busy = with_prices(&pieces, &whole, cpus);
    of_ends(jobs, mean_busy).max(sum_of_many(jobs, cpus))
}

/// Returns the bound as if the jobs were too many for prices.
pub fn sum_of_many(jobs: &[Job], cpus: usize) -> f64 {
    let (pieces, whole) = pieces_of_all(jobs);
    of_ends(jobs, on_one_fast_cpu(&pieces, &whole, cpus as u64))
}

/// Returns the bound of the sum of turnarounds that follows from one of the sum of M.
fn of_ends(jobs: &[Job], mean_busy: f64) -> f64 {
    let left: f64 = jobs.iter().map(mean_left).sum();
    let submitted: f64 = jobs.iter().map(|job| job.submitted_at() as f64).sum();
    mean_busy + left - submitted - ROUNDING * (mean_busy + left)
}

/// Returns R of a job. If the job computes nothing, that is its earliest end.
fn mean_left(job: &Job) -> f64 {
    let (run_ns, mut sleeps) = (job.run_ns() as f64, job.sleep_ns() as f64);
    if run_ns == 0.0 {
        return job.submitted_at() as f64 + sleeps;
    }
    let mut left = run_ns / 2.0;
    for step in job.steps() {
        left += step.run_ns as f64 / run_ns * sleeps;
        sleeps -= step.sleep_ns as f64;
    }
    left
}

/// Returns the pieces in the order in which they become free, and each job's time on a CPU.
fn pieces_of_all(jobs: &[Job]) -> (Vec<Piece>, Vec<f64>) {
    let most = (MOST / jobs.len().max(1)).clamp(1, PIECES);
    let mut pieces: Vec<Piece> = Vec::new();
    for (i, job) in jobs.iter().enumerate() {
        let computing = || job.steps().filter(|step| step.run_ns > 0);
        let in_a_piece = computing().count().div_ceil(most);
        let mut free = job.submitted_at();
        let mut nth = 0;
        for step in job.steps() {
            if step.run_ns > 0 {
                match pieces.last_mut() {
                    Some(piece) if nth % in_a_piece > 0 => piece.length += step.run_ns,
                    _ => pieces.push(Piece {
                        job: i,
                        free,
                        length: step.run_ns,
                    }),
                }
                nth += 1;
            }
            free += step.run_ns + step.sleep_ns;
        }
    }
    // Stable: those of a job stay in order.
    pieces.sort_by_key(|piece| piece.free);
    let whole = jobs.iter().map(|job| job.run_ns() as f64);
    (pieces, whole.collect())
}

/// The schedule in which the jobs with the shortest whole time compute.
struct Schedule {
    /// The time at which each piece is done.
    ends: Vec<u64>,
    /// The piece that has each piece's CPU after it, if all CPUs are busy then.
    next: Vec<Option<usize>>,
    /// The times at which a piece gets a CPU or leaves it.
    breaks: Vec<u64>,
    /// The sum of M over all jobs.
    mean_busy: f64,
}

/// Returns the schedule that always runs the jobs with the shortest whole time. Sleeps count only
/// in the time at which a piece becomes free. A piece waits for the job's piece before it.
fn schedule(pieces: &[Piece], whole: &[f64], cpus: usize) -> Schedule {
    let mut later: Vec<Vec<usize>> = vec![Vec::new(); whole.len()];
    for (i, piece) in pieces.iter().enumerate().rev() {
        later[piece.job].push(i);
    }
    // The pieces by the times at which they come: the first of each job, and the next after one
    // that is done.
    let mut coming = BinaryHeap::new();
    for pieces_left in &mut later {
        coming.extend(pieces_left.pop().map(|i| Reverse((pieces[i].free, i))));
    }
    let shorter = |i: &usize| (whole[pieces[*i].job] as u64, *i);
    let mut waiting = BinaryHeap::new();
    let mut cpu: Vec<Option<usize>> = vec![None; cpus];
    let mut freed: Vec<Option<usize>> = vec![None; cpus];
    let mut left: Vec<u64> = pieces.iter().map(|piece| piece.length).collect();
    let mut found = Schedule {
        ends: vec![0; pieces.len()],
        next: vec![None; pieces.len()],
        breaks: Vec::new(),
        mean_busy: 0.0,
    };
    let mut now = 0;
    loop {
        while let Some(&Reverse((free, i))) = coming.peek()
            && free <= now
        {
            coming.pop();
            waiting.push(Reverse(shorter(&i)));
        }
        // A waiting piece gets a free CPU, or that of the longest job, if that is longer.
        while let Some(&Reverse(first)) = waiting.peek() {
            let longest = (0..cpus).max_by_key(|&c| cpu[c].as_ref().map_or((u64::MAX, c), shorter));
            let c = longest.expect("a CPU");
            if cpu[c].as_ref().is_some_and(|i| shorter(i) < first) {
                break;
            }
            waiting.pop();
            waiting.extend(cpu[c].replace(first.1).map(|i| Reverse(shorter(&i))));
        }
        // Beside an idle CPU no piece is worth more for having one.
        let all_run = cpu.iter().all(Option::is_some);
        for (freed, next) in freed.iter_mut().zip(&cpu) {
            if let Some(freed) = freed.take().filter(|_| all_run) {
                found.next[freed] = *next;
            }
        }
        found.breaks.push(now);
        let end = cpu.iter().flatten().map(|&i| now + left[i]).min();
        let comes = coming.peek().map(|next| next.0.0);
        let Some(then) = end.into_iter().chain(comes).min() else {
            return found;
        };
        for c in 0..cpus {
            let Some(i) = cpu[c] else { continue };
            let (ran, job) = (then - now, pieces[i].job);
            found.mean_busy += ran as f64 / whole[job] * (now as f64 + ran as f64 / 2.0);
            left[i] -= ran;
            if left[i] == 0 {
                found.ends[i] = then;
                cpu[c] = None;
                freed[c] = Some(i);
                let next = later[job].pop();
                coming.extend(next.map(|next| Reverse((pieces[next].free.max(then), next))));
            }
        }
        now = then;
    }
}

/// Returns the least sum of M if a job may compute on all CPUs at once, which are then like one CPU
/// that is `speed` times as fast.
fn on_one_fast_cpu(pieces: &[Piece], whole: &[f64], speed: u64) -> f64 {
    // Time in parts of a nanosecond keeps all numbers whole.
    let scaled = |piece: &Piece| Piece {
        free: piece.free * speed,
        ..*piece
    };
    let pieces: Vec<Piece> = pieces.iter().map(scaled).collect();
    schedule(&pieces, whole, 1).mean_busy / speed as f64
}

/// Returns the highest D that is found. The breaks and the first prices are those of the schedule.
fn with_prices(pieces: &[Piece], whole: &[f64], cpus: usize) -> f64 {
    let schedule = schedule(pieces, whole, cpus);
    let dual = Dual::new(pieces, whole, cpus, &schedule.breaks);
    let mut prices = first_prices(pieces, whole, &schedule);
    let mut best = (f64::MIN, prices.clone());
    // The factor of the step, and the number of times that it has led nowhere.
    let (mut trust, mut in_vain) = (0.3, 0);
    let mut direction = vec![0.0; pieces.len()];
    let tries = WORK / (dual.breaks.len() * pieces.len()).max(1);
    for _ in 0..tries.max(1) {
        let (value, lacking) = dual.at(&prices);
        if value > best.0 {
            best = (value, prices.clone());
            in_vain = 0;
        } else {
            in_vain += 1;
        }
        if schedule.mean_busy - best.0 <= NEAR * schedule.mean_busy {
            break;
        }
        if in_vain == 6 {
            (trust, in_vain) = (trust * 0.6, 0);
            prices.clone_from(&best.1);
            direction.fill(0.0);
            continue;
        }
        for (direction, lacking) in direction.iter_mut().zip(lacking) {
            *direction = 0.7 * *direction + 0.3 * lacking;
        }
        // Units that make pieces comparable: a price is a time over the job's whole time.
        let unit = |i: usize| 1.0 / (whole[pieces[i].job] * pieces[i].length as f64);
        let squares = direction.iter().enumerate();
        let square: f64 = squares.map(|(i, by)| by * by * unit(i)).sum();
        if square == 0.0 {
            break;
        }
        let step = trust * (schedule.mean_busy - value) / square;
        for (i, price) in prices.iter_mut().enumerate() {
            *price += step * direction[i] * unit(i);
        }
    }
    best.0
}

/// Returns the breaks in order, with more of them between two that are far apart ([`CELLS`]).
fn refined(breaks: impl Iterator<Item = u64>) -> Vec<f64> {
    let mut breaks: Vec<u64> = breaks.collect();
    breaks.sort_unstable();
    breaks.dedup();
    let whole = breaks.last().map_or(0, |last| last - breaks[0]);
    let longest = (whole / CELLS).max(1);
    let mut refined = Vec::new();
    for pair in breaks.windows(2) {
        let parts = (pair[1] - pair[0]).div_ceil(longest);
        let part = (pair[1] - pair[0]) as f64 / parts as f64;
        refined.extend((0..parts).map(|n| pair[0] as f64 + part * n as f64));
    }
    refined.extend(breaks.last().map(|&last| last as f64));
    refined
}

/// Returns the prices by which a piece is worth at its end as much as the next one on its CPU.
fn first_prices(pieces: &[Piece], whole: &[f64], schedule: &Schedule) -> Vec<f64> {
    let mut prices = vec![0.0; pieces.len()];
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by_key(|&i| Reverse(schedule.ends[i]));
    for i in order {
        let end = schedule.ends[i] as f64;
        let next = schedule.next[i];
        let worth = next.map_or(0.0, |next| prices[next] - end / whole[pieces[next].job]);
        prices[i] = end / whole[pieces[i].job] + worth.max(0.0);
    }
    prices
}

/// The function D, to be computed at any prices.
struct Dual<'a> {
    pieces: &'a [Piece],
    whole: &'a [f64],
    cpus: usize,
    /// The breaks in order, one of them at each time at which a piece becomes free.
    breaks: Vec<f64>,
}

impl<'a> Dual<'a> {
    /// Creates D with these breaks, and one at each time at which a piece becomes free.
    fn new(pieces: &'a [Piece], whole: &'a [f64], cpus: usize, breaks: &[u64]) -> Self {
        let free = pieces.iter().map(|piece| piece.free);
        Self {
            pieces,
            whole,
            cpus,
            breaks: refined(breaks.iter().copied().chain(free)),
        }
    }

    /// Returns D at these prices, and for each piece the part of its length that is not wanted.
    fn at(&self, prices: &[f64]) -> (f64, Vec<f64>) {
        let lengths = || self.pieces.iter().map(|piece| piece.length as f64);
        let mut lacking: Vec<f64> = lengths().collect();
        let mut value: f64 = lengths().zip(prices).map(|(l, price)| l * price).sum();
        // For each job the piece that may be computed and is worth most.
        let mut dearest: Vec<Option<usize>> = vec![None; self.whole.len()];
        let mut coming = self.pieces.iter().enumerate().peekable();
        let mut before = Wanted::default();
        let mut now = Wanted::default();
        // The time from which on no piece is worth anything.
        let ends = self.pieces.iter().zip(prices);
        let last = ends.map(|(piece, price)| price * self.whole[piece.job]);
        let last = last.fold(0.0, f64::max);
        let breaks = &self.breaks;
        let over = (*breaks.last().unwrap_or(&0.0)).max(last);
        for &at in breaks.iter().chain([&over]) {
            self.want(&mut now, &dearest, prices, at);
            value -= (at - before.at) / 2.0 * (before.worth + now.worth);
            for &i in before.pieces.iter().chain(&now.pieces) {
                lacking[i] -= (at - before.at) / 2.0;
            }
            let mut comes = false;
            while let Some((i, piece)) = coming.next_if(|(_, piece)| piece.free as f64 <= at) {
                let is_dearer = |old: usize| prices[i] >= prices[old];
                if dearest[piece.job].is_none_or(is_dearer) {
                    dearest[piece.job] = Some(i);
                }
                comes = true;
            }
            if comes {
                self.want(&mut now, &dearest, prices, at);
            }
            std::mem::swap(&mut before, &mut now);
        }
        (value, lacking)
    }

    /// Chooses the pieces that would run at the time `at`: the most valuable, one for each CPU.
    fn want(&self, wanted: &mut Wanted, dearest: &[Option<usize>], prices: &[f64], at: f64) {
        let worth = |i: usize| prices[i] - at / self.whole[self.pieces[i].job];
        wanted.at = at;
        wanted.all.clear();
        let all = dearest.iter().flatten().map(|&i| (worth(i), i));
        wanted.all.extend(all.filter(|(worth, _)| *worth > 0.0));
        if wanted.all.len() > self.cpus {
            // No two are equal in this order, so that every machine takes the same pieces.
            wanted
                .all
                .select_nth_unstable_by(self.cpus, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            wanted.all.truncate(self.cpus);
            wanted.all.sort_unstable_by_key(|&(_, i)| i);
        }
        wanted.worth = wanted.all.iter().map(|(worth, _)| worth).sum();
        wanted.pieces.clear();
        wanted.pieces.extend(wanted.all.iter().map(|(_, i)| i));
    }
}

/// The pieces that would have the CPUs at a time, and their worth together.
#[derive(Default)]
struct Wanted {
    at: f64,
    worth: f64,
    pieces: Vec<usize>,
    /// All pieces that are worth more than 0, each with its worth.
    all: Vec<(f64, usize)>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{least, longer, sleeping};
    use super::*;

    proptest! {
        /// D is a bound at any prices, and with the fewest breaks.
        #[test]
        fn it_is_a_bound_at_any_prices(
            jobs in sleeping(), cpus in 1..4_usize, by in prop::collection::vec(0.0..3.0, 12),
        ) {
            const LONG: u64 = 1_000_000;
            let least = least(&jobs, cpus) as f64 * LONG as f64;
            let jobs = longer(&jobs, LONG);
            let (pieces, whole) = pieces_of_all(&jobs);
            let ends = pieces.iter().map(|piece| (piece.free + piece.length) as f64);
            let prices = ends.zip(&pieces).zip(by).map(|((end, piece), by)| by * end / whole[piece.job]);
            let dual = Dual::new(&pieces, &whole, cpus, &[]);
            let (value, _) = dual.at(&prices.collect::<Vec<_>>());
            let found = of_ends(&jobs, value);
            prop_assert!(found <= least, "{found} > {least}");
        }
    }
}
