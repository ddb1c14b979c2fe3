//! One figure over several tick phases: how far it depends on where in a timer
//! tick the workload started.

/// The mean and the range; of one tick phase all are the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// At the first tick phase, 0: what `make run` prints.
    pub first: f64,
    pub least: f64,
    pub mean: f64,
    pub most: f64,
    /// How many tick phases.
    pub count: usize,
}

impl Spread {
    /// What a spread is in a CSV file: `value` is what the first tick phase gave, the others
    /// are over all.
    pub const CSV_COLUMNS: [&str; 5] = ["value", "min", "mean", "max", "phases"];

    /// The fields of these columns.
    pub fn csv_fields(&self, decimals: usize) -> [String; 5] {
        let [first, least, mean, most] = [self.first, self.least, self.mean, self.most]
            .map(|value| format!("{value:.decimals$}"));
        [first, least, mean, most, self.count.to_string()]
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
            count,
        })
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

    /// Whether there is no order between the two: not every value of one is below
    /// every value of the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.least <= other.most && other.least <= self.most
    }
}

/// `±0.60 %`, or nothing of one tick phase.
pub fn deviation(spread: &Spread) -> String {
    spread
        .deviation_percent()
        .map_or(String::new(), |percent| format!("±{percent:.2} %"))
}

/// A word of letters for each row: two rows share a letter if and only if their ranges
/// overlap. A row that overlaps with no other has none.
///
/// Ranges on a line, so each largest set of rows that all overlap is met where one of
/// them begins; each of those gets a letter, from the lowest on.
pub fn letters(rows: &[Option<Spread>]) -> Vec<String> {
    let known = || rows.iter().flatten();
    let mut begins: Vec<f64> = known().map(|row| row.least).collect();
    begins.sort_by(f64::total_cmp);
    begins.dedup();
    let at = |place: f64| -> Vec<usize> {
        let covers =
            |row: &Option<Spread>| row.is_some_and(|r| r.least <= place && place <= r.most);
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
