//! One figure over several boots. At several tick phases it shows how much depends on the phase of
//! the timer tick at which the workload starts; in real time, how much depends on the host.

/// The mean and the range of a figure. Over one boot all values are equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The value of the first boot, at tick phase 0 if it has one, as `make run` prints it.
    pub first: f64,
    pub least: f64,
    pub mean: f64,
    pub most: f64,
    /// The quartiles of boots in real time. Their mean and range depend more on the host's worst
    /// moment than on the scheduler.
    pub quartiles: Option<Quartiles>,
    /// The number of boots.
    pub count: usize,
}

/// The quartiles: a quarter of the values is at most `low`, half of them at most `median`, and
/// three quarters at most `high`. Between two values they are interpolated (R's type 7).
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
    /// The columns of a spread in a CSV file. `value` is that of the first tick phase.
    pub const CSV_COLUMNS: [&str; 5] = ["value", "min", "mean", "max", "phases"];

    /// The columns of a spread over boots in real time in a CSV file.
    pub const BOOTS_CSV_COLUMNS: [&str; 8] =
        ["value", "min", "q1", "median", "q3", "max", "mean", "boots"];

    /// Returns the fields of [`CSV_COLUMNS`](Self::CSV_COLUMNS).
    pub fn csv_fields(&self, decimals: usize) -> [String; 5] {
        let [first, least, mean, most] = [self.first, self.least, self.mean, self.most]
            .map(|value| format!("{value:.decimals$}"));
        [first, least, mean, most, self.count.to_string()]
    }

    /// Returns the fields of [`BOOTS_CSV_COLUMNS`](Self::BOOTS_CSV_COLUMNS). Missing quartiles are
    /// empty.
    pub fn boots_csv_fields(&self, decimals: usize) -> [String; 8] {
        let [first, least, mean, most, count] = self.csv_fields(decimals);
        let quartiles = self.quartiles.map(|q| [q.low, q.median, q.high]);
        let [low, median, high] = quartiles
            .map(|three| three.map(|value| format!("{value:.decimals$}")))
            .unwrap_or_default();
        [first, least, low, median, high, most, mean, count]
    }

    /// Returns the spread of these values; `None` if there are none.
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

    /// Returns the spread of boots in real time, with quartiles; `None` if there are no values.
    pub fn of_boots(values: &[f64]) -> Option<Self> {
        Some(Self {
            quartiles: Some(Quartiles::of(values)?),
            ..Self::of(values)?
        })
    }

    /// Returns the median if there are quartiles, otherwise the mean.
    pub fn middle(&self) -> f64 {
        self.quartiles
            .map_or(self.mean, |quartiles| quartiles.median)
    }

    /// Returns the interval for comparisons: the whole range, or from quartile to quartile. The
    /// host disturbs some boots, and with enough boots all ranges would overlap.
    fn extent(&self) -> (f64, f64) {
        let quartiles = self
            .quartiles
            .map(|quartiles| (quartiles.low, quartiles.high));
        quartiles.unwrap_or((self.least, self.most))
    }

    /// Returns the largest distance of a value from the mean, in % of the mean; `None` for one
    /// value.
    pub fn deviation_percent(&self) -> Option<f64> {
        let furthest = f64::max(self.most - self.mean, self.mean - self.least);
        match (self.count, self.mean == 0.0) {
            (1, _) => None,
            (_, true) => Some(0.0),
            (_, false) => Some(furthest / self.mean.abs() * 100.0),
        }
    }

    /// Returns true if the ranges overlap, or in real time the middle halves. Then there is no
    /// order between the two.
    pub fn overlaps(&self, other: &Self) -> bool {
        let ((low, high), (other_low, other_high)) = (self.extent(), other.extent());
        low <= other_high && other_low <= high
    }
}

/// Returns the text behind [`Spread::middle`]: `±0.60 %` around a mean, or `(285.7 to 322.2)`
/// around a median, in the format of `number`. The text is empty for one boot.
pub fn reach(spread: &Spread, number: impl Fn(f64) -> String) -> String {
    match (spread.quartiles, spread.count) {
        (None, _) => deviation(spread),
        (Some(_), 1) => String::new(),
        (Some(_), _) => format!("({} to {})", number(spread.least), number(spread.most)),
    }
}

/// Returns the deviation as `±0.60 %`; empty for one tick phase.
pub fn deviation(spread: &Spread) -> String {
    spread
        .deviation_percent()
        .map_or(String::new(), |percent| format!("±{percent:.2} %"))
}

/// Returns a word of letters for each row. Two rows share a letter if and only if they
/// [overlap](Spread::overlaps). The word of a row that overlaps no other is empty.
///
/// The ranges are intervals on a line, so each maximal set of rows that all overlap contains the
/// lower end of one of them. Each of these sets has a letter, from the lowest on.
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

/// Returns the name of a set: `a` to `z`, then `a1` to `z1` and so on.
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

    #[test]
    fn spread_has_the_mean_the_range_and_in_real_time_the_quartiles() {
        let tenths = |value: f64| format!("{value:.1}");
        for (values, phases, boots, deviation, range) in [
            (
                &[101.0, 99.0, 104.0, 96.0][..],
                ["101.0", "96.0", "100.0", "104.0", "4"],
                [
                    "101.0", "96.0", "98.2", "100.0", "101.8", "104.0", "100.0", "4",
                ],
                "±4.00 %",
                "(96.0 to 104.0)",
            ),
            // The further end counts, so that every value is within the deviation.
            (
                &[10.0, 10.0, 10.0, 14.0],
                ["10.0", "10.0", "11.0", "14.0", "4"],
                ["10.0", "10.0", "10.0", "10.0", "11.0", "14.0", "11.0", "4"],
                "±27.27 %",
                "(10.0 to 14.0)",
            ),
            (
                &[11.0, 90.0, 10.0],
                ["11.0", "10.0", "37.0", "90.0", "3"],
                ["11.0", "10.0", "10.5", "11.0", "50.5", "90.0", "37.0", "3"],
                "±143.24 %",
                "(10.0 to 90.0)",
            ),
            (
                &[0.1],
                ["0.1", "0.1", "0.1", "0.1", "1"],
                ["0.1", "0.1", "0.1", "0.1", "0.1", "0.1", "0.1", "1"],
                "",
                "",
            ),
            (
                &[0.0, 0.0],
                ["0.0", "0.0", "0.0", "0.0", "2"],
                ["0.0", "0.0", "0.0", "0.0", "0.0", "0.0", "0.0", "2"],
                "±0.00 %",
                "(0.0 to 0.0)",
            ),
        ] {
            let spread = Spread::of(values).unwrap();
            assert_eq!(spread.csv_fields(1), phases);
            assert_eq!(
                (reach(&spread, tenths), spread.middle()),
                (deviation.into(), spread.mean)
            );
            let spread = Spread::of_boots(values).unwrap();
            assert_eq!(spread.boots_csv_fields(1), boots);
            assert_eq!(
                (reach(&spread, tenths), tenths(spread.middle())),
                (range.into(), boots[3].into())
            );
        }
        assert_eq!((Spread::of(&[]), Spread::of_boots(&[])), (None, None));
        let phases = Spread::of(&[11.0, 90.0, 10.0]).unwrap();
        let fields = ["11", "10", "", "", "", "90", "37", "3"];
        assert_eq!(phases.boots_csv_fields(0), fields);
    }

    #[test]
    fn quartiles_are_interpolated_between_two_values() {
        for (n, expected) in [
            (1, [1.0, 1.0, 1.0]),
            (2, [1.25, 1.5, 1.75]),
            (5, [2.0, 3.0, 4.0]),
            (10, [3.25, 5.5, 7.75]),
        ] {
            let values: Vec<_> = (1..=n).rev().map(f64::from).collect();
            let Quartiles { low, median, high } = Quartiles::of(&values).unwrap();
            assert_eq!([low, median, high], expected);
        }
    }

    #[test]
    fn disturbed_boot_does_not_remove_the_order() {
        let boots = |values: [f64; 5]| Spread::of_boots(&values);
        let one = boots([10.0, 11.0, 90.0, 12.0, 11.5]);
        let other = boots([20.0, 21.0, 22.0, 9.0, 21.5]);
        let third = boots([12.0, 12.0, 13.0, 12.5, 12.0]);
        assert_eq!(letters(&[one, other, third]), ["a", "", "a"]);
        // Over tick phases every value counts.
        let one = Spread::of(&[10.0, 11.0, 90.0, 12.0, 11.5]);
        assert!(one.unwrap().overlaps(&other.unwrap()));
    }

    #[test]
    fn rows_share_a_letter_if_and_only_if_their_ranges_overlap() {
        let range = |least: f64, most: f64| Spread::of(&[least, most]);
        // The middle one overlaps both neighbours, which do not overlap each other.
        let rows = [
            range(30.0, 40.0),
            None,
            range(10.0, 20.0),
            range(18.0, 32.0),
            range(50.0, 60.0),
            range(60.0, 60.0),
        ];
        assert_eq!(letters(&rows), ["b", "", "a", "ab", "c", "c"]);
        let mut seed = 1u64;
        let mut next = |below: u64| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            ((seed >> 33) % below) as f64
        };
        for _ in 0..500 {
            let rows = [(); 8].map(|()| {
                let least = next(12);
                range(least, least + next(5))
            });
            let words = letters(&rows);
            for (i, j) in (0..8).flat_map(|i| (0..i).map(move |j| (i, j))) {
                let is_shared = words[i].chars().any(|letter| words[j].contains(letter));
                let overlaps = rows[i].unwrap().overlaps(&rows[j].unwrap());
                assert_eq!(is_shared, overlaps, "{rows:?} {words:?}");
            }
        }
        assert_eq!([0, 25, 26, 53].map(name), ["a", "z", "a1", "b2"]);
    }
}
