//! Domains of ArceOS.

pub use axcoop_arceos::*;

/// Opens a domain without workers, with the first free number.
pub fn open(name: &'static str) -> &'static Domain {
    let opened = Options::new(name).workers(0).open();
    opened.expect("an image has more domains than this program")
}
