//! The log: one line an event on standard error, whatever the event says (row 27 of the attack list).

use std::io::{self, Write};
use std::str::FromStr;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

use configuration::{Config, LogFormat};

/// Starts logging for the rest of the process, of panics too. A second call changes nothing.
pub fn start(config: &Config) {
    std::panic::set_hook(Box::new(tell_panic));
    let layer = layer(config.log.format, io::stderr);
    let filter = Targets::from_str(&config.log.level).unwrap_or_default();
    let _ = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
}

/// A panic is told with its place. What it says is told only when it is written in the code: a message that was put together at run
/// time may quote what a client has sent.
fn tell_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let said = panic.payload().downcast_ref::<&'static str>().copied();
    let said = said.unwrap_or("not told, since it may quote what a client has sent");
    let thread = std::thread::current();
    tracing::error!(
        place,
        said,
        thread = thread.name(),
        "a panic: this is a bug in throng, please report it"
    );
}

fn layer<W>(format: LogFormat, writer: W) -> Box<dyn Layer<Registry> + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = OneLine(writer);
    match format {
        LogFormat::Text => Box::new(fmt::layer().with_ansi(false).with_writer(lines)),
        LogFormat::Json => Box::new(fmt::layer().json().flatten_event(true).with_writer(lines)),
    }
}

/// Makes sure that an event is one line: what the formatters let through of control characters is escaped.
///
/// The formatters hand over an event in one piece, with its line end. Inside a JSON string the escape is JSON's
/// own, so the text stays the same; in a text line it only has to be visible.
struct OneLine<W>(W);

impl<'w, W: MakeWriter<'w>> MakeWriter<'w> for OneLine<W> {
    type Writer = OneLine<W::Writer>;

    fn make_writer(&'w self) -> Self::Writer {
        OneLine(self.0.make_writer())
    }
}

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        if !line.contains(must_be_escaped) {
            self.0.write_all(event)?;
            return Ok(event.len());
        }
        let mut escaped = String::with_capacity(text.len() + 16);
        for c in line.chars() {
            match must_be_escaped(c) {
                true => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
                false => escaped.push(c),
            }
        }
        escaped.push('\n');
        self.0.write_all(escaped.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Control characters, line separators, and the marks that turn the direction of a text around.
fn must_be_escaped(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("not poisoned").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What the log says when a client chooses the text.
    fn logged(format: LogFormat, text: &str) -> String {
        let memory = Memory::default();
        let writer = memory.clone();
        let subscriber = tracing_subscriber::registry().with(layer(format, move || writer.clone()));
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(origin = %text, debug = ?text, "refused {text}");
        });
        String::from_utf8(memory.0.lock().expect("not poisoned").clone()).expect("UTF-8")
    }

    const NASTY: &str = "a\nINFO all is well\r\u{1b}[2J\u{7f}\u{9b}31m\u{2028}\u{202e}\0\t\"\\";

    #[test]
    fn an_event_is_one_line_whatever_it_says() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let line = logged(format, NASTY);
            assert_eq!(line.matches('\n').count(), 1, "{line:?}");
            assert!(line.ends_with('\n'));
            // Control characters of ASCII and Latin-1, line separators, and a mark that turns the text around.
            let left = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{202e}');
            assert!(!line.trim_end_matches('\n').contains(left), "{line:?}");
        }
    }

    #[test]
    fn a_json_event_keeps_the_text() {
        let line = logged(LogFormat::Json, NASTY);
        // The string as JSON writes it, with the escapes that serde_json leaves out written by hand.
        let expected = r#""origin":"a\nINFO all is well\r\u001b[2J\u007f\u009b31m\u2028\u202e\u0000\t\"\\""#;
        assert!(line.contains(expected), "{line}");
        assert!(line.starts_with('{') && line.ends_with("}\n"));
    }

    #[test]
    fn an_ordinary_event_is_left_as_it_is() {
        let line = logged(LogFormat::Text, "https://bücher.example");
        assert!(line.contains("WARN") && line.contains("refused https://bücher.example"), "{line}");
    }
}
