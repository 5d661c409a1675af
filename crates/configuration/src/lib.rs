//! Configuration: one table of options, four places a value can come from, one typed result.
//!
//! Owns what an option is called, what it may be and where its value came from. Deliberately does not know what
//! the options do. Nothing here prints; nothing but [`load`] touches the disk, and that only to read the file.
//!
//! ```text
//! table ──▶ file, environment, flags ──▶ resolve ──▶ Config
//!   └────▶ init, show, docs                 └──▶ mistakes, each with its place
//! ```

mod file;
mod kind;
mod mistake;
mod nearest;
mod present;
mod settings;
mod sources;
mod table;

pub use kind::{KeyFile, parse_span};
pub use mistake::Mistake;
pub use present::{documentation, sample, shown};
pub use settings::{Auth, Config, Connections, Log, LogFormat, Messages, Rate, Store};
pub use sources::{Effective, Loaded, Sources, load, load_text};
