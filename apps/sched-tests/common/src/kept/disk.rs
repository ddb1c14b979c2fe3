//! A profile in a file on a FAT disk, by ArceOS's own file system.
//!
//! That has no rename, and FAT removes a file by freeing first its clusters and then
//! its name. So there are two names: the new profile goes to the one that is free,
//! and the old one is removed when the new one is complete. A profile's checksum
//! tells a complete one; which of two complete ones is the newer does not matter.
//!
//! | interrupted | the next boot finds |
//! |---|---|
//! | while the new one is written | the old one, and a half one that is refused |
//! | before the old one is removed | both |
//! | while that is removed | the new one, and one that is refused |
//!
//! FREED: a name that is being removed may stand for clusters that are free already,
//! and reads as if nothing had happened. So a profile is spoilt before it is removed,
//! in one sector; and what is not intact is removed before anything is written, or
//! its removal later on would free the clusters of something else.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use axsched_ext::pbg::stored::{self, MAX_BYTES};
use axstd::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
};

use crate::platform::println;

/// Short (8.3) names, which take one entry of a directory.
const NAMES: [&str; 2] = ["/PROFILE1.PBG", "/PROFILE2.PBG"];

/// The first of the disk's profiles that is accepted; else why the last of them was
/// not. `None` if there are none.
pub fn find<R>(mut accept: impl FnMut(&[u8]) -> Result<R, String>) -> Option<Result<R, String>> {
    let mut refused = None;
    for name in NAMES {
        match read(name).map(|read| read.and_then(|bytes| accept(&bytes))) {
            None => {}
            Some(Err(why)) => refused = Some(Err(why)),
            Some(Ok(accepted)) => {
                if let Err(error) = remove(other(name)) {
                    println!("PBG cannot tidy up the disk: {error}.\n");
                }
                return Some(Ok(accepted));
            }
        }
    }
    refused
}

/// Puts `bytes` in place of the profile.
pub fn save(bytes: &[u8]) -> Option<Result<(), String>> {
    Some(write(bytes).map_err(|error| error.to_string()))
}

fn write(bytes: &[u8]) -> io::Result<()> {
    for name in NAMES {
        if !is_intact(name) {
            remove(name)?; // FREED
        }
    }
    let [first, second] = NAMES;
    let name = if exists(first) { second } else { first };
    remove(name)?;
    let mut file = File::create(name)?;
    file.write_all(bytes)?;
    drop(file); // which writes its length; there is no `flush`
    remove(other(name))
}

fn other(name: &str) -> &'static str {
    NAMES[usize::from(name == NAMES[0])]
}

fn exists(name: &str) -> bool {
    File::open(name).is_ok()
}

fn is_intact(name: &str) -> bool {
    read(name).is_some_and(|read| read.is_ok_and(|bytes| stored::decode(&bytes).is_ok()))
}

/// Removes a file, if it is there.
fn remove(name: &str) -> io::Result<()> {
    if is_intact(name) {
        let mut file = OpenOptions::new().write(true).open(name)?;
        file.write_all(b"removed\n")?; // FREED
    }
    if exists(name) {
        fs::remove_file(name)?;
    }
    Ok(())
}

/// The contents of a file, as far as they can be a profile.
fn read(name: &str) -> Option<Result<Vec<u8>, String>> {
    let mut file = File::open(name).ok()?;
    let mut read = || {
        let size = file.metadata().map_err(|error| error.to_string())?.len();
        let size = match usize::try_from(size) {
            Ok(size) if size <= MAX_BYTES => size,
            _ => return Err(format!("expected at most {MAX_BYTES} bytes, found {size}")),
        };
        let mut bytes = Vec::new();
        (bytes.try_reserve_exact(size)).map_err(|error| error.to_string())?;
        bytes.resize(size, 0);
        let mut len = 0;
        // A chain of clusters may be shorter than the size says.
        while len < size {
            match file.read(&mut bytes[len..]) {
                Ok(0) => break,
                Ok(n) => len += n,
                Err(error) => return Err(error.to_string()),
            }
        }
        bytes.truncate(len);
        Ok(bytes)
    };
    Some(read())
}
