//! Which keys follow from a premaster secret? RFC 5246 sections 5, 6.3, 7.4.9 and 8.1; RFC 7627.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

use crate::cipher_suite::RecordCipher;
use crate::record::protection::{KEY_BLOCK_MAX, TrafficKey};

pub(crate) const RANDOM_LENGTH: usize = 32;
pub(crate) const MASTER_SECRET_LENGTH: usize = 48;
pub(crate) const VERIFY_DATA_LENGTH: usize = 12;

/// The secret of a session, of which its keys are made.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct MasterSecret(pub(crate) [u8; MASTER_SECRET_LENGTH]);

/// The two randoms of a handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Randoms {
    pub(crate) client: [u8; RANDOM_LENGTH],
    pub(crate) server: [u8; RANDOM_LENGTH],
}

/// The keys of both directions.
pub(crate) struct TrafficKeys {
    pub(crate) client: TrafficKey,
    pub(crate) server: TrafficKey,
}

/// Whose Finished it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// The hash of the handshake messages so far (RFC 5246 section 7.4.9).
pub(crate) type TranscriptHash = [u8; 32];

impl MasterSecret {
    /// RFC 5246 section 8.1.
    pub(crate) fn new(premaster: &[u8], randoms: &Randoms) -> Self {
        let mut secret = Self([0; MASTER_SECRET_LENGTH]);
        let seed = [&randoms.client[..], &randoms.server[..]];
        prf(premaster, b"master secret", &seed, &mut secret.0);
        secret
    }

    /// RFC 7627 section 4: bound to the whole handshake.
    pub(crate) fn extended(premaster: &[u8], session_hash: &TranscriptHash) -> Self {
        let mut secret = Self([0; MASTER_SECRET_LENGTH]);
        let label = b"extended master secret";
        prf(premaster, label, &[session_hash], &mut secret.0);
        secret
    }

    /// Extended, or not, as agreed in the hellos.
    pub(crate) fn agreed(
        is_extended: bool,
        premaster: &[u8],
        session_hash: &TranscriptHash,
        randoms: &Randoms,
    ) -> Self {
        match is_extended {
            true => Self::extended(premaster, session_hash),
            false => Self::new(premaster, randoms),
        }
    }

    /// RFC 5246 section 6.3: of each part of a key the client's comes first.
    pub(crate) fn traffic_keys(&self, cipher: RecordCipher, randoms: &Randoms) -> TrafficKeys {
        let mut block = Zeroizing::new([0; KEY_BLOCK_MAX]);
        let [first, second] = cipher.key_parts();
        let seed = [&randoms.server[..], &randoms.client[..]];
        let block = &mut block[..2 * (first + second)];
        prf(&self.0, b"key expansion", &seed, block);
        let (firsts, seconds) = block.split_at(2 * first);
        let (client_first, server_first) = firsts.split_at(first);
        let (client_second, server_second) = seconds.split_at(second);
        TrafficKeys {
            client: TrafficKey::new(cipher, [client_first, client_second]),
            server: TrafficKey::new(cipher, [server_first, server_second]),
        }
    }

    /// RFC 5246 section 7.4.9.
    pub(crate) fn verify_data(
        &self,
        side: Side,
        transcript: &TranscriptHash,
    ) -> [u8; VERIFY_DATA_LENGTH] {
        let label: &[u8] = match side {
            Side::Client => b"client finished",
            Side::Server => b"server finished",
        };
        let mut data = [0; VERIFY_DATA_LENGTH];
        prf(&self.0, label, &[transcript], &mut data);
        data
    }
}

impl Drop for MasterSecret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for MasterSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterSecret(..)")
    }
}

/// The premaster secret of a pre-shared key and another secret (RFC 4279 section 2, RFC 5489
/// section 2). Plain PSK has zeros in place of the other secret.
pub(crate) fn psk_premaster(psk: &[u8], other: Option<&[u8]>) -> Zeroizing<Vec<u8>> {
    let other_length = other.map_or(psk.len(), <[u8]>::len);
    let mut premaster = Vec::with_capacity(4 + other_length + psk.len());
    premaster.extend_from_slice(&(other_length as u16).to_be_bytes());
    match other {
        Some(other) => premaster.extend_from_slice(other),
        None => premaster.resize(2 + psk.len(), 0),
    }
    premaster.extend_from_slice(&(psk.len() as u16).to_be_bytes());
    premaster.extend_from_slice(psk);
    Zeroizing::new(premaster)
}

/// A keyed hash of parts.
pub(crate) fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = keyed(key);
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// P_SHA256 of RFC 5246 section 5.
fn prf(secret: &[u8], label: &[u8], seed: &[&[u8]], out: &mut [u8]) {
    let mac = keyed(secret);
    let with_seed = |mut mac: Hmac<Sha256>| {
        mac.update(label);
        seed.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes()
    };
    let mut a = with_seed(mac.clone());
    for chunk in out.chunks_mut(Sha256::output_size()) {
        let mut next = mac.clone();
        next.update(&a);
        let block = with_seed(next);
        chunk.copy_from_slice(&block[..chunk.len()]);
        let mut next = mac.clone();
        next.update(&a);
        a = next.finalize().into_bytes();
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of every length (RFC 2104 section 2)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex::hex;

    #[test]
    fn the_prf_gives_the_known_answer() {
        // The vector for SHA-256 of the mailing list of the TLS working group, of 2008.
        let secret = hex("9bbe436ba940f017b17652849a71db35");
        let seed = hex("a0ba9f936cda311827a6f796ffd5198c");
        let mut out = [0; 100];
        prf(&secret, b"test label", &[&seed], &mut out);
        let expected = "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a6b301791\
                        e90d35c9c9a46b4e14baf9af0fa022f7077def17abfd3797c0564bab4fbc91666e9def9b\
                        97fce34f796789baa48082d122ee42c5a72e5a5110fff70187347b66";
        assert_eq!(out[..], hex(expected));
    }

    /// NIST ACVP, TLS-v1.2 KDF RFC7627 with SHA2-256, test cases 1 and 2.
    #[test]
    fn the_extended_master_secret_and_its_keys_are_those_of_nist() {
        for [premaster, session_hash, client, server, master, key_block] in [
            [
                "8252b983a6459a6fb3b9debe8725247e276139ebf7c9adccdd7d240f3ada7f5e3351b2769b6c8dc1\
                 69a6d799c3c0ffeb",
                "1359d7df74cb27c67f74c98d521d442b887eaf0decf6e382c62434d6c3dd7d0d",
                "abe7af69affc5e0944f4009b3e7abd1cc0a5cce8db055eff4a509e5b6de9475a",
                "50e0a1a1fd64a55259781a5c22580a81f99799c32f52d3f48d2c10c5c692e289",
                "43a5e821fcf5446c712207f7cd161ed213ee3b9d001d418c57231befd596b583ecd55ab2c4456b02\
                 738698f90bc59ac0",
                "4886e75be82dd4fb73c540729072d3e29b93c164e1cffe071f1212b1237b98dc0b0a5895f331f718",
            ],
            [
                "cbf55e41501394407612d1ec385104fa1a8e59eb00832eccbd0b92c2404af47e7171eaec467f04e0\
                 6f8dcae0add1bbee",
                "6d7cbb7e2dffd4e1ad853998e74c647586838c47b1e113af5b58586d66a26a4d",
                "f4dd2b599984f5e514320d12dcda8d11b32e61efd888f5aba1ad28b780b2b739",
                "804814a3c29b9d842b5aa0e1f11c4ba580bdacb0a33caab74ccf02da90787397",
                "89902a83be5fe73e31a5dfe1f631effccb490326f2781e9983b5695e728f10f9ea12f659b62dbe98\
                 886959aec0833092",
                "b0bf5c1f8582fadd3356a1a2d68c438aa17689401a95d5e7564e9743637c2bcd1ae29fc67b553b4a",
            ],
        ]
        .map(|case| case.map(hex))
        {
            let made = MasterSecret::extended(&premaster, &session_hash.try_into().unwrap());
            assert_eq!(made.0[..], master);
            let randoms = Randoms {
                client: client.try_into().unwrap(),
                server: server.try_into().unwrap(),
            };
            let keys = made.traffic_keys(RecordCipher::Gcm, &randoms);
            let [client_key, client_salt] = keys.client.parts();
            let [server_key, server_salt] = keys.server.parts();
            let parts = [client_key, server_key, client_salt, server_salt];
            assert_eq!(parts.concat(), key_block);
        }
    }

    #[test]
    fn no_secret_is_printed() {
        let master = MasterSecret([0xA7; MASTER_SECRET_LENGTH]);
        let randoms = Randoms {
            client: [1; 32],
            server: [2; 32],
        };
        let keys = master.traffic_keys(RecordCipher::Gcm, &randoms);
        assert_eq!(format!("{master:?}"), "MasterSecret(..)");
        assert_eq!(format!("{:?}", keys.client), "TrafficKey(..)");
    }

    #[test]
    fn the_premaster_secret_of_a_key_has_zeros_in_place_of_another_secret() {
        assert_eq!(
            *psk_premaster(&[1, 2, 3], None),
            [0, 3, 0, 0, 0, 0, 3, 1, 2, 3]
        );
        assert_eq!(*psk_premaster(&[1], Some(&[9, 8])), [0, 2, 9, 8, 0, 1, 1]);
    }
}
