//! Which cipher suites exist here, and what does each consist of?

/// A cipher suite of TLS 1.2 with AES-128 and SHA-256.
///
/// RFC 6655 and RFC 7251 (CCM), RFC 5487 and RFC 5289 (GCM and CBC), RFC 8442 and RFC 5489
/// (ECDHE_PSK). Those with CBC are used with peers that encrypt before they authenticate
/// (encrypt_then_mac, RFC 7366), and with others only where the configuration says so.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum CipherSuite {
    /// TLS_PSK_WITH_AES_128_CCM_8, which every LwM2M device with a pre-shared key has.
    PskAes128Ccm8,
    /// TLS_PSK_WITH_AES_128_CCM.
    PskAes128Ccm,
    /// TLS_PSK_WITH_AES_128_GCM_SHA256.
    PskAes128Gcm,
    /// TLS_ECDHE_PSK_WITH_AES_128_CCM_8_SHA256.
    EcdhePskAes128Ccm8,
    /// TLS_ECDHE_PSK_WITH_AES_128_CCM_SHA256.
    EcdhePskAes128Ccm,
    /// TLS_ECDHE_PSK_WITH_AES_128_GCM_SHA256.
    EcdhePskAes128Gcm,
    /// TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8.
    EcdheEcdsaAes128Ccm8,
    /// TLS_ECDHE_ECDSA_WITH_AES_128_CCM.
    EcdheEcdsaAes128Ccm,
    /// TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256.
    EcdheEcdsaAes128Gcm,
    /// TLS_PSK_WITH_AES_128_CBC_SHA256.
    PskAes128Cbc,
    /// TLS_ECDHE_PSK_WITH_AES_128_CBC_SHA256.
    EcdhePskAes128Cbc,
    /// TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256.
    EcdheEcdsaAes128Cbc,
}

/// How both sides arrive at a premaster secret.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum KeyExchange {
    /// The pre-shared key alone (RFC 4279 section 2).
    Psk,
    /// The pre-shared key and ephemeral keys (RFC 5489).
    EcdhePsk,
    /// Ephemeral keys, signed by the server (RFC 8422).
    EcdheEcdsa,
}

/// The cipher of records.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RecordCipher {
    /// AES-128-CCM with a tag of 8 bytes.
    Ccm8,
    /// AES-128-CCM with a tag of 16 bytes.
    Ccm,
    /// AES-128-GCM.
    Gcm,
    /// AES-128-CBC with HMAC-SHA256 over what is encrypted.
    Cbc,
    /// AES-128-CBC over the content and its HMAC-SHA256.
    BareCbc,
}

impl CipherSuite {
    /// Every suite, the server's preference first: a pre-shared key, which a client offers only if
    /// it has one, while many offer certificates without having one; then a cipher that
    /// authenticates; then forward secrecy; then the long tag.
    pub const ALL: [Self; 12] = [
        Self::EcdhePskAes128Gcm,
        Self::EcdhePskAes128Ccm,
        Self::EcdhePskAes128Ccm8,
        Self::PskAes128Gcm,
        Self::PskAes128Ccm,
        Self::PskAes128Ccm8,
        Self::EcdhePskAes128Cbc,
        Self::PskAes128Cbc,
        Self::EcdheEcdsaAes128Gcm,
        Self::EcdheEcdsaAes128Ccm,
        Self::EcdheEcdsaAes128Ccm8,
        Self::EcdheEcdsaAes128Cbc,
    ];

    /// Its name, as IANA registers it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PskAes128Ccm8 => "TLS_PSK_WITH_AES_128_CCM_8",
            Self::PskAes128Ccm => "TLS_PSK_WITH_AES_128_CCM",
            Self::PskAes128Gcm => "TLS_PSK_WITH_AES_128_GCM_SHA256",
            Self::EcdhePskAes128Ccm8 => "TLS_ECDHE_PSK_WITH_AES_128_CCM_8_SHA256",
            Self::EcdhePskAes128Ccm => "TLS_ECDHE_PSK_WITH_AES_128_CCM_SHA256",
            Self::EcdhePskAes128Gcm => "TLS_ECDHE_PSK_WITH_AES_128_GCM_SHA256",
            Self::EcdheEcdsaAes128Ccm8 => "TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8",
            Self::EcdheEcdsaAes128Ccm => "TLS_ECDHE_ECDSA_WITH_AES_128_CCM",
            Self::EcdheEcdsaAes128Gcm => "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            Self::PskAes128Cbc => "TLS_PSK_WITH_AES_128_CBC_SHA256",
            Self::EcdhePskAes128Cbc => "TLS_ECDHE_PSK_WITH_AES_128_CBC_SHA256",
            Self::EcdheEcdsaAes128Cbc => "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
        }
    }

    /// Its number in the registry of IANA.
    pub const fn number(self) -> u16 {
        match self {
            Self::PskAes128Ccm8 => 0xc0a8,
            Self::PskAes128Ccm => 0xc0a4,
            Self::PskAes128Gcm => 0x00a8,
            Self::EcdhePskAes128Ccm8 => 0xd003,
            Self::EcdhePskAes128Ccm => 0xd005,
            Self::EcdhePskAes128Gcm => 0xd001,
            Self::EcdheEcdsaAes128Ccm8 => 0xc0ae,
            Self::EcdheEcdsaAes128Ccm => 0xc0ac,
            Self::EcdheEcdsaAes128Gcm => 0xc02b,
            Self::PskAes128Cbc => 0x00ae,
            Self::EcdhePskAes128Cbc => 0xc037,
            Self::EcdheEcdsaAes128Cbc => 0xc023,
        }
    }

    /// The suite with this number.
    pub fn from_number(number: u16) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|suite| suite.number() == number)
    }

    /// Whether peers prove with it that they have a pre-shared key.
    pub fn has_psk(&self) -> bool {
        match self.key_exchange() {
            KeyExchange::Psk | KeyExchange::EcdhePsk => true,
            KeyExchange::EcdheEcdsa => false,
        }
    }

    /// Whether encrypt_then_mac (RFC 7366) has a meaning for it.
    pub(crate) fn has_cbc(self) -> bool {
        self.record_cipher() == RecordCipher::Cbc
    }

    pub(crate) const fn key_exchange(self) -> KeyExchange {
        match self {
            Self::PskAes128Ccm8 | Self::PskAes128Ccm | Self::PskAes128Gcm | Self::PskAes128Cbc => {
                KeyExchange::Psk
            }
            Self::EcdhePskAes128Ccm8
            | Self::EcdhePskAes128Ccm
            | Self::EcdhePskAes128Gcm
            | Self::EcdhePskAes128Cbc => KeyExchange::EcdhePsk,
            Self::EcdheEcdsaAes128Ccm8
            | Self::EcdheEcdsaAes128Ccm
            | Self::EcdheEcdsaAes128Gcm
            | Self::EcdheEcdsaAes128Cbc => KeyExchange::EcdheEcdsa,
        }
    }

    /// The cipher of records where the peers agree on encrypt_then_mac if it has a meaning.
    pub(crate) const fn record_cipher(self) -> RecordCipher {
        match self {
            Self::PskAes128Ccm8 | Self::EcdhePskAes128Ccm8 | Self::EcdheEcdsaAes128Ccm8 => {
                RecordCipher::Ccm8
            }
            Self::PskAes128Ccm | Self::EcdhePskAes128Ccm | Self::EcdheEcdsaAes128Ccm => {
                RecordCipher::Ccm
            }
            Self::PskAes128Gcm | Self::EcdhePskAes128Gcm | Self::EcdheEcdsaAes128Gcm => {
                RecordCipher::Gcm
            }
            Self::PskAes128Cbc | Self::EcdhePskAes128Cbc | Self::EcdheEcdsaAes128Cbc => {
                RecordCipher::Cbc
            }
        }
    }
}
