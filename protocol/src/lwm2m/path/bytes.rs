//! How is a path stored in keys that are compared byte by byte?
//!
//! Each number is two bytes, big-endian, from the object down, so that the bytes sort like the
//! paths and those of any path below begin with its own. The level follows from the length: the
//! form is for the end of a key or for a field with a length, not for the middle of a key.

use std::fmt;
use std::ops::Deref;

use super::{Path, next_level};

/// Two bytes for each of four levels.
const BYTES_MAX: usize = 8;

/// The bytes of a path, 2 to 8 of them, inline.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PathBytes {
    bytes: [u8; BYTES_MAX],
    length: usize,
}

impl Path {
    /// Writes the path as bytes that sort like paths.
    pub fn to_bytes(&self) -> PathBytes {
        let mut written = PathBytes {
            bytes: [0; BYTES_MAX],
            length: 0,
        };
        let (places, _) = written.bytes.as_chunks_mut::<2>();
        for (place, segment) in places.iter_mut().zip(self.segments()) {
            *place = segment.to_be_bytes();
            written.length += place.len();
        }
        written
    }

    /// Reads the bytes written by [`Path::to_bytes`]; none for other lengths.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (pairs, []) = bytes.as_chunks::<2>() else {
            return None;
        };
        let mut segments = [0; 4];
        let mut level = None;
        for pair in pairs {
            let deeper = next_level(level)?;
            segments[deeper as usize] = u16::from_be_bytes(*pair);
            level = Some(deeper);
        }
        level.map(|level| Self { segments, level })
    }
}

impl Deref for PathBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl AsRef<[u8]> for PathBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for PathBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use crate::lwm2m::path::Path;
    use crate::lwm2m::path::tests::{any_path, near_path};

    #[test]
    fn each_number_is_two_bytes() {
        assert_eq!(*Path::object(3).to_bytes(), [0, 3]);
        let deep = Path::resource_instance(10_300, 65_535, 0, 256);
        assert_eq!(*deep.to_bytes(), [0x28, 0x3c, 0xff, 0xff, 0, 0, 1, 0]);
    }

    #[test]
    fn bytes_of_another_length_are_no_path() {
        for length in [0, 1, 3, 5, 7, 9, 10, 16] {
            assert_eq!(Path::from_bytes(&vec![0; length]), None, "{length} bytes");
        }
    }

    proptest! {
        #[test]
        fn every_path_survives_its_bytes(path in any_path()) {
            prop_assert_eq!(Path::from_bytes(&path.to_bytes()), Some(path));
        }

        #[test]
        fn bytes_sort_as_paths_do(one in near_path(), other in near_path()) {
            prop_assert_eq!(one.to_bytes().cmp(&*other.to_bytes()), one.cmp(&other));
        }

        #[test]
        fn bytes_below_a_path_begin_with_its_own(one in near_path(), other in near_path()) {
            let begins = other.to_bytes().starts_with(&one.to_bytes());
            prop_assert_eq!(begins, one.contains(other));
        }

        #[test]
        fn any_bytes_are_a_path_or_none(bytes in vec(any::<u8>(), 0..12)) {
            match Path::from_bytes(&bytes) {
                Some(path) => prop_assert_eq!(&*path.to_bytes(), bytes.as_slice()),
                None => prop_assert!(!matches!(bytes.len(), 2 | 4 | 6 | 8)),
            }
        }
    }
}
