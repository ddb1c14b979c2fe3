//! The host model of axtask.
