//! Takes the file that `PBG_PROFILE` names into the image, as it is: what is wrong
//! with it is found, said and survived by the program that it is for.

use std::{env, fs, path::Path};

fn main() {
    println!("cargo:rerun-if-env-changed=PBG_PROFILE");
    println!("cargo:rustc-check-cfg=cfg(pbg_profile)");
    let Some(profile) = env::var_os("PBG_PROFILE").filter(|path| !path.is_empty()) else {
        return;
    };
    println!("cargo:rerun-if-changed={}", profile.display());
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    if let Err(error) = fs::copy(&profile, Path::new(&out).join("profile.pbg")) {
        panic!("PBG_PROFILE={}: {error}", profile.display());
    }
    println!("cargo:rustc-cfg=pbg_profile");
}
