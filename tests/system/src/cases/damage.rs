//! Boots with unusable profiles. On the disk each is refused with the reason, the program runs, and
//! the next boot finds a good one.

use std::{fs, fs::File, io::Read, os::unix::fs::FileExt, path::Path};

use anyhow::{Context as _, Result, ensure};

use super::helpers::{ANY_ARCH, pbg, results};
use crate::{
    frame::{Case, Context, case},
    project::Project,
    results::Results,
};

/// Makes an unusable profile from a good one.
type Damage = fn(&[u8]) -> Vec<u8>;

/// The name of each unusable profile, its damage, and the reason that the guest prints.
const ON_DISK: [(&str, Damage, &str); 9] = [
    (
        "a truncated profile",
        |good| good[..good.len() - 10].into(),
        "truncated: expected",
    ),
    ("a damaged profile", flipped, CHECKSUM),
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
        // It claims more runs than there can be bytes for.
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

const CHECKSUM: &str = "damaged: expected the checksum";

pub fn cases(project: &Project) -> Vec<Case<'_>> {
    let on_disk = project.in_turn(ON_DISK, 0, 3).into_iter();
    let on_disk = on_disk.map(|(name, damage, reason)| {
        let name = format!("qemu: {name} is refused and replaced");
        let check = move |context: &Context| boot_with(context, damage, reason);
        case(name, check).boots("realtime with a disk", ANY_ARCH)
    });
    let name = "qemu: a damaged profile in the image is refused";
    let in_image = case(name, damage_image).boots("realtime", ANY_ARCH);
    on_disk.chain([in_image]).collect()
}

/// Changes bytes at an offset of docs/profile-format.md, and corrects the checksum.
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

fn boot_with(context: &Context, damage: Damage, reason: &str) -> Result<()> {
    let image = context.file("disk.img")?;
    let boot = || pbg(context, "realtime").args(format!("SCALE=100 BLK=y DISK={image}"));
    let (good, bad) = (context.file("good.pbg")?, context.file("bad.pbg")?);
    boot().args(format!("PROFILE_OUT={good}")).text()?;
    fs::write(&bad, damage(&fs::read(&good)?))?;
    let copy = context.program("mcopy");
    copy.args(format!("-o -i {image} {bad} ::PROFILE1.PBG"))
        .text()?;
    let first = results(boot())?;
    first.passed("measure replay")?;
    first.refused_and_replaced("disk", reason)?;
    results(boot())?.passed("replay")?;
    // For the log.
    let path = std::env::var("PATH").unwrap_or_default();
    let check = context
        .program("sh")
        .args("-c 'exec fsck.fat -n \"$1\"' sh");
    let check = check.arg(&image);
    let check = check.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    check.output().map(drop)
}

/// Checks that make refuses an unusable profile. If one replaces a good one in an image, the guest
/// refuses it with the reason, and the program runs. (The damage must not change the stored
/// checksum, because the compiler knows the good one's.)
fn damage_image(context: &Context) -> Result<()> {
    let good = context.project.root.join(context.file("good.pbg")?);
    let good = good.to_str().context("a path that is no text")?;
    let save = pbg(context, "realtime").args("SCALE=100");
    save.args(format!("PROFILE_OUT={good}")).text()?;
    let bytes = fs::read(good)?;
    let bad = context.file("bad.pbg")?;
    let bad_bytes = flipped(&bytes);
    fs::write(&bad, &bad_bytes)?;
    let with = |goal: &str, profile: &str| {
        let call = context.make(format!("{goal} A=realtime FEATURES=sched_pbg SCALE=100"));
        call.args(format!("PROFILE={profile}"))
    };
    with("-n build", &bad).failure()?;
    with("build", good).text()?;
    let sum = context.program("cksum").arg(good).text()?;
    let sum = sum.split(' ').next().unwrap_or_default();
    let image = format!("target/images/realtime-{ANY_ARCH}-sched_pbg-scale100-profile_{sum}");
    replace(Path::new(&image), &bytes[..24], &bad_bytes)?;
    let said = with("lab-boot", good).text()?;
    fs::remove_file(&image)?;
    let results = Results::of(&said)?;
    results.passed("run")?;
    results.refused("image", CHECKSUM)
}

/// Overwrites a file with `bytes`, from the first place on where it has `begin`.
fn replace(file: &Path, begin: &[u8], bytes: &[u8]) -> Result<()> {
    let found = fs::read(file)?;
    let mut windows = found.windows(begin.len());
    let at = windows.position(|window| window == begin);
    let at = at.with_context(|| format!("{}: the profile is not in it", file.display()))?;
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

    #[test]
    fn profile_with_nothing_changed_keeps_its_checksum() {
        let path = "../../modules/axsched-ext/tests/data/batch-x86_64.pbg";
        let good = fs::read(path).unwrap();
        let (_, checksum) = good.split_last_chunk::<4>().unwrap();
        assert_eq!(resealed(&good, 8, &good[8..10]), good);
        assert!(!resealed(&good, 8, &[3]).ends_with(checksum));
    }

    #[test]
    fn bytes_are_replaced_from_the_given_beginning_on() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("image");
        fs::write(&file, b"..abc.abcdef..").unwrap();
        replace(&file, b"abcd", b"ABXD").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"..abc.ABXDef..");
        replace(&file, b"abcd", b"ABXD").unwrap_err();
    }
}
