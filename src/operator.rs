//! The token of the operator API: from the configuration, or generated once and stored in a file
//! that only its owner can read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use engine::customer::SecretDigest;

use crate::config::{Config, TOKEN_CHARS_MIN};

const FILE: &str = "operator-token";

/// The operator's credentials. Only a digest stays in memory.
#[derive(Clone, Debug)]
pub struct OperatorToken {
    /// The digest of the token; comparing digests leaks nothing of the token through timing.
    pub digest: SecretDigest,
    /// The file of the token, unless the configuration gives it.
    pub path: Option<PathBuf>,
}

impl OperatorToken {
    /// Reads the token from the configuration or the data directory, or generates one there.
    pub fn load_or_make(config: &Config) -> io::Result<Self> {
        if let Some(token) = &config.operator_token {
            return Ok(Self {
                digest: SecretDigest::of(token.expose()),
                path: None,
            });
        }
        let path = config.data_dir.join(FILE);
        let token = match stored_at(&path) {
            Ok(token) => token,
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(&path)?,
            Err(error) => return Err(error),
        };
        if token.len() < TOKEN_CHARS_MIN {
            let message = format!(
                "{} has fewer than {TOKEN_CHARS_MIN} characters; delete it to generate a new one",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(Self {
            digest: SecretDigest::of(&token),
            path: Some(path),
        })
    }

    /// The token of the service with this configuration, for a call of its operator API.
    pub fn read(config: &Config) -> io::Result<String> {
        match &config.operator_token {
            Some(token) => Ok(token.expose().to_owned()),
            None => stored_at(&config.data_dir.join(FILE)),
        }
    }
}

fn stored_at(path: &Path) -> io::Result<String> {
    let text = fs::read_to_string(path)?;
    Ok(text.trim().to_owned())
}

fn make(path: &Path) -> io::Result<String> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    let token = URL_SAFE_NO_PAD.encode(random);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{token}")?;
    file.sync_all()?;
    Ok(token)
}
