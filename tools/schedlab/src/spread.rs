//! One figure over several boots: at several tick phases, how far it depends on where in a
//! timer tick the workload started; in real time, what the host does to it.

/// The mean and the range; of one boot all are the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Of the first boot, at tick phase 0 if it has one: what `make run` prints.
    pub first: f64,
    pub least: f64,
    pub mean: f64,
    pub most: f64,
    /// Of boots in real time only: their mean and range tell more of the host's worst moment
    /// than of the scheduler.
    pub quartiles: Option<Quartiles>,
    /// How many boots.
    pub count: usize,
}

/// A quarter of the values is at most `low`, half of them `median`, and three quarters `high`;
/// between two values they are in proportion (R's type 7).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quartiles {
    pub low: f64,
    pub median: f64,
    pub high: f64,
}

impl Quartiles {
    fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let at = |quarter: usize| {
            let (whole, rest) = (last * quarter / 4, last * quarter % 4);
            let (below, above) = (sorted[whole], sorted[last.min(whole + 1)]);
            below + (above - below) * rest as f64 / 4.0
        };
        Some(Self {
            low: at(1),
            median: at(2),
            high: at(3),
        })
    }
}

impl Spread {
    /// What a spread is in a CSV file: `value` is what the first tick phase gave, the others
    /// are over all.
    pub const CSV_COLUMNS: [&str; 5] = ["value", "min", "mean", "max", "phases"];

    /// What a spread over boots in real time is in a CSV file.
    pub const BOOTS_CSV_COLUMNS: [&str; 8] =
        ["value", "min", "q1", "median", "q3", "max", "mean", "boots"];

    /// The fields of [`CSV_COLUMNS`](Self::CSV_COLUMNS).
    pub fn csv_fields(&self, decimals: usize) -> [String; 5] {
        let [first, least, mean, most] = [self.first, self.least, self.mean, self.most]
            .map(|value| format!("{value:.decimals$}"));
        [first, least, mean, most, self.count.to_string()]
    }

    /// The fields of [`BOOTS_CSV_COLUMNS`](Self::BOOTS_CSV_COLUMNS); empty are those of the
    /// quartiles if there are none.
    pub fn boots_csv_fields(&self, decimals: usize) -> [String; 8] {
        let [first, least, mean, most, count] = self.csv_fields(decimals);
        let quartiles = self.quartiles.map(|q| [q.low, q.median, q.high]);
        let [low, median, high] = quartiles
            .map(|three| three.map(|value| format!("{value:.decimals$}")))
            .unwrap_or_default();
        [first, least, low, median, high, most, mean, count]
    }

    /// The spread of these values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let fold = |f: fn(f64, f64) -> f64| values.iter().copied().reduce(f);
        let count = values.len();
        Some(Self {
            first: *values.first()?,
            least: fold(f64::min)?,
            mean: match values {
                [only] => *only,
                _ => values.iter().sum::<f64>() / count as f64,
            },
            most: fold(f64::max)?,
            quartiles: None,
            count,
        })
    }

    /// The same of boots in real time, so with quartiles.
    pub fn of_boots(values: &[f64]) -> Option<Self> {
        Some(Self {
            quartiles: Some(Quartiles::of(values)?),
            ..Self::of(values)?
        })
    }

    /// What stands for all of them: the median if there is one, the mean otherwise.
    pub fn middle(&self) -> f64 {
        self.quartiles
            .map_or(self.mean, |quartiles| quartiles.median)
    }

    /// From where to where it is held to reach: over the whole range, or from quartile to
    /// quartile. The host spoils a boot here and there, and the more boots there are, the
    /// more certainly some ranges would all overlap for that.
    fn extent(&self) -> (f64, f64) {
        match self.quartiles {
            None => (self.least, self.most),
            Some(quartiles) => (quartiles.low, quartiles.high),
        }
    }

    /// The furthest that a value is from the mean, in % of it; nothing of one value.
    pub fn deviation_percent(&self) -> Option<f64> {
        let furthest = f64::max(self.most - self.mean, self.mean - self.least);
        match (self.count, self.mean == 0.0) {
            (1, _) => None,
            (_, true) => Some(0.0),
            (_, false) => Some(furthest / self.mean.abs() * 100.0),
        }
    }

    /// Whether there is no order between the two: not every value of one is below every value
    /// of the other; of boots in real time, not the middle half of one below that of the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        let ((low, high), (other_low, other_high)) = (self.extent(), other.extent());
        low <= other_high && other_low <= high
    }
}

/// How far it goes, for behind [`Spread::middle`]: `±0.60 %` around a mean, `(285.7 to 322.2)`
/// around a median, by `number`; nothing of one boot.
pub fn reach(spread: &Spread, number: impl Fn(f64) -> String) -> String {
    match spread.quartiles {
        Some(_) if spread.count > 1 => {
            format!("({} to {})", number(spread.least), number(spread.most))
        }
        Some(_) => String::new(),
        None => deviation(spread),
    }
}

/// `±0.60 %`, or nothing of one tick phase.
pub fn deviation(spread: &Spread) -> String {
    spread
        .deviation_percent()
        .map_or(String::new(), |percent| format!("±{percent:.2} %"))
}

/// A word of letters for each row: two rows share a letter if and only if they
/// [overlap](Spread::overlaps). A row that overlaps with no other has none.
///
/// Ranges on a line, so each largest set of rows that all overlap is met where one of
/// them begins; each of those gets a letter, from the lowest on.
pub fn letters(rows: &[Option<Spread>]) -> Vec<String> {
    let known = || rows.iter().flatten();
    let mut begins: Vec<f64> = known().map(|row| row.extent().0).collect();
    begins.sort_by(f64::total_cmp);
    begins.dedup();
    let at = |place: f64| -> Vec<usize> {
        let covers = |row: &Option<Spread>| {
            row.is_some_and(|row| {
                let (low, high) = row.extent();
                low <= place && place <= high
            })
        };
        (0..rows.len()).filter(|i| covers(&rows[*i])).collect()
    };
    let sets: Vec<Vec<usize>> = begins.into_iter().map(at).collect();
    let within = |small: &[usize], large: &[usize]| small.iter().all(|i| large.contains(i));
    let largest = |(number, set): &(usize, &Vec<usize>)| {
        let in_another = sets.iter().enumerate().any(|(other, larger)| {
            other != *number && within(set, larger) && (set.len() < larger.len() || other < *number)
        });
        set.len() > 1 && !in_another
    };
    let mut words = vec![String::new(); rows.len()];
    let chosen = sets.iter().enumerate().filter(largest);
    for (letter, (_, set)) in chosen.enumerate() {
        for row in set {
            words[*row] += &name(letter);
        }
    }
    words
}

/// `a` to `z`, then `a1` to `z1` and so on.
fn name(number: usize) -> String {
    let letter = char::from(b'a' + (number % 26) as u8);
    match number / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(least: f64, most: f64) -> Option<Spread> {
        Spread::of(&[least, most])
    }

    #[test]
    fn a_spread_is_the_mean_and_the_range() {
        let spread = Spread::of(&[101.0, 99.0, 104.0, 96.0]).unwrap();
        let of = (spread.first, spread.least, spread.mean, spread.most);
        assert_eq!((of, spread.count), ((101.0, 96.0, 100.0, 104.0), 4));
        assert_eq!(deviation(&spread), "±4.00 %");
        // The further end counts, so that every value is within.
        let skewed = Spread::of(&[10.0, 10.0, 10.0, 14.0]).unwrap();
        assert_eq!(deviation(&skewed), "±27.27 %");
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn of_boots_in_real_time_the_median_stands_for_all() {
        let of = |values: &[f64]| {
            let spread = Spread::of_boots(values).unwrap();
            let reach = reach(&spread, |value| format!("{value:.1}"));
            (spread.middle(), spread.first, reach)
        };
        // The host was away in one of them.
        assert_eq!(
            of(&[11.0, 90.0, 10.0]),
            (11.0, 11.0, "(10.0 to 90.0)".into())
        );
        assert_eq!(of(&[4.0, 1.0, 3.0, 2.0]), (2.5, 4.0, "(1.0 to 4.0)".into()));
        assert_eq!(of(&[7.0]), (7.0, 7.0, String::new()));
        assert_eq!(Spread::of_boots(&[]), None);
        let phases = Spread::of(&[11.0, 90.0, 10.0]).unwrap();
        assert_eq!((phases.quartiles, phases.middle()), (None, 37.0));
        assert_eq!(reach(&phases, |_| unreachable!()), "±143.24 %");
        let boots = Spread::of_boots(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        let fields = boots.boots_csv_fields(1);
        assert_eq!(
            fields,
            ["4.0", "1.0", "1.8", "2.5", "3.2", "4.0", "2.5", "4"]
        );
        let none = phases.boots_csv_fields(0);
        assert_eq!(none, ["11", "10", "", "", "", "90", "37", "3"]);
    }

    #[test]
    fn quartiles_are_in_proportion_between_two_values() {
        let of = |values: &[f64]| {
            let quartiles = Quartiles::of(values)?;
            Some((quartiles.low, quartiles.median, quartiles.high))
        };
        let up_to = |n: u32| of(&(1..=n).rev().map(f64::from).collect::<Vec<_>>());
        assert_eq!(up_to(0), None);
        assert_eq!(up_to(1), Some((1.0, 1.0, 1.0)));
        assert_eq!(up_to(2), Some((1.25, 1.5, 1.75)));
        assert_eq!(up_to(5), Some((2.0, 3.0, 4.0)));
        assert_eq!(up_to(10), Some((3.25, 5.5, 7.75)));
    }

    #[test]
    fn a_boot_that_the_host_spoilt_does_not_take_away_the_order() {
        let boots = |values: [f64; 5]| Spread::of_boots(&values);
        let one = boots([10.0, 11.0, 90.0, 12.0, 11.5]);
        let other = boots([20.0, 21.0, 22.0, 9.0, 21.5]);
        let third = boots([12.0, 12.0, 13.0, 12.5, 12.0]);
        assert_eq!(letters(&[one, other, third]), ["a", "", "a"]);
        // Of tick phases every one counts.
        let phases = |values: [f64; 5]| Spread::of(&values);
        let one = phases([10.0, 11.0, 90.0, 12.0, 11.5]);
        assert!(one.unwrap().overlaps(&other.unwrap()));
    }

    #[test]
    fn one_value_is_itself_and_has_no_deviation() {
        let one = Spread::of(&[0.1]).unwrap();
        assert_eq!((one.least, one.mean, one.most), (0.1, 0.1, 0.1));
        assert_eq!(deviation(&one), "");
        assert_eq!(deviation(&Spread::of(&[0.0, 0.0]).unwrap()), "±0.00 %");
    }

    #[test]
    fn rows_share_a_letter_if_and_only_if_their_ranges_overlap() {
        // The middle one reaches both neighbours, which do not reach each other.
        let rows = [
            range(30.0, 40.0),
            None,
            range(10.0, 20.0),
            range(18.0, 32.0),
            range(50.0, 60.0),
            range(60.0, 60.0),
        ];
        assert_eq!(letters(&rows), ["b", "", "a", "ab", "c", "c"]);
        let apart = [range(1.0, 2.0), range(3.0, 4.0)];
        assert_eq!(letters(&apart), ["", ""]);
    }

    #[test]
    fn letters_say_the_same_as_every_pair() {
        // All sets of six ranges of a small world, thinned out.
        let mut seed = 1u64;
        let mut next = |below: u64| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        for _ in 0..500 {
            let rows: Vec<_> = (0..8)
                .map(|_| {
                    let least = next(12) as f64;
                    range(least, least + next(5) as f64)
                })
                .collect();
            let words = letters(&rows);
            for (a, word_a) in rows.iter().zip(&words) {
                for (b, word_b) in rows.iter().zip(&words) {
                    if std::ptr::eq(a, b) {
                        continue;
                    }
                    let shared = word_a.chars().any(|letter| word_b.contains(letter));
                    assert_eq!(
                        shared,
                        a.unwrap().overlaps(&b.unwrap()),
                        "{rows:?} {words:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn there_are_letters_enough() {
        assert_eq!([0, 25, 26, 53].map(name), ["a", "z", "a1", "b2"]);
    }
}
