//! What is a firmware image? A file that devices update themselves with; a campaign has devices do
//! so.

pub mod campaign;
pub mod delivery;
pub mod download;
pub mod image_key;
pub mod runner;
pub mod update;

use sha2::{Digest as _, Sha256};
use url::Url;

use crate::ids::{CustomerId, ImageId};
use crate::limits::FIRMWARE_URI_CHARACTERS_MAX;
use crate::moment::Timestamp;

/// A stored image, without its bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FirmwareImage {
    /// Its id; ids sort by creation time.
    pub id: ImageId,
    /// The customer that owns it.
    pub customer: CustomerId,
    /// A name for people.
    pub name: Option<Box<str>>,
    /// The version of the firmware, as its customer says.
    pub version: Option<Box<str>>,
    /// When it was stored.
    pub created_at: Timestamp,
    /// Its length, in bytes.
    pub bytes: u64,
    /// The SHA-256 of its bytes.
    pub sha256: [u8; 32],
}

/// A part of a stored image, at most one block of a transfer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ImageRange {
    /// The image.
    pub image: ImageId,
    /// The first byte.
    pub from: u64,
    /// The number of bytes.
    pub bytes: usize,
}

/// A part of an image could not be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ImageUnreadable;

/// Reads the URI that devices are given of an image on another server. Devices need not support
/// every scheme (LwM2M Core 1.1 appendix E.6, resource 8).
pub fn firmware_uri(text: &str) -> Result<Box<str>, String> {
    if text.len() > FIRMWARE_URI_CHARACTERS_MAX {
        return Err(format!(
            "must not be longer than {FIRMWARE_URI_CHARACTERS_MAX} characters"
        ));
    }
    let url = Url::parse(text).map_err(|why| format!("must be a URI: {why}"))?;
    let is_known = ["http", "https", "coap", "coaps"].contains(&url.scheme());
    let is_ascii = text.bytes().all(|byte| byte.is_ascii_graphic());
    match is_known && is_ascii && url.host_str().is_some_and(|host| !host.is_empty()) {
        true => Ok(text.into()),
        false => Err("must be an http, https, coap or coaps URI with a host".to_owned()),
    }
}

/// The digest of an image, piece by piece.
#[derive(Clone, Debug, Default)]
pub struct ImageDigest(Sha256);

impl ImageDigest {
    /// Adds a piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The SHA-256 of all pieces.
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}
