//! How is the profile of a device stored?

use std::net::IpAddr;

use engine::ids::{DeviceId, Endpoint, Iccid, Imsi, Msisdn};
use engine::moment::Timestamp;
use engine::profile::{Profile, Psk};
use engine::sealed::Sealed;
use minicbor::{Decode, Encode};

use super::customer::customer_id;
use super::{Unreadable, damaged, read, write};

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
    #[b(9)]
    psk: Option<PskV1<'a>>,
    #[n(10)]
    created_at_ms: i64,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct PskV1<'a> {
    #[b(0)]
    identity: &'a str,
    #[cbor(b(1), with = "minicbor::bytes")]
    sealed_key: &'a [u8],
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
        psk: profile.psk.as_ref().map(|psk| PskV1 {
            identity: &psk.identity,
            sealed_key: psk.key.as_bytes(),
        }),
        created_at_ms: profile.created_at.as_ms(),
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
        endpoint: Endpoint::parse(record.endpoint).map_err(damaged("no endpoint name"))?,
        name: record.name.map(Into::into),
        psk: record.psk.map(|psk| Psk {
            identity: psk.identity.into(),
            key: Sealed::from_bytes(psk.sealed_key.into()),
        }),
        created_at: Timestamp::from_ms(record.created_at_ms),
    })
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

fn msisdn(text: &str) -> Result<Msisdn, Unreadable> {
    Msisdn::parse(text).map_err(damaged("no MSISDN"))
}
