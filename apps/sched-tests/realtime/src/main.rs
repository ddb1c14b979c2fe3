#![cfg_attr(target_os = "none", no_std, no_main)]
#[cfg(target_os = "none")]
use axstd::println;
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    println!("hello");
}
