//! A profile in a file on a FAT disk, through ArceOS's own file system.
//!
//! That file system has no rename, and FAT removes a file by freeing first its clusters and then
//! its name. So there are two names. The new profile goes to the name that is free, and the old
//! profile is removed when the new one is complete. A profile's checksum tells whether it is
//! complete. Which of two complete profiles is the newer does not matter.
//!
//! | interrupted | the next boot finds |
//! |---|---|
//! | while the new one is written | the old one, and a half one that is refused |
//! | before the old one is removed | both |
//! | while the old one is removed | the new one, and one that is refused |
//!
//! FREED: a name that is being removed may stand for clusters that are free already, and the file
//! still reads as before. So a profile is spoilt, in one sector, before it is removed. A profile
//! that is not intact is removed before anything is written. Otherwise its removal later on could
//! free the clusters of another file.

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

/// The two names, in the short form (8.3), which takes one entry of a directory.
const NAMES: [&str; 2] = ["/PROFILE1.PBG", "/PROFILE2.PBG"];

/// Returns the result of the first of the disk's profiles that `accept` takes. If it takes none,
/// returns why it refused the last. Returns `None` if there are no profiles.
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

/// Saves `bytes` in place of the present profile.
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
    let name = if is_present(first) { second } else { first };
    remove(name)?;
    let mut file = File::create(name)?;
    file.write_all(bytes)?;
    drop(file); // which writes its length; there is no `flush`
    remove(other(name))
}

fn other(name: &str) -> &'static str {
    NAMES[usize::from(name == NAMES[0])]
}

fn is_present(name: &str) -> bool {
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
    if is_present(name) {
        fs::remove_file(name)?;
    }
    Ok(())
}

/// Returns the contents of a file, or the reason why they cannot be a profile. Returns `None` if
/// there is no such file.
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
        // A chain of clusters may be shorter than the size in the directory.
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
