//! What the outside of `auth` promises: published vectors, foreign keys and tokens, and every trick we know of.

mod claims;
mod forge;
mod keys;
mod mutation;
mod reference;
mod tricks;
mod vectors;
