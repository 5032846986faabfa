//! Of which types are the source addresses of SMS to devices?

/// The type of a source address.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AddressType {
    /// A number with its country code (ITU-T E.164).
    #[default]
    International,
    /// A number without a country code, or a short number.
    National,
    /// A name.
    Alphanumeric,
}

impl AddressType {
    /// Every type.
    pub const ALL: [Self; 3] = [Self::International, Self::National, Self::Alphanumeric];

    /// Its number in the API.
    pub fn number(self) -> u8 {
        match self {
            Self::International => 145,
            Self::National => 161,
            Self::Alphanumeric => 209,
        }
    }
}
