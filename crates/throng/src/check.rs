//! What can only be seen by looking at the machine: key files, the data folder, the address.

use std::io::ErrorKind;
use std::net::TcpListener;

use configuration::{Config, Mistake};

use crate::failure::chain;
use crate::keys;

/// Looks at everything the configuration names. The order is the one in which `serve` would need it.
pub fn check(config: &Config) -> Vec<Mistake> {
    [data_folder(config), keys_usable(config), address(config)].into_iter().flatten().collect()
}

fn keys_usable(config: &Config) -> Option<Mistake> {
    match keys::verifying_keys(config) {
        Ok(_) => None,
        // Development makes its own.
        Err(keys::KeysError::None { .. }) if config.dev => None,
        Err(error) => Some(Mistake::plain(chain(&error))),
    }
}

fn data_folder(config: &Config) -> Option<Mistake> {
    let folder = &config.data;
    match std::fs::metadata(folder) {
        Ok(found) if !found.is_dir() => {
            Some(Mistake::in_file(folder, "is not a folder; `data` must name one, or one to be made"))
        }
        Ok(found) if found.permissions().readonly() => {
            Some(Mistake::in_file(folder, "cannot be written to; give it to the user throng runs as"))
        }
        Ok(_) => None,
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(Mistake::in_file(folder, format_args!("cannot be looked at: {error}"))),
    }
}

/// Tries the address. One in use is no mistake: it may well be the server that this configuration runs.
fn address(config: &Config) -> Option<Mistake> {
    match TcpListener::bind(config.listen) {
        Ok(_) => None,
        Err(error) if error.kind() == ErrorKind::AddrInUse => None,
        Err(error) => Some(Mistake::plain(format_args!(
            "`listen`: {} cannot be listened on: {error}; choose an address of this machine and a port above 1023",
            config.listen
        ))),
    }
}
