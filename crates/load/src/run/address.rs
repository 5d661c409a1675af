//! Where the server is: `ws://HOST:PORT/PATH` taken apart.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use crate::client::SOCKET_PATH;

/// A server's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// As it was given.
    pub url: String,
    /// What is connected to.
    pub server: SocketAddr,
    /// What the server is called in requests.
    pub host: String,
    /// Where its socket is.
    pub path: String,
}

/// Why an address cannot be used.
#[derive(Debug)]
pub enum AddressError {
    /// It is no `ws://` address.
    Scheme(String),
    /// There is no host in it.
    NoHost(String),
    /// The host is not known.
    Unknown(String, io::Error),
    /// The host has no address.
    Nowhere(String),
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressError::Scheme(url) if url.starts_with("wss://") => write!(
                f,
                "--url {url}: no TLS is spoken here; give the address of the server itself, behind what ends TLS, as ws://HOST:PORT"
            ),
            AddressError::Scheme(url) => {
                write!(f, "--url {url}: give the address of the server as ws://HOST:PORT")
            }
            AddressError::NoHost(url) => {
                write!(f, "--url {url}: there is no host in it; write it as ws://HOST:PORT")
            }
            AddressError::Unknown(host, _) => write!(f, "the host of --url is not known: {host}"),
            AddressError::Nowhere(host) => write!(f, "the host of --url has no address: {host}"),
        }
    }
}

impl std::error::Error for AddressError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            AddressError::Unknown(_, cause) => Some(cause),
            _ => None,
        }
    }
}

impl Address {
    /// Takes an address apart and looks the host up. Without a port it is 80, without a path that of throng.
    ///
    /// # Errors
    /// When it is no address, or nobody knows the host.
    pub fn of(url: &str) -> Result<Address, AddressError> {
        let rest = url.strip_prefix("ws://").ok_or_else(|| AddressError::Scheme(url.to_owned()))?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if host.is_empty() || host.starts_with(':') {
            return Err(AddressError::NoHost(url.to_owned()));
        }
        let has_port =
            host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        let with_port = if has_port { host.to_owned() } else { format!("{host}:80") };
        let found =
            with_port.to_socket_addrs().map_err(|cause| AddressError::Unknown(host.to_owned(), cause))?;
        let addresses: Vec<SocketAddr> = found.collect();
        let server = addresses.iter().find(|address| address.is_ipv4()).or(addresses.first());
        Ok(Address {
            url: url.to_owned(),
            server: *server.ok_or_else(|| AddressError::Nowhere(host.to_owned()))?,
            host: host.to_owned(),
            path: if matches!(path, "" | "/") { SOCKET_PATH.to_owned() } else { path.to_owned() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (url, server, host, path) in [
            ("ws://127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1:8080", "/v1/socket"),
            ("ws://127.0.0.1:8080/", "127.0.0.1:8080", "127.0.0.1:8080", "/v1/socket"),
            ("ws://127.0.0.1", "127.0.0.1:80", "127.0.0.1", "/v1/socket"),
            ("ws://[::1]:99/v1/socket", "[::1]:99", "[::1]:99", "/v1/socket"),
            ("ws://127.0.0.1:1/other", "127.0.0.1:1", "127.0.0.1:1", "/other"),
        ] {
            let address = Address::of(url).expect(url);
            let found = (address.server.to_string(), address.host.as_str(), address.path.as_str());
            assert_eq!(found, (server.to_owned(), host, path), "{url}");
        }
    }

    #[test]
    fn what_is_no_address_is_told() {
        for (url, said) in [
            (
                "wss://example.org",
                "--url wss://example.org: no TLS is spoken here; give the address of the server itself, behind what ends TLS, as ws://HOST:PORT",
            ),
            ("http://127.0.0.1", "--url http://127.0.0.1: give the address of the server as ws://HOST:PORT"),
            ("127.0.0.1:8080", "--url 127.0.0.1:8080: give the address of the server as ws://HOST:PORT"),
            ("ws:///v1/socket", "--url ws:///v1/socket: there is no host in it; write it as ws://HOST:PORT"),
            ("ws://:80", "--url ws://:80: there is no host in it; write it as ws://HOST:PORT"),
        ] {
            assert_eq!(Address::of(url).expect_err(url).to_string(), said);
        }
    }
}
