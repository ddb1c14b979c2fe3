//! No disk: a build without the feature `disk`, or the host.

use alloc::string::String;

/// Returns `None`: there is no disk to search.
pub fn find<R>(_accept: impl FnMut(&[u8]) -> Result<R, String>) -> Option<Result<R, String>> {
    None
}

/// Returns `None`: there is no disk to write to.
pub fn save(_bytes: &[u8]) -> Option<Result<(), String>> {
    None
}
