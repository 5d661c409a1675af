//! Configuration: one table of options, four places a value can come from, one typed result.
//!
//! Owns what an option is called, what it may be and where its value came from. Deliberately does not know what
//! the options do: `serve` hands them on. Nothing here prints; nothing but [`load`] and [`check`] touches the disk.
//!
//! ```text
//! table ──▶ file, environment, flags ──▶ resolve ──▶ Config
//!   └────▶ init, show, docs                 └──▶ mistakes, each with its place
//! ```

mod check;
mod file;
mod kind;
mod mistake;
mod nearest;
mod present;
mod settings;
mod sources;
mod table;

pub use check::check;
pub use kind::parse_span;
pub use mistake::Mistake;
pub use present::{documentation, sample, shown};
pub use settings::{Config, LogFormat};
pub use sources::{Loaded, Sources, load};
