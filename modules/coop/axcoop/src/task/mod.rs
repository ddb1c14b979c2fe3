//! A coroutine: its memory, its priority, its names, and the references to it.

pub(crate) mod block;
pub(crate) mod books;
pub(crate) mod cid;
pub(crate) mod lent;
pub(crate) mod named;
pub(crate) mod panics;
pub(crate) mod spares;
mod spawn;
pub(crate) mod table;
pub(crate) mod waker;
