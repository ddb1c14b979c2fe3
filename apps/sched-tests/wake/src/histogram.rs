//! A histogram with logarithmic bins.

use alloc::{format, string::String, vec};

/// The width of the longest bar.
const WIDTH: usize = 30;

/// Returns histograms side by side, with titles, from the first bin that is not 0 to the last.
pub fn histogram(columns: &[(&str, &[u64])]) -> String {
    let bins = columns.iter().map(|(_, bins)| bins.len()).max();
    let first = columns
        .iter()
        .filter_map(|(_, bins)| bins.iter().position(|&n| n > 0));
    let mut text = format!("{:>17}", "µs");
    for (title, _) in columns {
        text += &format!("  {title:<width$}", width = WIDTH + 6);
    }
    let mut lines = vec![text];
    for bin in first.min().unwrap_or(0)..bins.unwrap_or(0) {
        let from = (1u64 << bin) >> 1;
        let mut line = format!("{from:>7} – {:>7}", 1u64 << bin);
        for (_, bins) in columns {
            let count = bins.get(bin).copied().unwrap_or(0);
            let most = bins.iter().max().copied().unwrap_or(1).max(1);
            let length = (count as usize * WIDTH).div_ceil(most as usize);
            let bar = "#".repeat(length);
            line += &format!("  {count:>5} {bar:<WIDTH$}");
        }
        lines.push(line);
    }
    let mut text = String::new();
    for line in lines {
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_has_what_is_between_the_first_and_the_last() {
        let text = histogram(&[("one", &[0, 0, 30, 1]), ("two", &[0, 0, 0, 0, 2])]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[1].contains("2 –       4     30 ####"), "{text}");
        assert!(lines[2].contains(" 1 #  "), "what is there shows: {text}");
        assert!(lines[3].ends_with(&"#".repeat(WIDTH)), "{text}");
    }
}
