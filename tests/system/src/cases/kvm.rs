//! KVM, where there may be none.

use std::{env::consts, fs, os::unix::fs::PermissionsExt};

use anyhow::{Result, ensure};

use super::helpers::{dry, exits, refused};
use crate::frame::{Case, Context, Output, case};

pub fn cases() -> Vec<Case> {
    vec![
        case("make: no KVM is said at once", without_kvm),
        case("make: a guest that is silent under KVM", silent_kvm),
    ]
}

/// `ACCEL=y` on a machine without KVM, and with one that nobody may use.
fn without_kvm(context: &Context) -> Result<()> {
    let with = |device: &str| {
        dry(context, "run")
            .args(["TIMING=real", "ACCEL=y"])
            .args([format!("ARCH={}", consts::ARCH)])
            .env("KVM_DEVICE", device)
    };
    refused(with(&context.file("none")?), "no KVM here")?;
    let device = context.file("kvm")?;
    fs::write(&device, "")?;
    fs::set_permissions(&device, fs::Permissions::from_mode(0o000))?;
    if fs::read(&device).is_ok() {
        context.say("root may read all");
        return Ok(());
    }
    refused(with(&device), "no permission for KVM")
}

/// Of a guest that has printed nothing under KVM it is told what is most likely wrong.
fn silent_kvm(context: &Context) -> Result<()> {
    let image = context.file("silent-kvm")?; // which names its log
    fs::write(&image, "")?;
    // Plays QEMU: it prints this, and fails.
    let guest = |prints: &str| -> Result<Output> {
        context
            .program("scripts/qemu-run.sh")
            .args([
                &image,
                "10",
                "sh",
                "-c",
                &format!("echo {prints}; exit 134"),
                "sh",
            ])
            .args(["-accel", "kvm"])
            .output()
    };
    let ends = |output: &Output, text: &str| {
        let last = output.text.lines().last().unwrap_or_default();
        ensure!(last.starts_with(text), "expected `{text}…`, found `{last}`");
        Ok(())
    };
    let silent = guest("qemu-system-x86_64: no MSR")?;
    exits(&silent, 1)?;
    ends(
        &silent,
        "run: sh exited with status 134, and printed nothing: most likely KVM ",
    )?;
    ends(&guest("ArceOS")?, "run: sh exited with status 134 (log: ")
}
