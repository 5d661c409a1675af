//! The instruments of torture themselves, without a server.

mod proxy;
