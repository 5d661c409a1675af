//! The control socket in the data folder: how another command of the same user reaches the server that has the folder.
//!
//! Owns the socket's name, who may use it, and the words spoken over it (`words`). The server's side is `listen`, the other one `ask`.
//! Parameters go over it, never rows: what is made follows from them on either side.

mod ask;
mod listen;
mod words;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

pub use ask::{AskError, ask};
pub use listen::Control;

/// The socket's name in the data folder.
const NAME: &str = "throng.control";

/// Longest path of a Unix socket: `sun_path` of unix(7) has 108 bytes, the last of which is a zero.
const PATH_BYTES_MAX: usize = 107;

/// A path to the socket that the system takes, for as long as this lives.
struct Address {
    path: PathBuf,
    _folder: Option<File>,
}

impl Address {
    /// A folder whose name is too long is reached through an open descriptor of it.
    fn of(data: &Path) -> io::Result<Address> {
        let path = data.join(NAME);
        if path.as_os_str().len() <= PATH_BYTES_MAX {
            return Ok(Address { path, _folder: None });
        }
        let folder = File::open(data)?;
        let path = PathBuf::from(format!("/proc/thread-self/fd/{}/{NAME}", folder.as_raw_fd()));
        Ok(Address { path, _folder: Some(folder) })
    }
}
