//! What happened, one line an event: always hashed, so that two runs can be compared, and told only to whoever listens.

use std::fmt::{self, Write};

/// Who is told each line.
pub type Listener = Box<dyn FnMut(&str)>;

/// The trace of a run.
pub struct Trace {
    hash: Mixer,
    lines: u64,
    listener: Option<Listener>,
}

impl Trace {
    /// An empty trace.
    pub fn new(listener: Option<Listener>) -> Self {
        Trace { hash: Mixer(0x2545_f491_4f6c_dd1d), lines: 0, listener }
    }

    /// Adds a line.
    pub fn line(&mut self, line: fmt::Arguments<'_>) {
        self.lines += 1;
        // A hasher takes everything.
        let _ = self.hash.write_fmt(line);
        self.hash.word(self.lines);
        if let Some(listener) = &mut self.listener {
            listener(&line.to_string());
        }
    }

    /// Adds bytes that are only hashed.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.hash.bytes(bytes);
    }

    /// What the lines so far amount to.
    pub fn hash(&self) -> u64 {
        self.hash.0
    }

    /// How many lines there are.
    pub fn lines(&self) -> u64 {
        self.lines
    }
}

/// Multiply and rotate, a word at a time: it has to tell runs apart, not to resist anybody.
struct Mixer(u64);

impl Mixer {
    fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        let mut last = [0xff; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.word(u64::from_le_bytes(last));
    }
}

impl Write for Mixer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}
