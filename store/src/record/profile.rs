//! How is the profile of a device stored?

use std::net::IpAddr;
use std::num::NonZeroU32;

use engine::credentials::{Credential, DeviceCredentials, Psk, RawPublicKey};
use engine::ids::{DeviceId, Endpoint, Iccid, Imsi, Msisdn};
use engine::moment::Timestamp;
use engine::profile::{Profile, SecurityRequirement};
use engine::sealed::Sealed;
use engine::tags::{Tag, TagText, Tags};
use minicbor::{Decode, Encode};

use super::customer::customer_id;
use super::wake_up::{WakeUpMessageV1, read_wake_up, wake_up_record};
use super::{Unreadable, code, damaged, read, write};

const VERSION: u8 = 1;

#[derive(Decode, Encode)]
#[cbor(array)]
struct ProfileV1<'a> {
    #[b(0)]
    customer: &'a str,
    #[b(1)]
    device: &'a str,
    #[n(2)]
    number: u64,
    #[b(3)]
    iccid: &'a str,
    #[b(4)]
    imsi: Option<&'a str>,
    #[b(5)]
    msisdn: Option<&'a str>,
    #[n(6)]
    ip: Option<IpAddr>,
    #[b(7)]
    endpoint: &'a str,
    #[b(8)]
    name: Option<&'a str>,
    /// Absent unless the device has a key, or keeps an identity.
    #[b(9)]
    credentials: Option<CredentialsV1<'a>>,
    #[n(10)]
    created_at_ms: i64,
    /// Absent unless the device has any.
    #[b(11)]
    tags: Option<Vec<TagV1<'a>>>,
    /// Absent unless the device is accepted over DTLS alone.
    #[n(12)]
    security: Option<u8>,
    /// Absent unless the device has one of its own.
    #[b(13)]
    wake_up: Option<WakeUpMessageV1<'a>>,
    /// Absent unless the device has one of its own.
    #[n(14)]
    offline_after_s: Option<NonZeroU32>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
pub(super) struct TagV1<'a> {
    #[b(0)]
    key: &'a str,
    #[b(1)]
    value: &'a str,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct CredentialsV1<'a> {
    #[b(0)]
    kept_identity: Option<&'a str>,
    #[b(1)]
    psk: Option<CredentialV1<PskV1<'a>>>,
    #[b(2)]
    public_key: Option<CredentialV1<PublicKeyV1<'a>>>,
    /// Absent unless a bootstrap issued a key.
    #[b(3)]
    issued: Option<CredentialV1<PskV1<'a>>>,
    /// Absent unless a bootstrap issued a public key.
    #[b(4)]
    issued_public_key: Option<CredentialV1<PublicKeyV1<'a>>>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct CredentialV1<K> {
    #[n(0)]
    key: K,
    #[n(1)]
    created_at_ms: i64,
    #[n(2)]
    admitted_since_ms: i64,
    #[n(3)]
    previous: Option<K>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct PskV1<'a> {
    #[b(0)]
    identity: &'a str,
    #[cbor(b(1), with = "minicbor::bytes")]
    sealed_key: &'a [u8],
}

#[derive(Decode, Encode)]
#[cbor(array)]
pub(super) struct PublicKeyV1<'a> {
    #[cbor(b(0), with = "minicbor::bytes")]
    point: &'a [u8],
}

/// Writes a profile.
pub(crate) fn write_profile(profile: &Profile) -> Vec<u8> {
    let record = ProfileV1 {
        customer: profile.customer.as_str(),
        device: profile.device.as_str(),
        number: profile.number,
        iccid: profile.iccid.as_str(),
        imsi: profile.imsi.as_ref().map(Imsi::as_str),
        msisdn: profile.msisdn.as_ref().map(Msisdn::as_str),
        ip: profile.ip,
        endpoint: profile.endpoint.as_str(),
        name: profile.name.as_deref(),
        credentials: credentials_record(&profile.credentials),
        created_at_ms: profile.created_at.as_ms(),
        tags: (!profile.tags.is_empty())
            .then(|| profile.tags.as_slice().iter().map(tag_record).collect()),
        security: Some(profile.security)
            .filter(|it| *it != SecurityRequirement::Any)
            .map(code::of_security),
        wake_up: profile.wake_up.as_ref().map(wake_up_record),
        offline_after_s: profile.offline_after_s,
    };
    write(VERSION, &record)
}

/// Reads a profile.
pub(crate) fn read_profile(value: &[u8]) -> Result<Profile, Unreadable> {
    let record: ProfileV1<'_> = read(VERSION, value)?;
    Ok(Profile {
        customer: customer_id(record.customer)?,
        device: device_id(record.device)?,
        number: record.number,
        iccid: iccid(record.iccid)?,
        imsi: record.imsi.map(imsi).transpose()?,
        msisdn: record.msisdn.map(msisdn).transpose()?,
        ip: record.ip,
        endpoint: endpoint_name(record.endpoint)?,
        name: record.name.map(Into::into),
        credentials: record
            .credentials
            .map(read_credentials)
            .transpose()?
            .unwrap_or_default(),
        created_at: Timestamp::from_ms(record.created_at_ms),
        tags: read_tags(record.tags.unwrap_or_default())?,
        security: record
            .security
            .map(code::security)
            .transpose()?
            .unwrap_or_default(),
        wake_up: record.wake_up.map(read_wake_up).transpose()?,
        offline_after_s: record.offline_after_s,
    })
}

fn credentials_record(credentials: &DeviceCredentials) -> Option<CredentialsV1<'_>> {
    let DeviceCredentials {
        kept_identity,
        psk,
        public_key,
        issued,
        issued_public_key,
    } = credentials;
    if *credentials == DeviceCredentials::default() {
        return None;
    }
    Some(CredentialsV1 {
        kept_identity: kept_identity.as_deref(),
        psk: psk.as_ref().map(|it| credential_record(it, psk_record)),
        public_key: public_key
            .as_ref()
            .map(|it| credential_record(it, public_key_record)),
        issued: issued.as_ref().map(|it| credential_record(it, psk_record)),
        issued_public_key: issued_public_key
            .as_ref()
            .map(|it| credential_record(it, public_key_record)),
    })
}

fn credential_record<'a, K, R>(
    credential: &'a Credential<K>,
    record: impl Fn(&'a K) -> R,
) -> CredentialV1<R> {
    CredentialV1 {
        key: record(&credential.key),
        created_at_ms: credential.created_at.as_ms(),
        admitted_since_ms: credential.admitted_since.as_ms(),
        previous: credential.previous.as_ref().map(record),
    }
}

fn psk_record(psk: &Psk) -> PskV1<'_> {
    PskV1 {
        identity: &psk.identity,
        sealed_key: psk.key.as_bytes(),
    }
}

/// The record of a raw public key.
pub(super) fn public_key_record(key: &RawPublicKey) -> PublicKeyV1<'_> {
    PublicKeyV1 { point: key.point() }
}

fn read_credentials(record: CredentialsV1<'_>) -> Result<DeviceCredentials, Unreadable> {
    let psk = record.psk.map(|it| read_credential(it, read_psk));
    let public_key = record
        .public_key
        .map(|it| read_credential(it, read_public_key));
    let issued = record.issued.map(|it| read_credential(it, read_psk));
    let issued_public_key = record
        .issued_public_key
        .map(|it| read_credential(it, read_public_key));
    Ok(DeviceCredentials {
        kept_identity: record.kept_identity.map(Into::into),
        psk: psk.transpose()?,
        public_key: public_key.transpose()?,
        issued: issued.transpose()?,
        issued_public_key: issued_public_key.transpose()?,
    })
}

fn read_credential<R, K>(
    record: CredentialV1<R>,
    read: impl Fn(R) -> Result<K, Unreadable>,
) -> Result<Credential<K>, Unreadable> {
    Ok(Credential {
        key: read(record.key)?,
        created_at: Timestamp::from_ms(record.created_at_ms),
        admitted_since: Timestamp::from_ms(record.admitted_since_ms),
        previous: record.previous.map(read).transpose()?,
    })
}

fn read_psk(record: PskV1<'_>) -> Result<Psk, Unreadable> {
    Ok(Psk {
        identity: record.identity.into(),
        key: Sealed::from_bytes(record.sealed_key.into()),
    })
}

/// Reads a raw public key.
pub(super) fn read_public_key(record: PublicKeyV1<'_>) -> Result<RawPublicKey, Unreadable> {
    RawPublicKey::from_point(record.point).map_err(damaged("no public key"))
}

pub(super) fn tag_record(tag: &Tag) -> TagV1<'_> {
    let (key, value) = (tag.key.as_str(), tag.value.as_str());
    TagV1 { key, value }
}

fn read_tags(records: Vec<TagV1<'_>>) -> Result<Tags, Unreadable> {
    let tags = records.into_iter().map(read_tag);
    let tags = tags.collect::<Result<Vec<_>, _>>()?;
    Tags::of(tags).map_err(damaged("too many tags"))
}

/// Reads a tag.
pub(super) fn read_tag(record: TagV1<'_>) -> Result<Tag, Unreadable> {
    let text = |text| TagText::parse(text).map_err(damaged("no tag"));
    let (key, value) = (text(record.key)?, text(record.value)?);
    Ok(Tag { key, value })
}

/// Reads the id of a device.
pub(super) fn device_id(text: &str) -> Result<DeviceId, Unreadable> {
    DeviceId::parse(text).map_err(damaged("no device id"))
}

/// Reads an ICCID.
pub(super) fn iccid(text: &str) -> Result<Iccid, Unreadable> {
    Iccid::parse(text).map_err(damaged("no ICCID"))
}

/// Reads an IMSI.
pub(super) fn imsi(text: &str) -> Result<Imsi, Unreadable> {
    Imsi::parse(text).map_err(damaged("no IMSI"))
}

/// Reads an endpoint name.
pub(super) fn endpoint_name(text: &str) -> Result<Endpoint, Unreadable> {
    Endpoint::parse(text).map_err(damaged("no endpoint name"))
}

fn msisdn(text: &str) -> Result<Msisdn, Unreadable> {
    Msisdn::parse(text).map_err(damaged("no MSISDN"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::samples::{acme, device};

    #[test]
    fn a_profile_is_read_as_it_was_written_with_tags_and_without() {
        let tagged = device(&acme(), 1);
        let plain = Profile {
            tags: Tags::default(),
            wake_up: None,
            offline_after_s: None,
            ..tagged.clone()
        };
        for profile in [tagged, plain] {
            assert_eq!(read_profile(&write_profile(&profile)), Ok(profile));
        }
    }

    /// An expectation compares bytes, so a profile that was stored before there were tags must be
    /// written as it was.
    #[test]
    fn a_profile_without_tags_has_the_fields_from_before_there_were_tags() {
        const ARRAY_OF_11: u8 = 0x80 + 11;
        let plain = Profile {
            tags: Tags::default(),
            security: SecurityRequirement::Any,
            wake_up: None,
            offline_after_s: None,
            ..device(&acme(), 1)
        };
        assert_eq!(write_profile(&plain).get(1), Some(&ARRAY_OF_11));
    }
}
