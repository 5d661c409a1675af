//! The engine on SQLite, from outside.

mod backup;
mod conformance;
mod damage;
mod directory;
mod durability;
mod full_disk;
mod traffic;
