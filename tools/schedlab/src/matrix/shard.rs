//! A part of the matrix for each of several machines.
//!
//! A cell's shard follows from the cell's name alone. So a cell that is added or removed moves no
//! other, and no machine needs to know which cells the others have.

use std::{fmt, num::NonZeroU32, str::FromStr};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::project::Cell;

/// One of `count` shards, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: NonZeroU32,
    count: NonZeroU32,
}

impl FromStr for Shard {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let shard = || {
            let (number, count) = text.split_once('/')?;
            let [number, count] = [number, count].map(|word| word.parse::<NonZeroU32>().ok());
            let (number, count) = (number?, count?);
            (number <= count).then_some(Self { number, count })
        };
        shard().with_context(|| format!("--shard {text}: expected K/N with K from 1 to N, as 2/8"))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

impl Shard {
    /// Returns true if the cell belongs to the shard.
    pub fn has(self, cell: &Cell) -> bool {
        let hash = Sha256::digest(cell.to_string());
        let first = hash.first_chunk().expect("a hash has 32 bytes");
        u64::from_be_bytes(*first) % u64::from(self.count.get()) == u64::from(self.number.get() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(apps: usize) -> Vec<Cell> {
        let cell = |app, policy| Cell::new("x86_64", &format!("app{app}"), policy);
        let policies = ["sched_rr", "sched_cfs", "stock_rr"];
        (0..apps)
            .flat_map(|app| policies.map(|policy| cell(app, policy)))
            .collect()
    }

    fn shard(text: &str) -> Shard {
        text.parse().unwrap()
    }

    #[test]
    fn every_cell_is_in_one_shard_of_about_the_same_size() {
        let mut sizes = [0; 8];
        for cell in cells(88) {
            let of: Vec<usize> = (0..8)
                .filter(|n| shard(&format!("{}/8", n + 1)).has(&cell))
                .collect();
            assert_eq!(of.len(), 1, "{cell}: {of:?}");
            sizes[of[0]] += 1;
        }
        assert!(
            sizes.iter().all(|size| (20..=46).contains(size)),
            "{sizes:?}"
        );
        assert!(cells(9).iter().all(|cell| shard("1/1").has(cell)));
    }

    /// Other machines may have another version of this program. With 256 shards a cell is in the
    /// one that the eighth byte of `printf x86_64/app0/sched_rr | sha256sum` names.
    #[test]
    fn cell_keeps_its_shard_for_good() {
        let shards: Vec<_> = cells(2)
            .iter()
            .map(|cell| (1..=256).find(|n| shard(&format!("{n}/256")).has(cell)))
            .collect();
        assert_eq!(shards, [1, 246, 254, 10, 163, 197].map(Some));
    }
}
