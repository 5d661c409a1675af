//! Making a key that nobody but the server's user can read, all of it or none.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use auth::{Algorithm, SigningKey};
use aws_lc_rs::rand;

use super::{KeysError, folder, signing_file};

/// What was made.
#[derive(Debug)]
pub struct Generated {
    /// Its algorithm.
    pub algorithm: Algorithm,
    /// The file that signs: to be kept secret.
    pub signing: PathBuf,
    /// The public key, which other servers may have; a secret has none.
    pub verifying: Option<PathBuf>,
}

/// Makes a signing key in the data folder.
///
/// # Errors
/// When one is there already, or the files cannot be made.
pub fn generate(data: &Path, algorithm: Algorithm) -> Result<Generated, KeysError> {
    for kind in [Algorithm::EdDsa, Algorithm::Hs256] {
        let path = signing_file(data, kind);
        if path.symlink_metadata().is_ok() {
            return Err(KeysError::Exists { path });
        }
    }
    let key = random_key(algorithm)?;
    let folder = folder(data);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.map_err(|cause| KeysError::Write { path: folder.clone(), cause })?;
    let verifying = match key.public_pem() {
        Some(pem) => {
            let path = folder.join("verifying.pem");
            // A public key left behind by a signing key that was removed is of no use to anybody.
            let _ = fs::remove_file(&path);
            write_new(&path, pem.as_bytes())?;
            Some(path)
        }
        None => None,
    };
    let signing = signing_file(data, key.algorithm());
    let bytes = key.to_file_bytes().map_err(|cause| KeysError::Content { path: signing.clone(), cause })?;
    write_new(&signing, &bytes)?;
    Ok(Generated { algorithm: key.algorithm(), signing, verifying })
}

fn random_key(algorithm: Algorithm) -> Result<SigningKey, KeysError> {
    let mut seed = [0; 32];
    rand::fill(&mut seed).map_err(|_| KeysError::Random)?;
    let key = match algorithm {
        Algorithm::Hs256 => SigningKey::from_secret(text_secret(&seed).as_bytes()),
        _ => SigningKey::ed25519_from_seed(&seed),
    };
    key.map_err(|cause| KeysError::Set { cause })
}

/// A secret that can be copied by hand: 64 hexadecimal digits, which are themselves the bytes of the secret.
fn text_secret(seed: &[u8; 32]) -> String {
    seed.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a file that does not exist yet, whole and on the disk before it has its name.
fn write_new(path: &Path, bytes: &[u8]) -> Result<(), KeysError> {
    let unfinished = path.with_extension(format!("unfinished-{}", std::process::id()));
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        // A link, unlike a rename, fails when the name is taken in the meantime.
        fs::hard_link(&unfinished, path)?;
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    let written = write();
    let _ = fs::remove_file(&unfinished);
    written.map_err(|cause| match cause.kind() {
        ErrorKind::AlreadyExists => KeysError::Exists { path: path.to_owned() },
        _ => KeysError::Write { path: path.to_owned(), cause },
    })
}
