//! SHA-256 as text.

use sha2::{Digest, Sha256};

/// Returns the digest of these bytes in hexadecimal.
pub fn digest(bytes: impl AsRef<[u8]>) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
