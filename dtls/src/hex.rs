//! How do tests write bytes? In hexadecimal digits.

/// The bytes of a text; blanks between them do not count.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|character| !character.is_whitespace())
        .map(|character| character.to_digit(16).expect("a hexadecimal digit"))
        .collect();
    let pairs = digits.chunks_exact(2);
    pairs.map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}
