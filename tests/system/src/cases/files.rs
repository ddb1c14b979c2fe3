//! Files as futures, on a FAT32 disk. The app apps/coop/files checks what it reads, and how long an
//! urgent operation waits.

use anyhow::{Result, ensure};

use super::helpers::ANY_ARCH;
use crate::frame::{Case, Context, case};

pub fn cases() -> Vec<Case<'static>> {
    let name =
        "qemu: coroutines and a thread write and read files, an urgent one waits for one other";
    vec![case(name, write_and_read).boots("files with a disk", ANY_ARCH)]
}

fn write_and_read(context: &Context) -> Result<()> {
    let disk = context.file("disk.img")?;
    let call = context.make(format!("run A=apps/coop/files ARCH={ANY_ARCH}"));
    let said = call
        .args(format!("FEATURES=sched_coop BLK=y DISK={disk}"))
        .text()?;
    ensure!(
        said.contains("files: 72 chunks written and read; 10 times an urgent operation waited"),
        "expected what was done"
    );
    Ok(())
}
