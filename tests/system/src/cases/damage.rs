//! Profiles that are of no use: on the disk each is refused with the reason, the program runs,
//! and a good one is there the next time.

use std::{fs, fs::File, io::Read, os::unix::fs::FileExt, path::Path};

use anyhow::{Context as _, Result, bail, ensure};

use super::helpers::{ANY_ARCH, pbg, results};
use crate::{
    frame::{Case, Context, case},
    results::Results,
};

/// What becomes of a good profile.
type Damage = fn(&[u8]) -> Vec<u8>;

/// What the case is called, what becomes of a profile, and the reason that is said.
const ON_DISK: [(&str, Damage, &str); 9] = [
    (
        "a truncated profile",
        |good| good[..good.len() - 10].into(),
        "truncated: expected",
    ),
    (
        "a damaged profile",
        flipped,
        "damaged: expected the checksum",
    ),
    (
        "another program's profile",
        |good| resealed(good, 24, &[0, 1, 2, 3]),
        "at SCALE=100, found one at another",
    ),
    (
        "another architecture's profile",
        |good| resealed(good, 32, &[0x22]),
        "found one of riscv64",
    ),
    (
        "a profile of version 3",
        |good| resealed(good, 8, &[3]),
        "found version 3",
    ),
    (
        "a hostile profile",
        // Of more runs than there can be bytes for.
        |good| resealed(good, 45, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
        "inconsistent at byte",
    ),
    ("noise on the disk", |_| noise(), "not a profile"),
    ("an empty file on the disk", |_| Vec::new(), "not a profile"),
    (
        "a profile of real time",
        |good| resealed(good, 32, &[0x11]),
        "measured in counted time, found one in real time",
    ),
];

pub fn cases() -> Vec<Case> {
    let on_disk = ON_DISK.map(|(name, damage, reason)| {
        case(
            format!("qemu: {name} is refused and replaced"),
            move |context| damaged(context, damage, reason),
        )
        .boots("realtime with a disk", ANY_ARCH)
    });
    let in_image = case(
        "qemu: a damaged profile in the image is refused",
        |context| damaged_in_image(context, flipped, "damaged: expected the checksum"),
    );
    on_disk
        .into_iter()
        .chain([in_image.boots("realtime", ANY_ARCH)])
        .collect()
}

/// With these bytes at that place, which docs/profile-format.md names, and a checksum that is
/// right.
pub fn resealed(good: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut changed = good[..good.len() - 4].to_vec();
    changed[at..at + bytes.len()].copy_from_slice(bytes);
    let checksum = crc32fast::hash(&changed);
    changed.extend(checksum.to_le_bytes());
    changed
}

fn flipped(good: &[u8]) -> Vec<u8> {
    let mut changed = good.to_vec();
    changed[60] = 0xff;
    changed
}

fn noise() -> Vec<u8> {
    let mut bytes = vec![0; 3000];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.expect("there is always noise");
    bytes
}

fn damaged(context: &Context, damage: Damage, reason: &str) -> Result<()> {
    let image = context.file("disk.img")?;
    let disk = format!("DISK={image}");
    let boot = || pbg(context, "realtime").args(["SCALE=100", "BLK=y", &disk]);
    let good = context.file("good.pbg")?;
    boot().args([format!("PROFILE_OUT={good}")]).text()?;
    let bad = context.file("bad.pbg")?;
    fs::write(&bad, damage(&fs::read(&good)?))?;
    context
        .program("mcopy")
        .args(["-o", "-i", &image, &bad, "::PROFILE1.PBG"])
        .text()?;
    let first = results(boot())?;
    first.passed("measure replay")?;
    first.refused_and_replaced("disk", reason)?;
    results(boot())?.passed("replay")?;
    // For the log.
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{path}:/usr/sbin:/sbin");
    let check = context
        .program("sh")
        .args(["-c", "exec fsck.fat -n \"$1\"", "sh", &image]);
    check.env("PATH", path).output().map(drop)
}

/// Make refuses a profile that is of no use. One that has come into an image all the same, in
/// place of a good one, the guest refuses with the reason, and the program runs. (The damage
/// must leave the checksum: the compiler knows the good one's.)
fn damaged_in_image(context: &Context, damage: Damage, reason: &str) -> Result<()> {
    let folder = context.project.root.join(context.file("good.pbg")?);
    let good = folder.to_str().context("no text")?;
    pbg(context, "realtime")
        .args(["SCALE=100", &format!("PROFILE_OUT={good}")])
        .text()?;
    let bytes = fs::read(good)?;
    let bad = context.file("bad.pbg")?;
    let bad_bytes = damage(&bytes);
    fs::write(&bad, &bad_bytes)?;
    let guest = ["A=realtime", "FEATURES=sched_pbg", "SCALE=100"];
    context
        .make(["-n", "build"])
        .args(guest)
        .args([format!("PBG_PROFILE={bad}")])
        .failure()?;
    let profile = format!("PBG_PROFILE={good}");
    context.make(["build", &profile]).args(guest).text()?;
    let sum = context.program("cksum").args([good]).text()?;
    let sum = sum.split(' ').next().unwrap_or_default();
    let image = format!("target/images/realtime-{ANY_ARCH}-sched_pbg-scale100-profile_{sum}");
    replace(Path::new(&image), &bytes[..24], &bad_bytes)?;
    let said = context.make(["lab-boot", &profile]).args(guest).text()?;
    fs::remove_file(&image)?;
    let results = Results::of(&said)?;
    results.passed("run")?;
    results.refused("image", reason)
}

/// Puts bytes where the file has what begins so.
fn replace(file: &Path, begin: &[u8], bytes: &[u8]) -> Result<()> {
    let found = fs::read(file)?;
    let Some(at) = found
        .windows(begin.len())
        .position(|window| window == begin)
    else {
        bail!("{}: the profile is not in it", file.display());
    };
    ensure!(at + bytes.len() <= found.len(), "the profile is cut off");
    File::options()
        .write(true)
        .open(file)?
        .write_all_at(bytes, at as u64)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Vec<u8> {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../modules/axsched-ext/tests/data/batch-x86_64.pbg"
        );
        fs::read(path).unwrap()
    }

    #[test]
    fn a_profile_with_nothing_changed_has_the_checksum_that_it_had() {
        let good = good();
        assert_eq!(resealed(&good, 8, &good[8..10]), good);
        assert_ne!(
            resealed(&good, 8, &[2])[good.len() - 4..],
            good[good.len() - 4..]
        );
    }

    #[test]
    fn what_begins_so_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("image");
        fs::write(&file, b"..abc.abcdef..").unwrap();
        replace(&file, b"abcd", b"ABXD").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"..abc.ABXDef..");
        replace(&file, b"abcd", b"ABXD").unwrap_err();
    }
}
