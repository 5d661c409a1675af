//! Writes to the write-ahead log, gathered.
//!
//! SQLite writes the log in order and in small pieces: a header of 24 bytes, a page, a header, a page. Gathered into long writes
//! they cost a fraction of the system calls. This is sound because with `synchronous=FULL` SQLite tells other connections of a commit only after
//! the sync that follows its writes, and that sync comes here first; whoever reads, measures or cuts the file comes here first too.
//!
//! Owns the gathering. A write that fails is told to whoever made the bytes go out, which is still the same transaction.

/// Most bytes gathered: long enough that system calls do not matter, short enough to stay in a core's cache, and below the
/// 128 KiB that SQLite's unix layer writes at once (it masks the length with 0x1ffff).
const GATHERED_MAX: usize = 120 << 10;

/// Bytes on their way into a file.
#[derive(Default)]
pub(crate) struct LogBuffer {
    gathered: Vec<u8>,
    /// Where the first of them goes.
    offset: i64,
}

impl LogBuffer {
    /// Takes `bytes` for `offset`. Whatever does not follow on goes out first, by `write`.
    pub(crate) fn put<E>(
        &mut self,
        bytes: &[u8],
        offset: i64,
        write: impl FnMut(&[u8], i64) -> Result<(), E>,
    ) -> Result<(), E> {
        let follows = offset == self.offset + self.gathered.len() as i64;
        if !follows || self.gathered.len() + bytes.len() > GATHERED_MAX {
            self.flush(write)?;
            self.offset = offset;
        }
        self.gathered.extend_from_slice(bytes);
        Ok(())
    }

    /// Lets all bytes go out. They are not tried again when that fails.
    pub(crate) fn flush<E>(&mut self, mut write: impl FnMut(&[u8], i64) -> Result<(), E>) -> Result<(), E> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let written = write(&self.gathered, self.offset);
        self.offset += self.gathered.len() as i64;
        self.gathered.clear();
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts pieces at offsets and collects what goes out.
    fn written(pieces: &[(&[u8], i64)]) -> Vec<(Vec<u8>, i64)> {
        let mut out = Vec::new();
        let mut write = |bytes: &[u8], offset| {
            out.push((bytes.to_vec(), offset));
            Ok::<(), ()>(())
        };
        let mut buffer = LogBuffer::default();
        for (bytes, offset) in pieces {
            buffer.put(bytes, *offset, &mut write).expect("it always succeeds");
        }
        buffer.flush(&mut write).expect("it always succeeds");
        buffer.flush(&mut write).expect("it always succeeds");
        out
    }

    #[test]
    fn what_follows_on_goes_out_together() {
        assert_eq!(written(&[(b"ab", 8), (b"c", 10), (b"", 11), (b"d", 11)]), [(b"abcd".to_vec(), 8)]);
    }

    #[test]
    fn what_does_not_follow_on_goes_out_later_and_in_order() {
        assert_eq!(
            written(&[(b"ab", 0), (b"cd", 4), (b"ef", 6), (b"xy", 0)]),
            [(b"ab".to_vec(), 0), (b"cdef".to_vec(), 4), (b"xy".to_vec(), 0)]
        );
    }

    #[test]
    fn not_more_is_gathered_than_the_cap() {
        let piece = vec![7; GATHERED_MAX / 2 + 1];
        let second = piece.len() as i64;
        assert_eq!(written(&[(&piece, 0), (&piece, second)]), [(piece.clone(), 0), (piece.clone(), second)]);
    }

    #[test]
    fn what_failed_is_not_tried_again() {
        let mut buffer = LogBuffer::default();
        buffer.put(b"ab", 0, |_, _| Ok::<(), i32>(())).expect("nothing goes out");
        assert_eq!(buffer.flush(|_, _| Err(13)), Err(13));
        buffer.flush(|_, _| Err(13)).expect("nothing is left");
    }
}
