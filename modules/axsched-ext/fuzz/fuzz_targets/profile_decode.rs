//! Decodes any bytes as a profile, as the contents of one, and as a console text. No call panics.
//! Bytes that decode are in the one form of a profile, and the profile is valid and has a plan.
#![no_main]

use axsched_ext::pbg::Plan;
use axsched_ext::pbg::stored::{
    MAX_BYTES, VERSION, decode, encode, has_frame, merge, read_frame, write_frame,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    decoded(data);
    // Put the bytes behind magic and version, and add the right checksum, because no fuzzer finds
    // these by itself.
    if data.len() >= 23 {
        let mut bytes = b"\x89PBG\r\n\x1a\n".to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(&data[..2]);
        bytes.extend((data.len() as u32 + 18).to_le_bytes());
        bytes.extend(&data[2..]);
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        decoded(&bytes);
    }

    if let Ok(bytes) = read_frame(data) {
        assert!(has_frame(data));
        framed(&bytes);
    }
    if (1..=MAX_BYTES).contains(&data.len()) {
        framed(data);
    }
});

fn decoded(bytes: &[u8]) {
    let Ok(profile) = decode(bytes) else { return };
    assert_eq!(encode(&profile).as_deref(), Ok(bytes));
    let plan = Plan::of(&profile).expect("there is memory");
    assert_eq!(plan.tasks().len(), profile.tasks.len());
    if let Ok(merged) = merge(&[profile.clone(), profile]) {
        assert_eq!(merged.validate(), Ok(()));
    }
}

fn framed(bytes: &[u8]) {
    let mut text = String::new();
    write_frame(bytes, &mut text).expect("a string takes everything");
    assert_eq!(read_frame(text.as_bytes()).as_deref(), Ok(bytes));
}
