//! A job that compresses and unpacks pages of text, like those of a log, with LZ4.
//!
//! The codec is LZ4 and not deflate. The compressor of `miniz_oxide` is a value of more than 64 KiB
//! that is made on the stack, and the whole stack of a task has 64 KiB.

use alloc::string::String;
use core::fmt::Write;

use lz4_flex::block;

use super::Numbers;

const PAGE_BYTES: usize = 4096;

/// The factor by which compression must shrink a page at least.
const RATIO: usize = 2;

const STATES: [&str; 4] = ["ready", "running", "blocked", "exited"];

/// Packs and unpacks a new page each time.
pub struct Compress {
    numbers: Numbers,
    page: String,
}

impl Compress {
    pub const fn new(numbers: Numbers) -> Self {
        Self {
            numbers,
            page: String::new(),
        }
    }

    fn write_page(&mut self) {
        self.page.clear();
        while self.page.len() < PAGE_BYTES {
            let task = self.numbers.below(64);
            let state = STATES[self.numbers.below(STATES.len())];
            let ms = self.numbers.below(1_000);
            writeln!(self.page, "[{ms:>3}] sched: task {task} is {state}").expect("a string grows");
        }
    }
}

impl super::Work for Compress {
    fn unit(&mut self) -> bool {
        self.write_page();
        let page = self.page.as_bytes();
        let packed = block::compress_prepend_size(page);
        packed.len() < page.len() / RATIO && unpacks_to(&packed, page)
    }
}

fn unpacks_to(packed: &[u8], page: &[u8]) -> bool {
    block::decompress_size_prepended(packed).is_ok_and(|unpacked| unpacked == page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_bit_is_found() {
        let mut job = Compress::new(Numbers::new(1));
        job.write_page();
        let page = job.page.as_bytes();
        let packed = block::compress_prepend_size(page);
        assert!(unpacks_to(&packed, page));
        // Byte 6 is the first after the size and a length: a byte of the text itself.
        let mut wrong = packed.clone();
        wrong[6] ^= 1;
        assert!(!unpacks_to(&wrong, page), "a character");
        assert!(!unpacks_to(&packed[..packed.len() - 1], page), "the end");
        assert!(!unpacks_to(&packed, &page[1..]), "another page");
    }

    #[test]
    fn pages_differ() {
        let mut job = Compress::new(Numbers::new(1));
        job.write_page();
        let first = job.page.clone();
        job.write_page();
        assert_ne!(first, job.page);
    }
}
