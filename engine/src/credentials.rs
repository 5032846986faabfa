//! What does a device prove its identity with over DTLS? Its pre-shared key (RFC 4279) and its raw
//! public key (RFC 7250).
//!
//! A new key does not end the one before it. The previous key stays valid until the new one is used
//! for the first time, so that a device can be given its new key over a session of the old one:
//!
//! ```text
//! none --put--> current --put--> current and previous --use of the new key--> current
//! ```
//!
//! A bootstrap issues a key of its own, which replaces the one of its kind that the device
//! registers with in the same way. The key that its customer set stays valid for the next
//! bootstrap, because the account of the bootstrap server keeps it; a later one that its customer
//! sets ends the issued key with its first use. A bootstrap that issues a key of the other kind
//! alone leaves the keys of this one, until the new key is used: then what earlier bootstraps
//! issued is over.

use crate::ids::Endpoint;
use crate::moment::Timestamp;
use crate::sealed::Sealed;

/// The keys of a device.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DeviceCredentials {
    /// The PSK identity that a device without a pre-shared key keeps from the one that was removed;
    /// otherwise it is the endpoint name. A removal frees no name that another device could take,
    /// so it is never refused.
    pub kept_identity: Option<Box<str>>,
    /// The pre-shared key.
    pub psk: Option<Credential<Psk>>,
    /// The raw public key.
    pub public_key: Option<Credential<RawPublicKey>>,
    /// The pre-shared key that the last bootstrap with one issued, and the one it replaces.
    pub issued: Option<Credential<Psk>>,
    /// The same for raw public keys.
    pub issued_public_key: Option<Credential<RawPublicKey>>,
}

/// The keys of one kind that a device has.
struct KeysOfKind<'c, K> {
    /// Set by its customer.
    set: Option<&'c Credential<K>>,
    /// Issued by a bootstrap.
    issued: Option<&'c Credential<K>>,
}

/// What a key is valid for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyUse {
    /// For everything.
    All,
    /// For bootstrap alone: an issued key has replaced it for the rest.
    Bootstrap,
}

/// A key, and the one that it replaces.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Credential<K> {
    /// The current key.
    pub key: K,
    /// When it was set.
    pub created_at: Timestamp,
    /// The handshakes since then were made with a key that is still valid; sessions of earlier ones
    /// are over.
    pub admitted_since: Timestamp,
    /// The previous key, valid until the first use of the current one.
    pub previous: Option<K>,
}

/// A pre-shared key (RFC 4279).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Psk {
    /// The PSK identity, unique service-wide.
    pub identity: Box<str>,
    /// The key itself, sealed for its device.
    pub key: Sealed,
}

/// A raw public key on P-256 (RFC 7250): the uncompressed point.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RawPublicKey([u8; Self::POINT_BYTES]);

/// The bytes are not the SubjectPublicKeyInfo of a key on P-256.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("must be the SubjectPublicKeyInfo of a key on P-256 with an uncompressed point")]
pub struct InvalidPublicKey;

impl DeviceCredentials {
    /// The PSK identity of a device with this endpoint name.
    pub fn psk_identity<'a>(&'a self, endpoint: &'a Endpoint) -> &'a str {
        match (
            self.psk.as_ref().or(self.issued.as_ref()),
            &self.kept_identity,
        ) {
            (Some(psk), _) => &psk.key.identity,
            (None, Some(kept)) => kept,
            (None, None) => endpoint.as_str(),
        }
    }

    /// Every valid pre-shared key, each once.
    pub fn psks(&self) -> impl Iterator<Item = &Psk> {
        self.of_psk().valid()
    }

    /// Every valid public key, each once.
    pub fn public_keys(&self) -> impl Iterator<Item = &RawPublicKey> {
        self.of_public_key().valid()
    }

    /// The valid pre-shared keys of an identity, the issued ones first, and the newest of each
    /// kind.
    pub fn psks_of(&self, identity: &str) -> impl Iterator<Item = &Psk> {
        self.psks().filter(move |psk| *psk.identity == *identity)
    }

    /// What a valid pre-shared key is valid for.
    pub fn use_of(&self, key: &Psk) -> KeyUse {
        self.of_psk().use_of(key)
    }

    /// What a valid public key is valid for.
    pub fn use_of_public_key(&self, key: &RawPublicKey) -> KeyUse {
        self.of_public_key().use_of(key)
    }

    /// The keys with those that a bootstrap issues. The first one of a kind replaces the key that
    /// the customer set, or the one before it if that was not used yet.
    pub fn issuing(
        self,
        psk: Option<Psk>,
        public_key: Option<RawPublicKey>,
        at: Timestamp,
    ) -> Self {
        Self {
            issued: replaced_by(self.issued, &self.psk, psk, at),
            issued_public_key: replaced_by(
                self.issued_public_key,
                &self.public_key,
                public_key,
                at,
            ),
            ..self
        }
    }

    /// The keys after a handshake with one of the pre-shared keys, if that ends another.
    pub fn psk_used(&self, key: &Psk, at: Timestamp) -> Option<Self> {
        let (psk, issued) = self.of_psk().used(key, at);
        let is = Self {
            psk,
            issued,
            issued_public_key: unless_issued_before(
                self.issued_public_key.as_ref(),
                self.issued.as_ref().filter(|it| it.key == *key),
            ),
            ..self.clone()
        };
        (is != *self).then_some(is)
    }

    /// The keys after a handshake with one of the public keys, if that ends another.
    pub fn public_key_used(&self, key: &RawPublicKey, at: Timestamp) -> Option<Self> {
        let (public_key, issued_public_key) = self.of_public_key().used(key, at);
        let is = Self {
            public_key,
            issued_public_key,
            issued: unless_issued_before(
                self.issued.as_ref(),
                self.issued_public_key.as_ref().filter(|it| it.key == *key),
            ),
            ..self.clone()
        };
        (is != *self).then_some(is)
    }

    /// Whether a public key is one of the device.
    pub fn has_public_key(&self, key: &RawPublicKey) -> bool {
        self.public_keys().any(|valid| valid == key)
    }

    /// Whether a session of an identity is still valid if its first handshake was at this time.
    pub fn admit_session_of(&self, identity: &str, handshake_at: Timestamp) -> bool {
        self.of_psk().admit_since(handshake_at) && self.psks_of(identity).next().is_some()
    }

    /// Whether a session of a public key is still valid if its first handshake was at this time.
    pub fn admit_session_with(&self, key: &RawPublicKey, handshake_at: Timestamp) -> bool {
        // The key tells which one the handshake was made with; those of an identity do not.
        let of_kind = self.of_public_key();
        let credentials = of_kind.issued.into_iter().chain(of_kind.set);
        let mut of_key = credentials.filter(|it| it.has(key));
        of_key.any(|it| handshake_at >= it.admitted_since)
    }

    fn of_psk(&self) -> KeysOfKind<'_, Psk> {
        KeysOfKind {
            set: self.psk.as_ref(),
            issued: self.issued.as_ref(),
        }
    }

    fn of_public_key(&self) -> KeysOfKind<'_, RawPublicKey> {
        KeysOfKind {
            set: self.public_key.as_ref(),
            issued: self.issued_public_key.as_ref(),
        }
    }
}

impl<'c, K: Clone + PartialEq> KeysOfKind<'c, K> {
    /// Every valid key, each once; the issued ones first.
    fn valid(self) -> impl Iterator<Item = &'c K> {
        let Self { set, issued } = self;
        let is_issued = move |key: &K| issued.is_some_and(|it| it.has(key));
        let set = set.into_iter().flat_map(Credential::valid_keys);
        let issued = issued.into_iter().flat_map(Credential::valid_keys);
        issued.chain(set.filter(move |key| !is_issued(key)))
    }

    fn use_of(&self, key: &K) -> KeyUse {
        match self.issued {
            Some(issued) if !issued.has(key) && !self.is_set_after(issued, key) => {
                KeyUse::Bootstrap
            }
            Some(_) | None => KeyUse::All,
        }
    }

    /// Whether a key is the one that the customer set after a key was issued.
    fn is_set_after(&self, issued: &Credential<K>, key: &K) -> bool {
        let mut set = self.set.iter();
        set.any(|set| set.created_at > issued.created_at && set.key == *key)
    }

    /// The key that is set and the one that is issued after a handshake with one of the keys.
    fn used(self, key: &K, at: Timestamp) -> (Option<Credential<K>>, Option<Credential<K>>) {
        if let Some(issued) = self.issued.and_then(|it| it.used(key, at)) {
            return (self.set.cloned(), Some(issued));
        }
        let ends_issued = self.issued.is_some_and(|it| self.is_set_after(it, key));
        let set = self.set.map(|it| it.used(key, at).unwrap_or(it.clone()));
        (set, self.issued.filter(|_| !ends_issued).cloned())
    }

    /// Whether sessions whose handshake was at this time are of a valid key, whichever of them it
    /// was.
    fn admit_since(&self, handshake_at: Timestamp) -> bool {
        let credentials = || self.issued.into_iter().chain(self.set);
        let mut since = credentials().map(|it| it.admitted_since);
        credentials().next().is_some() && since.all(|since| handshake_at >= since)
    }
}

impl<K: Clone + PartialEq> Credential<K> {
    /// A key that replaces the one before it, if there was one.
    ///
    /// If that one was never used, the device still has the key before it, and that one stays
    /// valid instead.
    pub fn replacing(was: Option<Self>, key: K, at: Timestamp) -> Self {
        match was {
            None => Self {
                key,
                created_at: at,
                admitted_since: at,
                previous: None,
            },
            Some(was) if was.key == key => was,
            Some(was) => Self {
                previous: Some(was.previous.unwrap_or(was.key)).filter(|it| *it != key),
                key,
                created_at: at,
                admitted_since: was.admitted_since,
            },
        }
    }

    /// The key after a handshake with one of its valid keys, if that ends the previous one.
    pub fn used(&self, key: &K, at: Timestamp) -> Option<Self> {
        let ends_previous = self.previous.is_some() && self.key == *key;
        ends_previous.then(|| Self {
            admitted_since: at,
            previous: None,
            ..self.clone()
        })
    }

    /// Whether a key is one of those that are valid.
    fn has(&self, key: &K) -> bool {
        self.valid_keys().any(|valid| valid == key)
    }

    /// The keys that are valid, the newest first.
    pub fn valid_keys(&self) -> impl Iterator<Item = &K> {
        [&self.key].into_iter().chain(&self.previous)
    }
}

/// The issued credential after a bootstrap, which issues a key of its kind or none.
fn replaced_by<K: Clone + PartialEq>(
    issued: Option<Credential<K>>,
    set: &Option<Credential<K>>,
    key: Option<K>,
    at: Timestamp,
) -> Option<Credential<K>> {
    match key {
        Some(key) => Some(Credential::replacing(
            issued.or_else(|| set.clone()),
            key,
            at,
        )),
        None => issued,
    }
}

/// A credential, unless a bootstrap issued it before the one that issued the key that is used.
fn unless_issued_before<K: Clone, U>(
    issued: Option<&Credential<K>>,
    used: Option<&Credential<U>>,
) -> Option<Credential<K>> {
    let is_over = |it: &Credential<K>| used.is_some_and(|used| it.created_at < used.created_at);
    issued.filter(|it| !is_over(it)).cloned()
}

impl RawPublicKey {
    /// The bytes of a point.
    pub const POINT_BYTES: usize = 65;

    /// What the SubjectPublicKeyInfo of a key on P-256 begins with (RFC 5480 section 2), up to the
    /// byte that says that its point is not compressed.
    const SPKI_PREFIX: [u8; 26] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08,
        0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
    ];

    /// What an uncompressed point begins with (SEC 1 section 2.3.3).
    const UNCOMPRESSED: u8 = 4;

    /// Parses a SubjectPublicKeyInfo, in DER. Whether the point is on the curve shows only when a
    /// signature is verified.
    pub fn from_spki(der: &[u8]) -> Result<Self, InvalidPublicKey> {
        let point = der.strip_prefix(&Self::SPKI_PREFIX);
        Self::from_point(point.ok_or(InvalidPublicKey)?)
    }

    /// Parses an uncompressed point.
    pub fn from_point(point: &[u8]) -> Result<Self, InvalidPublicKey> {
        let point: [u8; Self::POINT_BYTES] = point.try_into().map_err(|_| InvalidPublicKey)?;
        match point {
            [Self::UNCOMPRESSED, ..] => Ok(Self(point)),
            _ => Err(InvalidPublicKey),
        }
    }

    /// The uncompressed point.
    pub fn point(&self) -> &[u8] {
        &self.0
    }

    /// The SubjectPublicKeyInfo, in DER.
    pub fn spki(&self) -> Vec<u8> {
        [&Self::SPKI_PREFIX[..], &self.0].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_previous_key_is_valid_until_the_first_use_of_the_new_one() {
        let first = Credential::replacing(None, psk("a", 1), at(1));
        assert_eq!(keys_of(&first, "a"), [1]);
        let both = Credential::replacing(Some(first.clone()), psk("a", 2), at(2));
        assert_eq!(keys_of(&both, "a"), [2, 1]);
        assert_eq!(both.used(&psk("a", 1), at(3)), None);
        let second = both.used(&psk("a", 2), at(3)).unwrap();
        assert_eq!(keys_of(&second, "a"), [2]);
        assert_eq!(second.created_at, at(2));
        assert_eq!(second.used(&psk("a", 2), at(4)), None);
    }

    #[test]
    fn a_key_that_was_never_used_gives_way_to_the_next_one() {
        let first = Credential::replacing(None, psk("a", 1), at(1));
        let unused = Credential::replacing(Some(first), psk("b", 2), at(2));
        let third = Credential::replacing(Some(unused), psk("c", 3), at(3));
        assert_eq!(third.previous, Some(psk("a", 1)));
        assert_eq!(third.key, psk("c", 3));
    }

    #[test]
    fn a_key_with_another_identity_leaves_the_previous_identity_to_the_previous_key() {
        let first = Credential::replacing(None, psk("a", 1), at(1));
        let both = Credential::replacing(Some(first), psk("b", 2), at(2));
        assert_eq!(keys_of(&both, "a"), [1]);
        assert_eq!(keys_of(&both, "b"), [2]);
        let second = both.used(&psk("b", 2), at(3)).unwrap();
        assert_eq!(keys_of(&second, "a"), [0; 0]);
    }

    #[test]
    fn a_session_is_valid_as_long_as_the_key_of_its_handshake() {
        let first = Credential::replacing(None, psk("a", 1), at(10));
        let admits = |credential: &Credential<Psk>, identity, second| {
            with_psk(credential.clone()).admit_session_of(identity, at(second))
        };
        assert!(!admits(&first, "a", 9), "with a key that was removed");
        assert!(admits(&first, "a", 10));
        assert!(!admits(&first, "b", 10));
        let both = Credential::replacing(Some(first), psk("a", 2), at(20));
        assert!(admits(&both, "a", 15), "with the previous key");
        assert!(admits(&both, "a", 25));
        let second = both.used(&psk("a", 2), at(30)).unwrap();
        assert!(!admits(&second, "a", 25), "with the key that has ended");
        assert!(admits(&second, "a", 30));
        assert!(!DeviceCredentials::default().admit_session_of("a", at(99)));
    }

    #[test]
    fn a_session_with_the_key_of_the_customer_ends_with_it_although_another_one_was_issued() {
        let set = with_psk(Credential::replacing(None, psk("a", 1), at(1)));
        let issued = set.issuing(Some(psk("a", 2)), None, at(2));
        let issued = issued.psk_used(&psk("a", 2), at(3)).unwrap();
        let both = setting(issued, psk("a", 3), at(4));
        let again = both.issuing(Some(psk("a", 4)), None, at(5));
        assert!(again.admit_session_of("a", at(5)));
        let used = again.psk_used(&psk("a", 3), at(6)).unwrap();
        assert_eq!(all_of(&used), [4, 2, 3]);
        assert!(!used.admit_session_of("a", at(5)), "it may be of the first");
        assert!(used.admit_session_of("a", at(6)));
    }

    #[test]
    fn an_issued_key_leaves_the_key_of_the_customer_to_bootstrap() {
        let (first, second, third) = (psk("a", 1), psk("a", 2), psk("a", 3));
        let set = with_psk(Credential::replacing(None, first.clone(), at(1)));
        let issued = set.issuing(Some(second.clone()), None, at(2));
        assert_eq!(all_of(&issued), [2, 1]);
        assert_eq!(
            issued.use_of(&first),
            KeyUse::All,
            "the new key was not used yet"
        );
        assert_eq!(issued.psk_used(&first, at(3)), None);
        let used = issued.psk_used(&second, at(3)).unwrap();
        assert_eq!(all_of(&used), [2, 1]);
        assert_eq!(used.use_of(&first), KeyUse::Bootstrap);
        assert_eq!(used.use_of(&second), KeyUse::All);
        assert_eq!(used.psk_used(&first, at(4)), None);
        let again = used.issuing(Some(third.clone()), None, at(5));
        assert_eq!(all_of(&again), [3, 2, 1]);
        assert_eq!(
            again.use_of(&second),
            KeyUse::All,
            "until the third is used"
        );
        let used = again.psk_used(&third, at(6)).unwrap();
        assert_eq!(all_of(&used), [3, 1]);
    }

    #[test]
    fn an_issued_key_that_was_never_used_leaves_the_one_before_it() {
        let set = with_psk(Credential::replacing(None, psk("a", 1), at(1)));
        let issued = set.issuing(Some(psk("a", 2)), None, at(2));
        let issued = issued.issuing(Some(psk("a", 3)), None, at(3));
        assert_eq!(all_of(&issued), [3, 1]);
        assert_eq!(issued.use_of(&psk("a", 1)), KeyUse::All);
        let only = DeviceCredentials::default().issuing(Some(psk("a", 2)), None, at(2));
        assert_eq!(all_of(&only), [2]);
        assert_eq!(only.psk_used(&psk("a", 2), at(3)), None);
    }

    #[test]
    fn a_key_that_is_set_later_ends_the_issued_one_with_its_first_use() {
        let set = with_psk(Credential::replacing(None, psk("a", 1), at(1)));
        let issued = set.issuing(Some(psk("a", 2)), None, at(2));
        let issued = issued.psk_used(&psk("a", 2), at(3)).unwrap();
        let both = setting(issued, psk("a", 4), at(4));
        assert_eq!(all_of(&both), [2, 4, 1]);
        assert_eq!(both.use_of(&psk("a", 4)), KeyUse::All);
        assert_eq!(both.use_of(&psk("a", 1)), KeyUse::Bootstrap);
        let used = both.psk_used(&psk("a", 4), at(5)).unwrap();
        assert_eq!(all_of(&used), [4]);
    }

    #[test]
    fn an_issued_public_key_leaves_the_public_key_of_the_customer_to_bootstrap() {
        let set = DeviceCredentials {
            public_key: Some(Credential::replacing(None, key(1), at(1))),
            ..DeviceCredentials::default()
        };
        let issued = set.issuing(None, Some(key(2)), at(2));
        assert_eq!(issued.use_of_public_key(&key(1)), KeyUse::All);
        assert_eq!(issued.public_key_used(&key(1), at(3)), None);
        let used = issued.public_key_used(&key(2), at(3)).unwrap();
        assert!(used.public_keys().eq(&[key(2), key(1)]));
        assert_eq!(used.use_of_public_key(&key(1)), KeyUse::Bootstrap);
        assert_eq!(used.use_of_public_key(&key(2)), KeyUse::All);
        assert!(used.admit_session_with(&key(2), at(3)));
        assert!(!used.admit_session_with(&key(2), at(2)));
    }

    #[test]
    fn an_issued_key_ends_with_the_use_of_a_later_one_of_the_other_kind() {
        let set = with_psk(Credential::replacing(None, psk("a", 1), at(1)));
        let first = set.issuing(Some(psk("a", 2)), None, at(2));
        let second = first.issuing(None, Some(key(3)), at(3));
        assert_eq!(all_of(&second), [2, 1]);
        let used = second.public_key_used(&key(3), at(4)).unwrap();
        assert_eq!(all_of(&used), [1]);
        assert_eq!(used.use_of(&psk("a", 1)), KeyUse::All);
        assert_eq!(used.public_key_used(&key(3), at(5)), None);
        let together = used.issuing(Some(psk("a", 4)), Some(key(5)), at(6));
        let used = together.psk_used(&psk("a", 4), at(7)).unwrap();
        assert!(used.has_public_key(&key(5)));
    }

    #[test]
    fn a_public_key_that_is_set_again_changes_nothing() {
        let first = Credential::replacing(None, key(1), at(1));
        assert_eq!(
            Credential::replacing(Some(first.clone()), key(1), at(2)),
            first
        );
        let both = Credential::replacing(Some(first), key(2), at(2));
        let back = Credential::replacing(Some(both), key(1), at(3));
        assert_eq!((back.key, back.previous), (key(1), None));
        let credentials = DeviceCredentials {
            public_key: Some(back),
            ..DeviceCredentials::default()
        };
        assert!(credentials.has_public_key(&key(1)) && !credentials.has_public_key(&key(2)));
        assert!(credentials.admit_session_with(&key(1), at(1)));
        assert!(!credentials.admit_session_with(&key(1), at(0)));
    }

    #[test]
    fn a_public_key_is_the_information_of_an_uncompressed_point_on_p256() {
        let mut spki = RawPublicKey::SPKI_PREFIX.to_vec();
        spki.extend([4; RawPublicKey::POINT_BYTES]);
        let key = RawPublicKey::from_spki(&spki).unwrap();
        assert_eq!(key.spki(), spki);
        assert_eq!(key.point(), [4; RawPublicKey::POINT_BYTES]);
        let mut compressed = spki.clone();
        compressed[RawPublicKey::SPKI_PREFIX.len()] = 2;
        let mut other_curve = spki.clone();
        other_curve[20] ^= 1;
        let longer = [&spki[..], &[0]].concat();
        for wrong in [
            &[][..],
            &spki[1..],
            &spki[..90],
            &longer,
            &compressed,
            &other_curve,
        ] {
            assert_eq!(RawPublicKey::from_spki(wrong), Err(InvalidPublicKey));
        }
    }

    fn all_of(credentials: &DeviceCredentials) -> Vec<u8> {
        let keys = credentials.psks();
        keys.map(|psk| psk.key.as_bytes()[0]).collect()
    }

    /// The customer sets another key.
    fn setting(credentials: DeviceCredentials, key: Psk, at: Timestamp) -> DeviceCredentials {
        let psk = Some(Credential::replacing(credentials.psk, key, at));
        DeviceCredentials { psk, ..credentials }
    }

    fn with_psk(psk: Credential<Psk>) -> DeviceCredentials {
        DeviceCredentials {
            psk: Some(psk),
            ..DeviceCredentials::default()
        }
    }

    fn keys_of(psk: &Credential<Psk>, identity: &str) -> Vec<u8> {
        let credentials = with_psk(psk.clone());
        let keys = credentials.psks_of(identity);
        keys.map(|psk| psk.key.as_bytes()[0]).collect()
    }

    fn key(byte: u8) -> RawPublicKey {
        let mut point = [byte; RawPublicKey::POINT_BYTES];
        point[0] = RawPublicKey::UNCOMPRESSED;
        RawPublicKey::from_point(&point).unwrap()
    }

    fn psk(identity: &str, byte: u8) -> Psk {
        Psk {
            identity: identity.into(),
            key: Sealed::from_bytes(Box::from([byte])),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_ms(1_000 * second)
    }
}
