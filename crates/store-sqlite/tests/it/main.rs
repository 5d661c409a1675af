//! The engine on SQLite, from outside.

mod conformance;
