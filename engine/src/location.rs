//! The path segment that names a registration (LwM2M Core 1.2 section 6.2.1).
//!
//! It contains half of the device's key, so that an update reaches its shard and device without a
//! look-up, and a salt, so that it is hard to guess and ends with its registration.

use std::fmt;

use base64::Engine as _;
use base64::display::Base64Display;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::ids::DeviceKey;

/// Names one registration of one device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Location {
    /// The first half of the device's key.
    pub device: [u8; 8],
    /// Distinguishes this registration from others of the device.
    pub salt: u32,
}

impl Location {
    /// The location of a device's registration.
    pub fn new(device: DeviceKey, salt: u32) -> Self {
        Self {
            device: device.prefix(),
            salt,
        }
    }

    /// Parses a location from its path segment; `None` if it is not one.
    pub fn parse(segment: &str) -> Option<Self> {
        let mut bytes = [0; 12];
        let length = URL_SAFE_NO_PAD.decode_slice(segment, &mut bytes).ok()?;
        if length != bytes.len() {
            return None;
        }
        let (device, salt) = bytes.split_first_chunk::<8>()?;
        Some(Self {
            device: *device,
            salt: u32::from_be_bytes(salt.try_into().ok()?),
        })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [0; 12];
        let (device, salt) = bytes.split_at_mut(8);
        device.copy_from_slice(&self.device);
        salt.copy_from_slice(&self.salt.to_be_bytes());
        Base64Display::new(&bytes, &URL_SAFE_NO_PAD).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_read_back_from_sixteen_characters() {
        let location = Location {
            device: [1, 2, 3, 4, 5, 250, 251, 252],
            salt: 0xDEAD_BEEF,
        };
        let text = location.to_string();
        assert_eq!(text.len(), 16);
        assert_eq!(Location::parse(&text), Some(location));
    }

    #[test]
    fn other_segments_name_no_registration() {
        for segment in [
            "",
            "5a3f",
            "AAAAAAAAAAAA",
            "AAAAAAAAAAAAAAA!",
            "AAAAAAAAAAAAAAAAAAAA",
        ] {
            assert_eq!(Location::parse(segment), None, "{segment}");
        }
    }
}
