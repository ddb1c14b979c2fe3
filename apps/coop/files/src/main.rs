//! Three coroutines write files on a FAT32 disk all the time. An urgent one writes and reads another file at intervals,
//! and waits for one of their operations at most. A thread then reads the three files with the same calls.
//!
//! ```sh
//! make run A=apps/coop/files FEATURES=sched_coop BLK=y
//! ```

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate axstd as std;

#[cfg(all(target_os = "none", feature = "disk"))]
mod guest;

#[cfg(not(all(target_os = "none", feature = "disk")))]
fn main_without() {
    #[cfg(target_os = "none")]
    use std::println;
    println!("Files on a disk of ArceOS: make run A=apps/coop/files FEATURES=sched_coop BLK=y");
}

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    #[cfg(all(target_os = "none", feature = "disk"))]
    guest::main();
    #[cfg(not(all(target_os = "none", feature = "disk")))]
    main_without();
}
