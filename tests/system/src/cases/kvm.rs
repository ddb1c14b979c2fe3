//! KVM, on machines without it.

use std::{env::consts, fs, os::unix::fs::PermissionsExt};

use anyhow::{Result, ensure};

use super::helpers::{expect_refusal, expect_status, last_line};
use crate::frame::{Case, Context, case};

pub fn cases() -> Vec<Case<'static>> {
    vec![
        case("make: a machine without KVM is told at once", refuse_kvm),
        case("make: a guest that is silent under KVM", explain_silence),
    ]
}

/// Checks that `ACCEL=y` is refused on a machine without KVM, and where the user may not use KVM.
fn refuse_kvm(context: &Context) -> Result<()> {
    let with = |device: &str| {
        let call = context.make("-n run TIMING=real ACCEL=y");
        call.args(format!("ARCH={}", consts::ARCH))
            .env("KVM_DEVICE", device)
    };
    expect_refusal(with(&context.file("none")?), "no KVM here")?;
    let device = context.file("kvm")?;
    fs::write(&device, "")?;
    fs::set_permissions(&device, fs::Permissions::from_mode(0o000))?;
    if fs::read(&device).is_ok() {
        context.say("root may read all");
        return Ok(());
    }
    expect_refusal(with(&device), "no permission for KVM")
}

/// Checks that the last line names the likely cause if a guest has printed nothing under KVM.
fn explain_silence(context: &Context) -> Result<()> {
    let image = context.file("silent-kvm")?; // names its log
    fs::write(&image, "")?;
    // A script in place of QEMU prints a line and fails.
    for (prints, text) in [
        (
            "qemu-system-x86_64: no MSR",
            "run: sh exited with status 134, and printed nothing: most likely KVM ",
        ),
        ("ArceOS", "run: sh exited with status 134 (log: "),
    ] {
        let script = format!("sh -c 'echo {prints}; exit 134' sh -accel kvm");
        let call = context.program("scripts/qemu-run.sh");
        let output = call.args(format!("{image} 10 {script}")).output()?;
        expect_status(&output, 1)?;
        let last = last_line(&output.text);
        ensure!(last.starts_with(text), "expected `{text}…`, found `{last}`");
    }
    Ok(())
}
