//! Files and their operations.

use alloc::string::String;
use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use axerrno::{AxError, AxResult};

use crate::operation::{Operation, later};
use crate::system::{Disk, How, remove_from_disk};

/// An open file.
///
/// It has a cursor, which [`read`](Self::read) and [`write`](Self::write) move. [`read_at`](Self::read_at) and
/// [`write_at`](Self::write_at) do not use it.
pub struct File {
    open: Arc<Open>,
    cursor: u64,
}

/// Is closed when the file and all its operations are dropped (rule 5).
struct Open(Option<Disk>);

impl Open {
    fn disk(&self) -> &Disk {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // Closing writes, so it is an operation, too.
        if let Some(disk) = self.0.take() {
            later(|| drop(disk));
        }
    }
}

/// Removes a file.
///
/// # Errors
/// `NotFound`, and those of the disk.
pub fn remove(path: String) -> Operation<impl FnOnce() -> AxResult + Send + 'static, AxResult> {
    Operation::new(move || remove_from_disk(&path))
}

/// An operation that opens a file.
type Opens<F> = Operation<F, AxResult<File>>;
/// The result of a read or a write, with its buffer.
type Done<B> = (AxResult<usize>, B);

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// `NotFound`, and those of the disk.
    pub fn open(path: String) -> Opens<impl FnOnce() -> AxResult<Self> + Send + 'static> {
        Self::open_as(path, How::Read)
    }

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn modify(path: String) -> Opens<impl FnOnce() -> AxResult<Self> + Send + 'static> {
        Self::open_as(path, How::Write)
    }

    /// Opens an empty file for reading and writing. A file of this name is truncated.
    ///
    /// # Errors
    /// Returns the error of the disk.
    pub fn create(path: String) -> Opens<impl FnOnce() -> AxResult<Self> + Send + 'static> {
        Self::open_as(path, How::New)
    }

    fn open_as(path: String, how: How) -> Opens<impl FnOnce() -> AxResult<Self> + Send + 'static> {
        Operation::new(move || {
            let open = Arc::new(Open(Some(Disk::open(&path, how)?)));
            Ok(Self { open, cursor: 0 })
        })
    }

    /// Reads bytes at the cursor into the buffer, at most its length. Returns their number, 0 at the end of the file.
    ///
    /// # Errors
    /// Returns the error of the disk.
    pub fn read<B: AsMut<[u8]> + Send + 'static>(
        &mut self,
        buffer: B,
    ) -> Transfer<'_, impl FnOnce() -> Done<B> + Send + use<B>, B> {
        let operation = self.read_at(self.cursor, buffer);
        let cursor = &mut self.cursor;
        Transfer { operation, cursor }
    }

    /// Writes bytes of the buffer at the cursor. Returns their number, which is 1 at least.
    ///
    /// # Errors
    /// Returns the error of the disk.
    pub fn write<B: AsRef<[u8]> + Send + 'static>(
        &mut self,
        buffer: B,
    ) -> Transfer<'_, impl FnOnce() -> Done<B> + Send + use<B>, B> {
        let operation = self.write_at(self.cursor, buffer);
        let cursor = &mut self.cursor;
        Transfer { operation, cursor }
    }

    /// Writes all bytes of the buffer at the cursor, in one operation. If it fails, the cursor does not move, and the
    /// number of written bytes is not known.
    ///
    /// # Errors
    /// Returns the error of the disk, or `WriteZero` if it takes no more.
    pub fn write_all<B: AsRef<[u8]> + Send + 'static>(
        &mut self,
        buffer: B,
    ) -> Transfer<'_, impl FnOnce() -> Done<B> + Send + use<B>, B> {
        let (open, begin) = (self.open.clone(), self.cursor);
        let operation = Operation::new(move || {
            let mut rest = buffer.as_ref();
            let result = loop {
                let written = buffer.as_ref().len() - rest.len();
                if rest.is_empty() {
                    break Ok(written);
                }
                match open.disk().write_at(begin + written as u64, rest) {
                    Ok(0) => break Err(AxError::WriteZero),
                    Ok(some) => rest = &rest[some..],
                    Err(error) => break Err(error),
                }
            };
            (result, buffer)
        });
        let cursor = &mut self.cursor;
        Transfer { operation, cursor }
    }

    /// Reads bytes at an offset in the file. Returns their number, 0 at the end of the file.
    ///
    /// # Errors
    /// Returns the error of the disk.
    pub fn read_at<B: AsMut<[u8]> + Send + 'static>(
        &self,
        at: u64,
        mut buffer: B,
    ) -> Operation<impl FnOnce() -> Done<B> + Send + use<B>, Done<B>> {
        let open = self.open.clone();
        Operation::new(move || (open.disk().read_at(at, buffer.as_mut()), buffer))
    }

    /// Writes bytes of the buffer at an offset in the file. Returns their number.
    ///
    /// # Errors
    /// Returns the error of the disk.
    pub fn write_at<B: AsRef<[u8]> + Send + 'static>(
        &self,
        at: u64,
        buffer: B,
    ) -> Operation<impl FnOnce() -> Done<B> + Send + use<B>, Done<B>> {
        let open = self.open.clone();
        Operation::new(move || (open.disk().write_at(at, buffer.as_ref()), buffer))
    }

    /// Returns the number of bytes in the file.
    ///
    /// # Errors
    /// Returns the error of the disk.
    pub fn length(
        &self,
    ) -> Operation<impl FnOnce() -> AxResult<u64> + Send + use<>, AxResult<u64>> {
        let open = self.open.clone();
        Operation::new(move || open.disk().length())
    }

    /// Moves the cursor.
    pub fn seek(&mut self, to: u64) {
        self.cursor = to;
    }

    /// Returns the position of the cursor.
    pub fn position(&self) -> u64 {
        self.cursor
    }

    /// Closes the file. If a cancelled operation on it is under way, that operation closes it.
    pub fn close(self) -> Operation<impl FnOnce() + Send + use<>, ()> {
        let open = self.open;
        Operation::new(move || {
            // Here, and not where the last reference happens to be dropped.
            if let Some(mut open) = Arc::into_inner(open) {
                drop(open.0.take());
            }
        })
    }
}

/// A read or a write at the cursor, which moves when the result is taken (rule 4).
#[must_use = "nothing happens until it is awaited, or waited for"]
pub struct Transfer<'a, F, B> {
    operation: Operation<F, Done<B>>,
    cursor: &'a mut u64,
}

impl<F, B> Transfer<'_, F, B>
where
    F: FnOnce() -> Done<B> + Send + 'static,
    B: Send + 'static,
{
    /// Sets its priority, as [`Operation::at`] does.
    pub fn at(self, priority: u8) -> Self {
        Self {
            operation: self.operation.at(priority),
            cursor: self.cursor,
        }
    }

    /// Does it on the calling thread, as [`Operation::wait`] does.
    ///
    /// # Panics
    /// As [`Operation::wait`].
    pub fn wait(self) -> Done<B> {
        let done = self.operation.wait();
        advance(self.cursor, &done.0);
        done
    }
}

fn advance(cursor: &mut u64, result: &AxResult<usize>) {
    if let Ok(length) = result {
        *cursor += *length as u64;
    }
}

impl<F, B> Future for Transfer<'_, F, B>
where
    F: FnOnce() -> Done<B> + Send + 'static,
    B: Send + 'static,
{
    type Output = Done<B>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Done<B>> {
        let polled = Pin::new(&mut self.operation).poll(context);
        polled.map(|done| {
            advance(self.cursor, &done.0);
            done
        })
    }
}
