//! How is a secret stored that must be readable later: device keys, webhook keys, passwords?
//!
//! XChaCha20-Poly1305 under the master key, with a random nonce. The sealed form is a format byte,
//! four bytes that identify the master key, the nonce, and the ciphertext with its tag. The context
//! (what the secret belongs to) is authenticated, so a secret that was moved to another record does
//! not open.

use std::cmp::Ordering;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use engine::sealed::Sealed;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

const FORMAT: u8 = 1;
const KEY_ID_BYTES: usize = 4;
const NONCE_BYTES: usize = 24;

/// The key that seals every secret of the store.
pub struct MasterKey {
    id: [u8; KEY_ID_BYTES],
    /// What keys of other purposes are derived from.
    seed: [u8; 32],
    cipher: XChaCha20Poly1305,
}

/// Why a sealed secret does not open.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CannotOpen {
    /// Another master key sealed it.
    #[error("the secret was encrypted with another master key")]
    OtherKey,
    /// It was changed, or it belongs to another context.
    #[error("the encrypted secret was changed or moved to another record")]
    Tampered,
    /// A newer version of signalbox sealed it.
    #[error("the secret was encrypted by a newer version of signalbox")]
    Newer,
}

/// Why the master key is not available.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text is not 64 hexadecimal digits.
    #[error("the file master-key in the data directory must contain 64 hexadecimal digits")]
    Malformed,
    /// The file cannot be read or created.
    #[error("the master key in {path} cannot be used: {source}")]
    Io {
        /// Where it should be.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl MasterKey {
    /// The key with these bytes.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        let digest = digest_of(b"signalbox master key", bytes);
        let mut id = [0; KEY_ID_BYTES];
        id.copy_from_slice(&digest[..KEY_ID_BYTES]);
        Self {
            id,
            seed: digest_of(b"signalbox derived keys", bytes),
            cipher: XChaCha20Poly1305::new(bytes.into()),
        }
    }

    /// Reads the key as an operator writes it: 64 hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let bytes = from_hex(text.trim()).ok_or(KeyError::Malformed)?;
        Ok(Self::from_bytes(&bytes))
    }

    /// Whether a directory has the file `master-key`.
    pub fn is_in(data_dir: &Path) -> bool {
        path_in(data_dir).exists()
    }

    /// The key in the file `master-key` of a directory; if the file does not exist, it is created
    /// with a random key and mode 0600.
    pub fn load_or_make(data_dir: &Path) -> Result<Self, KeyError> {
        let path = path_in(data_dir);
        let text = read_or_make(&path, None).map_err(|source| KeyError::Io { path, source })?;
        Self::parse(&text)
    }

    /// The key that is to replace the one of a directory, in its file `master-key.next`; if the
    /// file does not exist, it is created with `text`, or with a random key.
    pub fn load_or_make_next(data_dir: &Path, text: Option<&str>) -> Result<Self, KeyError> {
        if let Some(text) = text {
            Self::parse(text)?;
        }
        let path = next_path_in(data_dir);
        let text = read_or_make(&path, text).map_err(|source| KeyError::Io { path, source })?;
        Self::parse(&text)
    }

    /// Whether the key of a directory is being replaced: some secrets may be sealed with the next
    /// one already.
    pub fn is_being_replaced(data_dir: &Path) -> bool {
        next_path_in(data_dir).exists()
    }

    /// Makes the next key of a directory its key. The former one is gone.
    pub fn replace(data_dir: &Path) -> Result<(), KeyError> {
        let path = path_in(data_dir);
        let renamed = fs::rename(next_path_in(data_dir), &path);
        renamed
            .and_then(|()| sync_directory_of(&path))
            .map_err(|source| KeyError::Io { path, source })
    }

    /// The key for another purpose: always the same one, which tells nothing of the master key.
    pub fn derive(&self, purpose: &[u8]) -> [u8; 32] {
        digest_of(purpose, &self.seed)
    }

    /// Seals a secret that belongs to `context`.
    pub fn seal(&self, plain: &[u8], context: &[u8]) -> Sealed {
        let nonce: [u8; NONCE_BYTES] = random();
        let payload = Payload {
            msg: plain,
            aad: context,
        };
        let ciphertext = self
            .cipher
            .encrypt(&XNonce::from(nonce), payload)
            .expect("a secret is far below the 256 GiB this cipher can take");
        let mut sealed = Vec::with_capacity(1 + KEY_ID_BYTES + NONCE_BYTES + ciphertext.len());
        sealed.push(FORMAT);
        sealed.extend_from_slice(&self.id);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(&ciphertext);
        Sealed::from_bytes(sealed.into())
    }

    /// Opens a secret that belongs to `context`.
    pub fn open(&self, sealed: &Sealed, context: &[u8]) -> Result<Zeroizing<Vec<u8>>, CannotOpen> {
        let (format, rest) = sealed
            .as_bytes()
            .split_first()
            .ok_or(CannotOpen::Tampered)?;
        match format.cmp(&FORMAT) {
            Ordering::Less => return Err(CannotOpen::Tampered),
            Ordering::Equal => {}
            Ordering::Greater => return Err(CannotOpen::Newer),
        }
        let (id, rest) = rest.split_first_chunk().ok_or(CannotOpen::Tampered)?;
        if *id != self.id {
            return Err(CannotOpen::OtherKey);
        }
        let (nonce, ciphertext) = rest
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or(CannotOpen::Tampered)?;
        let payload = Payload {
            msg: ciphertext,
            aad: context,
        };
        self.cipher
            .decrypt(&XNonce::from(*nonce), payload)
            .map(Zeroizing::new)
            .map_err(|_| CannotOpen::Tampered)
    }

    /// Whether two keys are the same, as far as their ids tell.
    pub fn is(&self, other: &Self) -> bool {
        self.id == other.id
    }

    /// Whether this key sealed a secret. The id of a key does not prove it, so only opening tells
    /// whether the secret is whole.
    pub fn has_sealed(&self, sealed: &Sealed) -> bool {
        let [format, id @ ..] = sealed.as_bytes() else {
            return false;
        };
        *format == FORMAT && id.starts_with(&self.id)
    }
}

fn digest_of(purpose: &[u8], key: &[u8; 32]) -> [u8; 32] {
    let digest = Sha256::new().chain_update(purpose).chain_update(key);
    digest.finalize().into()
}

fn read_or_make(path: &Path, text: Option<&str>) -> io::Result<Zeroizing<String>> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        read => return read.map(Zeroizing::new),
    }
    match text {
        Some(text) => make(path, text.trim())?,
        None => make(path, &to_hex(&Zeroizing::new(random::<32>())[..]))?,
    }
    // Another process may have created it first; then its key is used.
    fs::read_to_string(path).map(Zeroizing::new)
}

/// Creates the file whole or not at all, and never overwrites an existing one.
fn make(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_extension(std::process::id().to_string());
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    let linked = fs::hard_link(&unfinished, path);
    fs::remove_file(&unfinished)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => sync_directory_of(path),
    }
}

fn path_in(data_dir: &Path) -> PathBuf {
    data_dir.join("master-key")
}

fn next_path_in(data_dir: &Path) -> PathBuf {
    data_dir.join("master-key.next")
}

fn sync_directory_of(path: &Path) -> io::Result<()> {
    match path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        Some(parent) => File::open(parent)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes once it runs");
    bytes
}

fn to_hex(bytes: &[u8]) -> Zeroizing<String> {
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    Zeroizing::new(digits.collect())
}

fn from_hex(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = Zeroizing::new([0; 32]);
    for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn key(byte: u8) -> MasterKey {
        MasterKey::from_bytes(&[byte; 32])
    }

    #[test]
    fn a_secret_opens_only_with_its_key_and_context() {
        let sealed = key(1).seal(b"secret", b"device 7");
        let opened = key(1).open(&sealed, b"device 7").unwrap();
        assert_eq!(*opened, b"secret");
        assert!(key(1).has_sealed(&sealed) && !key(2).has_sealed(&sealed));
        assert_eq!(key(2).open(&sealed, b"device 7"), Err(CannotOpen::OtherKey));
        assert_eq!(key(1).open(&sealed, b"device 8"), Err(CannotOpen::Tampered));
    }

    #[test]
    fn no_changed_byte_goes_unnoticed() {
        let sealed = key(1).seal(b"secret", b"");
        for at in 0..sealed.as_bytes().len() {
            let mut bytes = sealed.as_bytes().to_vec();
            bytes[at] ^= 1;
            assert!(
                key(1).open(&Sealed::from_bytes(bytes.into()), b"").is_err(),
                "byte {at}"
            );
        }
        for length in 0..sealed.as_bytes().len() {
            let short = Sealed::from_bytes(sealed.as_bytes()[..length].into());
            assert!(key(1).open(&short, b"").is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_secret_of_a_newer_format_is_not_called_damaged() {
        let mut bytes = key(1).seal(b"secret", b"").as_bytes().to_vec();
        bytes[0] = FORMAT + 1;
        assert_eq!(
            key(1).open(&Sealed::from_bytes(bytes.into()), b""),
            Err(CannotOpen::Newer)
        );
    }

    #[test]
    fn the_same_secret_is_sealed_differently_each_time() {
        assert_ne!(key(1).seal(b"secret", b""), key(1).seal(b"secret", b""));
    }

    #[test]
    fn a_key_is_made_once_for_its_owner_alone() {
        let home = tempfile::tempdir().unwrap();
        let made = MasterKey::load_or_make(home.path()).unwrap();
        let loaded = MasterKey::load_or_make(home.path()).unwrap();
        let sealed = made.seal(b"secret", b"");
        assert_eq!(*loaded.open(&sealed, b"").unwrap(), b"secret");
        let file = home.path().join("master-key");
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let text = fs::read_to_string(&file).unwrap();
        let parsed = MasterKey::parse(&text).unwrap();
        assert_eq!(*parsed.open(&sealed, b"").unwrap(), b"secret");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_next_key_of_a_directory_replaces_its_key() {
        let home = tempfile::tempdir().unwrap();
        let first = MasterKey::load_or_make(home.path()).unwrap();
        assert!(!MasterKey::is_being_replaced(home.path()));
        let next = MasterKey::load_or_make_next(home.path(), None).unwrap();
        assert!(MasterKey::is_being_replaced(home.path()));
        let again = MasterKey::load_or_make_next(home.path(), None).unwrap();
        let sealed = next.seal(b"secret", b"");
        assert!(again.has_sealed(&sealed) && !first.has_sealed(&sealed));
        MasterKey::replace(home.path()).unwrap();
        assert!(!MasterKey::is_being_replaced(home.path()));
        let current = MasterKey::load_or_make(home.path()).unwrap();
        assert_eq!(*current.open(&sealed, b"").unwrap(), b"secret");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);

        let given = "ab".repeat(32);
        let next = MasterKey::load_or_make_next(home.path(), Some(&given)).unwrap();
        assert!(next.has_sealed(&MasterKey::parse(&given).unwrap().seal(b"", b"")));
        assert!(matches!(
            MasterKey::load_or_make_next(home.path(), Some("short")),
            Err(KeyError::Malformed)
        ));
    }

    #[test]
    fn a_key_that_is_not_64_hexadecimal_digits_is_refused() {
        let good = "0123456789abcdefABCDEF00".repeat(2) + "0123456789abcdef";
        assert!(MasterKey::parse(&format!("{good}\n")).is_ok());
        for bad in [
            "",
            "00",
            &good[1..],
            &format!("{good}0"),
            &good.replace('a', "g"),
        ] {
            assert!(
                matches!(MasterKey::parse(bad), Err(KeyError::Malformed)),
                "{bad}"
            );
        }
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("master-key"), "").unwrap();
        assert!(matches!(
            MasterKey::load_or_make(home.path()),
            Err(KeyError::Malformed)
        ));
    }
}
