//! How does a file consist of sealed parts? Each follows its length.

use std::io;

use engine::sealed::Sealed;

/// Appends what was sealed to a file, or to what is to be written to one.
pub(super) fn append_frame(out: &mut impl io::Write, sealed: &Sealed) -> io::Result<()> {
    let sealed = sealed.as_bytes();
    let length = u32::try_from(sealed.len()).map_err(io::Error::other)?;
    out.write_all(&length.to_be_bytes())?;
    out.write_all(sealed)
}

/// The first part of a file and what follows it; none if it is not whole.
pub(super) fn split_frame(file: &[u8]) -> Option<(Sealed, &[u8])> {
    let (length, rest) = file.split_first_chunk()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (sealed, rest) = rest.split_at_checked(length)?;
    Some((Sealed::from_bytes(sealed.into()), rest))
}
