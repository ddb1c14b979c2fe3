//! A coroutine: its memory, its priority, its names, and the references to it.

pub(crate) mod block;
pub(crate) mod donations;
pub(crate) mod free_list;
pub(crate) mod id;
pub(crate) mod named;
pub(crate) mod panics;
pub(crate) mod registry;
mod spawn;
pub(crate) mod table;
pub(crate) mod waker;
