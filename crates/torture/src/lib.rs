//! The real binary under torture: started in a folder of its own, talked to by clients that remember what they were promised, and
//! killed, starved, lied to and cut off meanwhile.
//!
//! Owns the processes, the clients and the checks of what they have seen. It knows the server by its command line, its files and its
//! wire; deliberately nothing of its inside. What is small enough for every test run is called by the tests of `throng`.

pub mod chance;
pub mod client;
pub mod faults;
pub mod kill;
pub mod proxy;
pub mod restart;
pub mod run;
pub mod server;
pub mod soak;
pub mod traffic;
