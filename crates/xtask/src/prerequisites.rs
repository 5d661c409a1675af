//! What steps need beyond Rust and gcc, and how a Debian machine gets it.
//!
//! Installs as root by `apt-get`; otherwise says what to install. Knows no step.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use crate::process;

/// Something a step needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Node 18 or later.
    Node,
    /// npm.
    Npm,
    /// Debian's Chromium, with a font to draw with.
    Chromium,
    /// Python 3 with the modules that make a virtual environment.
    PythonVenv,
    /// `cargo fmt`.
    Rustfmt,
    /// `cargo clippy`.
    Clippy,
}

/// Installing is slow on a slow network, but not endless.
const INSTALL_LIMIT: Duration = Duration::from_secs(600);

impl Need {
    fn packages(self) -> &'static [&'static str] {
        match self {
            Need::Node => &["nodejs"],
            Need::Npm => &["npm"],
            Need::Chromium => &["chromium", "fonts-liberation", "fonts-noto-color-emoji"],
            Need::PythonVenv => &["python3", "python3-venv"],
            Need::Rustfmt | Need::Clippy => &[],
        }
    }

    fn is_there(self) -> bool {
        match self {
            Need::Node => works("node", &["--version"]),
            Need::Npm => works("npm", &["--version"]),
            Need::Chromium => works("chromium", &["--version"]),
            Need::PythonVenv => works("python3", &["-c", "import venv, ensurepip"]),
            Need::Rustfmt => works("cargo", &["fmt", "--version"]),
            Need::Clippy => works("cargo", &["clippy", "--version"]),
        }
    }

    /// The rustup component, for what Debian does not bring.
    fn component(self) -> Option<&'static str> {
        match self {
            Need::Rustfmt => Some("rustfmt"),
            Need::Clippy => Some("clippy"),
            _ => None,
        }
    }
}

fn works(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Sees to it that everything is there. `Err` says what to install.
pub fn ensure(needs: &[Need]) -> Result<(), String> {
    let missing: Vec<Need> = needs.iter().copied().filter(|need| !need.is_there()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for component in missing.iter().filter_map(|need| need.component()) {
        println!("installing the Rust component {component}");
        works("rustup", &["component", "add", component]);
    }
    let packages: Vec<&str> = missing.iter().flat_map(|need| need.packages()).copied().collect();
    if !packages.is_empty() && can_install() {
        install(&packages)?;
    }
    let still: Vec<Need> = missing.into_iter().filter(|need| !need.is_there()).collect();
    if still.is_empty() { Ok(()) } else { Err(advice(&still)) }
}

fn advice(missing: &[Need]) -> String {
    let packages: Vec<&str> = missing.iter().flat_map(|need| need.packages()).copied().collect();
    let mut ways: Vec<String> = missing
        .iter()
        .filter_map(|need| need.component())
        .map(|component| format!("rustup component add {component}"))
        .collect();
    if !packages.is_empty() {
        ways.push(format!("as root: apt-get install {}", packages.join(" ")));
    }
    format!("something it needs is not installed; {}", ways.join("; "))
}

fn can_install() -> bool {
    let is_root =
        Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    is_root && Path::new("/usr/bin/apt-get").exists()
}

fn install(packages: &[&str]) -> Result<(), String> {
    static LIST_IS_FRESH: Mutex<bool> = Mutex::new(false);
    let mut fresh = LIST_IS_FRESH.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    println!("installing {}", packages.join(" "));
    if !*fresh {
        // An old list is better than none: whether it sufficed is seen at the end.
        let _ = apt_get(&["update"]);
        *fresh = true;
    }
    apt_get(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
}

fn apt_get(arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new("apt-get");
    command.args(["-qq", "-o", "Dpkg::Use-Pty=0"]).args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    process::run(command, INSTALL_LIMIT).outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_needs_nothing() {
        assert_eq!(ensure(&[]), Ok(()));
    }

    #[test]
    fn the_advice_names_what_to_install() {
        assert_eq!(
            advice(&[Need::Npm, Need::PythonVenv]),
            "something it needs is not installed; as root: apt-get install npm python3 python3-venv"
        );
        assert!(advice(&[Need::Clippy]).ends_with("rustup component add clippy"));
    }
}
