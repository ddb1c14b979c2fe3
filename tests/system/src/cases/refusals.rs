//! Wrong variables, each refused by a dry run in one line that says what is allowed.

use super::helpers::{dry, refused};
use crate::frame::{Case, case};

/// What the case is called after `make: refuses `, a part of the answer, the variables.
const OF_RUN: [(&str, &str, &[&str]); 34] = [
    ("an unknown A", "A=apps/nope", &["A=apps/nope"]),
    ("an unknown ARCH", "x86_64 riscv64 aarch64", &["ARCH=arm"]),
    ("an unknown feature", "sched_pbg", &["FEATURES=sched_nope"]),
    (
        "two policies",
        "two policies: sched_pbg sched_rr",
        &["FEATURES=sched_pbg,sched_rr"],
    ),
    (
        "ours and stock together",
        "two policies",
        &["FEATURES=sched_rr stock_rr"],
    ),
    ("SMP=0", "SMP=0", &["SMP=0"]),
    ("SMP=2 under icount", "one CPU", &["SMP=2", "TIMING=icount"]),
    ("an unknown LOG", "off error warn", &["LOG=loud"]),
    ("an unknown MODE", "release debug", &["MODE=fast"]),
    ("an unknown TIMING", "icount real", &["TIMING=virtual"]),
    ("SCALE=0", "SCALE=0", &["SCALE=0"]),
    ("SCALE=1k", "SCALE=1k", &["SCALE=1k"]),
    ("MEM=128", "MEM=128", &["MEM=128"]),
    ("TIMEOUT=-1", "TIMEOUT=-1", &["TIMEOUT=-1"]),
    ("TICK_PHASE=1000", "from 0 to 999", &["TICK_PHASE=1000"]),
    ("TICK_PHASE=05", "from 0 to 999", &["TICK_PHASE=05"]),
    (
        "a TICK_PHASE of real time",
        "TIMING=icount",
        &["TICK_PHASE=5", "TIMING=real"],
    ),
    ("TRACE=yes", "n y", &["TRACE=yes"]),
    ("ACCEL=y under icount", "TIMING=real", &["ACCEL=y"]),
    ("BALANCE=n on one CPU", "SMP=2 or more", &["BALANCE=n"]),
    ("BALANCE=yes", "n y", &["BALANCE=yes"]),
    ("an unknown BLK", "BLK=x", &["BLK=x"]),
    ("a DISK without BLK=y", "BLK=y", &["DISK=disk.img"]),
    (
        "PBG_BASE=cfs",
        "rr fifo",
        &["FEATURES=sched_pbg", "PBG_BASE=cfs"],
    ),
    (
        "a PBG_BASE for another policy",
        "only PBG",
        &["FEATURES=sched_rr", "PBG_BASE=fifo"],
    ),
    (
        "a PBG_PROFILE that is not there",
        "no such file",
        &["FEATURES=sched_pbg", "PBG_PROFILE=none.pbg"],
    ),
    (
        "a PBG_PROFILE for another policy",
        "FEATURES=sched_pbg",
        &["FEATURES=sched_rr", "PBG_PROFILE=README.md"],
    ),
    (
        "a PBG_PROFILE beside a disk",
        "two places",
        &["FEATURES=sched_pbg", "PBG_PROFILE=README.md", "BLK=y"],
    ),
    ("two apps", "one app folder", &["A=realtime yield"]),
    (
        "a PBG_PROFILE that is a folder",
        "a folder",
        &["FEATURES=sched_pbg", "PBG_PROFILE=docs"],
    ),
    (
        "a PROFILE_OUT that is a folder",
        "a folder",
        &["PROFILE_OUT=target/"],
    ),
    (
        "a DISK that QEMU would not understand",
        "DISK=a,b",
        &["BLK=y", "DISK=a,b"],
    ),
    (
        "a name that the shell would not understand",
        "without blanks and",
        &["FEATURES=sched_pbg", "PBG_PROFILE=it's.pbg"],
    ),
    (
        "a SCALE beyond all",
        "to 1000000000",
        &["SCALE=99999999999999999999999"],
    ),
];

/// The case's whole name, the goal, a part of the answer, the variables.
const OF_OTHERS: [(&str, &str, &str, &[&str]); 7] = [
    (
        "make: matrix refuses what would change its cells",
        "matrix",
        "not of make matrix",
        &["TRACE=y"],
    ),
    (
        "make: cost refuses another app",
        "cost",
        "not of make cost",
        &["A=apps/sched-tests/yield"],
    ),
    (
        "make: cost refuses another scale for its gate",
        "cost",
        "not of make cost",
        &["LAB=--gate --update", "SCALE=2"],
    ),
    (
        "make: cost of the host refuses another architecture",
        "cost",
        "not of make cost",
        &["A=host", "ARCH=riscv64"],
    ),
    (
        "make: cost of the host refuses what is the same scheduler",
        "cost",
        "sched_mlfq sched_pbg stock_fifo",
        &["A=host", "FEATURES=sched_pbg_coop"],
    ),
    (
        "make: trace refuses a picture that is no .svg",
        "trace",
        ".svg",
        &["TRACE=y", "LAB=--out a.png"],
    ),
    ("make: a word that is no target", "rnu", "make help", &[]),
];

pub fn cases() -> Vec<Case> {
    let of_run = OF_RUN.map(|(name, text, variables)| {
        case(format!("make: refuses {name}"), move |context| {
            refused(dry(context, "run").args(variables), text)
        })
    });
    let of_others = OF_OTHERS.map(|(name, goal, text, variables)| {
        case(name, move |context| {
            refused(dry(context, goal).args(variables), text)
        })
    });
    let environment = case(
        "make: matrix refuses that from the environment, too",
        |context| refused(dry(context, "matrix").env("BLK", "y"), "not of make matrix"),
    );
    of_run
        .into_iter()
        .chain(of_others)
        .chain([environment])
        .collect()
}
