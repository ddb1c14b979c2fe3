//! Times as counts, and in units for people.

use anyhow::{Result, bail};

/// The counter of a profile. Counts are shown in ms if its frequency is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    frequency_hz: u64,
}

impl Clock {
    pub fn new(frequency_hz: u64) -> Self {
        Self { frequency_hz }
    }

    /// Returns `ms` or `counts`.
    pub fn unit(self) -> &'static str {
        if self.frequency_hz == 0 {
            "counts"
        } else {
            "ms"
        }
    }

    /// Returns counts as a number of [`unit`](Self::unit)s, without the unit.
    pub fn show(self, counts: f64) -> String {
        if self.frequency_hz == 0 {
            format!("{counts:.0}")
        } else {
            format!("{:.3}", counts * 1e3 / self.frequency_hz as f64)
        }
    }

    /// Returns a value of the figure with this index: the first three are times, the others counts.
    pub fn figure(self, index: usize, value: f64) -> String {
        match index {
            0..3 => self.show(value),
            _ => Self::number(value),
        }
    }

    /// Returns a number with as many decimals as it has, one at most.
    pub fn number(value: f64) -> String {
        format!("{value:.1}").trim_end_matches(".0").to_owned()
    }

    /// Returns the counts that are not more than `text`, as `50ms` or `5000counts`.
    pub fn counts(self, text: &str) -> Result<u64> {
        const EXPECTED: &str = "a time as 50ms, 1.5s, 20us, 100ns or 5000counts";
        let digits = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let per_second: u128 = match unit.trim() {
            "s" => 1,
            "ms" => 1_000,
            "us" | "µs" => 1_000_000,
            "ns" => 1_000_000_000,
            "counts" | "count" => 0,
            _ => bail!("--deadline: expected {EXPECTED}, found `{text}`"),
        };
        // The number times 10^9.
        let Some(scaled) = scaled(number) else {
            bail!("--deadline: expected {EXPECTED}, found `{text}`");
        };
        let counts = match (per_second, self.frequency_hz) {
            (0, _) => scaled / 1_000_000_000,
            (_, 0) => bail!(
                "--deadline: expected counts, as 5000counts, since the profile does not say how long one is; found `{text}`"
            ),
            (per_second, hz) => match scaled.checked_mul(hz.into()) {
                Some(product) => product / (per_second * 1_000_000_000),
                None => u128::MAX,
            },
        };
        match u64::try_from(counts) {
            Ok(counts) => Ok(counts),
            Err(_) => bail!("--deadline: expected less than 2^64 counts, found `{text}`"),
        }
    }
}

/// Returns a decimal number times 10^9; `None` if it is no number, or finer than that.
fn scaled(number: &str) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    Some(u128::from(whole) * 1_000_000_000 + u128::from(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_golden;

    #[test]
    fn times_become_counts_and_are_never_longer() {
        for (hz, text, counts) in [
            (1_000_000_000, "50ms", 50_000_000),
            (10_000_000, "1.5s", 15_000_000),
            (10_000_000, "199 ns", 1),
            (62_500_000, "0.001us", 0),
            (0, "5000counts", 5000),
            (1, "18446744073709551615counts", u64::MAX),
        ] {
            assert_eq!(Clock::new(hz).counts(text).unwrap(), counts, "{text}");
        }
    }

    #[test]
    fn wrong_times_are_refused() {
        let errors = [
            "",
            "50",
            "ms",
            "5 parsecs",
            "-5ms",
            "1.2.3s",
            "1.0000000001s",
            ".5s",
            "5.s",
            "inf s",
            "99999999999999999999s",
            "18446744073709551615s",
        ]
        .map(|text| format!("{}\n", Clock::new(1_000_000_000).counts(text).unwrap_err()));
        let unknown = Clock::new(0).counts("5ms").unwrap_err();
        assert_golden(
            "profile-times.txt",
            format!("{}{unknown}\n", errors.concat()),
        );
    }

    #[test]
    fn counts_are_shown_in_ms_where_that_is_known() {
        assert_eq!(Clock::new(1_000_000_000).show(3_200_105_000.0), "3200.105");
        assert_eq!(Clock::new(0).show(3_200_105.0), "3200105");
    }
}
