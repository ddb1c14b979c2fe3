//! No disk: a build without the feature `disk`, or the host.

use alloc::string::String;

/// Finds nothing.
pub fn find<R>(_accept: impl FnMut(&[u8]) -> Result<R, String>) -> Option<Result<R, String>> {
    None
}

/// Saves nothing.
pub fn save(_bytes: &[u8]) -> Option<Result<(), String>> {
    None
}
