//! A job that sorts numbers.

use alloc::vec::Vec;

use super::Numbers;

const COUNT: usize = 1024;

/// Sorts new numbers each time.
pub struct Sort(pub Numbers);

impl super::Work for Sort {
    fn unit(&mut self) -> bool {
        let mut numbers: Vec<u32> = (0..COUNT).map(|_| self.0.next()).collect();
        let before = Contents::of(&numbers);
        numbers.sort_unstable();
        numbers.is_sorted() && Contents::of(&numbers) == before
    }
}

/// The properties of a list that sorting keeps.
#[derive(PartialEq)]
struct Contents {
    /// How many numbers there are.
    count: usize,
    /// The sum of the numbers.
    sum: u64,
    /// The sum of their squares, modulo 2⁶⁴.
    squares: u64,
}

impl Contents {
    fn of(numbers: &[u32]) -> Self {
        let numbers_of = || numbers.iter().map(|&n| u64::from(n));
        Self {
            count: numbers.len(),
            sum: numbers_of().sum(),
            squares: numbers_of().fold(0, |sum, n| sum.wrapping_add(n * n)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_contents_are_found() {
        let sorted = Contents::of(&[1, 4, 6, 9]);
        assert!(sorted == Contents::of(&[9, 1, 6, 4]));
        assert!(sorted != Contents::of(&[1, 4, 6]), "one is lost");
        assert!(sorted != Contents::of(&[1, 4, 6, 8]), "one has changed");
        assert!(sorted != Contents::of(&[1, 5, 5, 9]), "the same sum");
    }
}
