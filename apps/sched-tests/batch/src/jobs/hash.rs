//! A job that hashes pages with known digests with SHA-256.

use sha2::{Digest, Sha256};

const PAGE_BYTES: usize = 4096;

/// The byte that fills each page, and the digest that another program computes for it:
/// `head -c 4096 /dev/zero | tr '\0' a | sha256sum`
const PAGES: [(u8, [u128; 2]); 4] = [
    (
        b'a',
        [
            0xc93e_ee2d_0db0_2f10_acc7_460d_9576_e122,
            0xdcf8_cd53_c4bf_8dfc_ae1b_3e74_ebcf_ff5a,
        ],
    ),
    (
        b'b',
        [
            0x5389_688a_bf55_bc46_6393_8508_5bfa_f1fd,
            0xa355_2f63_303e_4d4a_55d6_64d0_f515_d6ac,
        ],
    ),
    (
        b'c',
        [
            0x3abc_94a9_3a42_d0ee_e5c8_dda0_315f_9f13,
            0x43e2_ba36_b552_ab51_2c43_5fd4_989c_1ac6,
        ],
    ),
    (
        b'd',
        [
            0xef94_c126_bfb6_793c_3b46_596f_7acc_e4a9,
            0x8382_cac6_de2f_3a2a_2fe2_4aa6_4710_c534,
        ],
    ),
];

/// Hashes the pages one after another, again and again.
pub struct Hash {
    next: usize,
}

impl Hash {
    pub const fn new() -> Self {
        Self { next: 0 }
    }
}

impl super::Work for Hash {
    fn unit(&mut self) -> bool {
        let (fill, digest) = PAGES[self.next];
        self.next = (self.next + 1) % PAGES.len();
        has_digest(&[fill; PAGE_BYTES], digest)
    }
}

fn has_digest(page: &[u8], expected: [u128; 2]) -> bool {
    let digest = Sha256::digest(page);
    digest
        .iter()
        .eq(expected.map(u128::to_be_bytes).as_flattened())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_with_a_wrong_bit_is_found() {
        let (fill, digest) = PAGES[0];
        let mut page = [fill; PAGE_BYTES];
        assert!(has_digest(&page, digest));
        page[PAGE_BYTES / 2] ^= 1;
        assert!(!has_digest(&page, digest));
    }
}
