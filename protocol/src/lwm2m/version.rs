//! Which version of an object or of the enabler is it? (LwM2M Core 1.1 sections 6.2.1, 7.2)

use std::fmt;

use thiserror::Error;

/// A version of an object's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Rises with incompatible changes.
    pub major: u8,
    /// Rises with optional additions.
    pub minor: u8,
}

/// The LwM2M release of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EnablerVersion {
    /// LwM2M 1.0
    V1_0,
    /// LwM2M 1.1
    V1_1,
    /// LwM2M 1.2
    V1_2,
}

/// The text is not a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a version is written major.minor")]
pub struct InvalidVersion;

impl Version {
    /// Makes a version.
    pub const fn new(major: u8, minor: u8) -> Self {
        Self { major, minor }
    }

    /// Reads `major.minor`.
    pub fn parse(text: &str) -> Result<Self, InvalidVersion> {
        let (major, minor) = text.split_once('.').ok_or(InvalidVersion)?;
        Ok(Self {
            major: parse_number(major)?,
            minor: parse_number(minor)?,
        })
    }
}

impl EnablerVersion {
    /// Reads the `lwm2m` parameter of a Register.
    ///
    /// Accepts "1.0.0", which clients built against drafts of 1.0 send.
    pub fn parse(text: &str) -> Result<Self, InvalidVersion> {
        match text {
            "1.0" | "1.0.0" => Ok(Self::V1_0),
            "1.1" => Ok(Self::V1_1),
            "1.2" => Ok(Self::V1_2),
            _ => Err(InvalidVersion),
        }
    }

    /// Returns the text of the `lwm2m` parameter.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1_0 => "1.0",
            Self::V1_1 => "1.1",
            Self::V1_2 => "1.2",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl fmt::Display for EnablerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn parse_number(text: &str) -> Result<u8, InvalidVersion> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(InvalidVersion);
    }
    text.parse().map_err(|_| InvalidVersion)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{EnablerVersion, InvalidVersion, Version};

    #[test]
    fn a_version_orders_by_major_then_minor() {
        assert!(Version::new(1, 9) < Version::new(1, 10));
        assert!(Version::new(1, 10) < Version::new(2, 0));
    }

    #[test]
    fn anything_but_major_and_minor_is_refused() {
        for text in [
            "", "1", "1.", ".1", "1.1.1", "1.+1", "-1.0", "256.0", "a.b", "1,1", " 1.1",
        ] {
            assert_eq!(Version::parse(text), Err(InvalidVersion), "{text:?}");
        }
    }

    #[test]
    fn the_drafts_spelling_means_the_first_enabler() {
        assert_eq!(EnablerVersion::parse("1.0.0"), Ok(EnablerVersion::V1_0));
        for known in [
            EnablerVersion::V1_0,
            EnablerVersion::V1_1,
            EnablerVersion::V1_2,
        ] {
            assert_eq!(EnablerVersion::parse(known.as_str()), Ok(known));
        }
        for text in ["", "1", "1.3", "2.0", "1.1.1", "1.10"] {
            assert_eq!(EnablerVersion::parse(text), Err(InvalidVersion), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_version_survives_its_text(major in any::<u8>(), minor in any::<u8>()) {
            let version = Version::new(major, minor);
            prop_assert_eq!(Version::parse(&version.to_string()), Ok(version));
        }
    }
}
