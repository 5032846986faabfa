//! Which bytes does a recorded line have?

/// Reads pairs of hexadecimal digits.
pub(crate) fn bytes_of(hex: &str) -> Vec<u8> {
    let digit = |digit: char| digit.to_digit(16).expect("a hexadecimal digit");
    let digits: Vec<u32> = hex.chars().map(digit).collect();
    let pairs = digits.chunks_exact(2);
    assert!(pairs.remainder().is_empty(), "half a byte: {hex}");
    pairs
        .map(|pair| u8::try_from(pair[0] * 16 + pair[1]).expect("two digits fit"))
        .collect()
}
