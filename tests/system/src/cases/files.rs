//! Files as futures, on a FAT32 disk: apps/coop/files, which checks what it reads and how long somebody
//! urgent waits.

use anyhow::{Result, ensure};

use super::helpers::ANY_ARCH;
use crate::frame::{Case, Context, case};

pub fn cases() -> Vec<Case> {
    let name =
        "qemu: coroutines and a thread write and read files, an urgent one waits for one other";
    vec![case(name, writes_and_reads).boots("files with a disk", ANY_ARCH)]
}

fn writes_and_reads(context: &Context) -> Result<()> {
    let said = context
        .make(["run", "A=apps/coop/files", "FEATURES=sched_coop", "BLK=y"])
        .args([
            format!("ARCH={ANY_ARCH}"),
            format!("DISK={}", context.file("disk.img")?),
        ])
        .text()?;
    ensure!(
        said.contains("files: 72 chunks written and read; 10 times an urgent operation waited"),
        "expected what was done"
    );
    Ok(())
}
