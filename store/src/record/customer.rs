//! How are customers, API clients, access tokens and settings stored?

use std::net::IpAddr;
use std::num::NonZeroU32;

use engine::certificate_authorities::CertificateAuthorities;
use engine::customer::{
    AccessToken, ApiClient, ClientOwner, ClientSecret, Customer, Scopes, SecretDigest,
};
use engine::ids::{ClientId, CustomerId, SecretId};
use engine::moment::Timestamp;
use engine::network::Network;
use engine::setting::Setting;
use minicbor::bytes::{ByteArray, ByteSlice};
use minicbor::{Decode, Encode};

use super::wake_up::{WakeUpMessageV1, read_wake_up, wake_up_record};
use super::{Unreadable, code, damaged, read, write};

const VERSION: u8 = 1;

#[derive(Decode, Encode)]
#[cbor(array)]
struct CustomerV1<'a> {
    #[b(0)]
    id: &'a str,
    #[n(1)]
    number: u64,
    #[b(2)]
    name: &'a str,
    #[n(3)]
    created_at_ms: i64,
    /// Absent if there are none.
    #[n(4)]
    networks: Option<Vec<NetworkV1>>,
    /// Absent unless it set one.
    #[b(5)]
    wake_up: Option<WakeUpMessageV1<'a>>,
    /// Absent unless it set one.
    #[n(6)]
    offline_after_s: Option<NonZeroU32>,
    /// Absent unless it set some.
    #[b(7)]
    authorities: Option<AuthoritiesV1<'a>>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct AuthoritiesV1<'a> {
    #[b(0)]
    certificates: Vec<&'a ByteSlice>,
    #[n(1)]
    set_at_ms: i64,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct NetworkV1 {
    #[n(0)]
    address: IpAddr,
    #[n(1)]
    length: u8,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct ClientV1<'a> {
    #[b(0)]
    id: &'a str,
    /// Absent if it is one of the network.
    #[b(1)]
    customer: Option<&'a str>,
    #[b(2)]
    name: &'a str,
    #[n(3)]
    secrets: Vec<ClientSecretV1>,
    #[n(4)]
    scopes: u16,
    #[n(5)]
    created_at_ms: i64,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct ClientSecretV1 {
    #[n(0)]
    id: ByteArray<16>,
    #[n(1)]
    digest: ByteArray<32>,
    #[n(2)]
    created_at_ms: i64,
    #[n(3)]
    expires_at_ms: Option<i64>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct TokenV1<'a> {
    #[n(0)]
    digest: ByteArray<32>,
    #[b(1)]
    client: &'a str,
    #[n(2)]
    expires_at_ms: i64,
    /// Absent in records of earlier versions: every scope of the client.
    #[n(3)]
    scopes: Option<u16>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct SettingV1<'a> {
    #[b(0)]
    customer: &'a str,
    #[n(1)]
    name: u8,
    #[n(2)]
    state: u8,
}

/// Writes a customer.
pub(crate) fn write_customer(customer: &Customer) -> Vec<u8> {
    let record = CustomerV1 {
        id: customer.id.as_str(),
        number: customer.number,
        name: &customer.name,
        created_at_ms: customer.created_at.as_ms(),
        networks: (!customer.networks.is_empty())
            .then(|| customer.networks.iter().map(network_record).collect()),
        wake_up: customer.wake_up.as_ref().map(wake_up_record),
        offline_after_s: customer.offline_after_s,
        authorities: customer.authorities.as_ref().map(authorities_record),
    };
    write(VERSION, &record)
}

/// Reads a customer.
pub(crate) fn read_customer(value: &[u8]) -> Result<Customer, Unreadable> {
    let record: CustomerV1<'_> = read(VERSION, value)?;
    Ok(Customer {
        id: customer_id(record.id)?,
        number: record.number,
        name: record.name.into(),
        created_at: Timestamp::from_ms(record.created_at_ms),
        networks: record
            .networks
            .unwrap_or_default()
            .into_iter()
            .map(read_network)
            .collect::<Result<_, _>>()?,
        wake_up: record.wake_up.map(read_wake_up).transpose()?,
        offline_after_s: record.offline_after_s,
        authorities: record.authorities.map(read_authorities),
    })
}

fn authorities_record(authorities: &CertificateAuthorities) -> AuthoritiesV1<'_> {
    let certificates = authorities.certificates().iter();
    AuthoritiesV1 {
        certificates: certificates.map(|it| (&**it).into()).collect(),
        set_at_ms: authorities.set_at().as_ms(),
    }
}

fn read_authorities(record: AuthoritiesV1<'_>) -> CertificateAuthorities {
    let certificates = record.certificates.into_iter();
    let certificates = certificates.map(|it| it.to_vec().into()).collect();
    let set_at = Timestamp::from_ms(record.set_at_ms);
    CertificateAuthorities::restore(certificates, set_at)
}

fn network_record(network: &Network) -> NetworkV1 {
    NetworkV1 {
        address: network.address(),
        length: network.length(),
    }
}

fn read_network(record: NetworkV1) -> Result<Network, Unreadable> {
    let network = Network::new(record.address, record.length);
    network.ok_or(Unreadable::Damaged("the prefix of a network"))
}

/// Writes an API client.
pub(crate) fn write_client(client: &ApiClient) -> Vec<u8> {
    let record = ClientV1 {
        id: client.id.as_str(),
        customer: match &client.owner {
            ClientOwner::Customer(customer) => Some(customer.as_str()),
            ClientOwner::Network => None,
        },
        name: &client.name,
        secrets: client.secrets.iter().map(secret_record).collect(),
        scopes: client.scopes.bits(),
        created_at_ms: client.created_at.as_ms(),
    };
    write(VERSION, &record)
}

/// Reads an API client.
pub(crate) fn read_client(value: &[u8]) -> Result<ApiClient, Unreadable> {
    let record: ClientV1<'_> = read(VERSION, value)?;
    let owner = match record.customer {
        Some(id) => ClientOwner::Customer(customer_id(id)?),
        None => ClientOwner::Network,
    };
    Ok(ApiClient {
        id: client_id(record.id)?,
        owner,
        name: record.name.into(),
        secrets: record.secrets.into_iter().map(client_secret).collect(),
        scopes: Scopes::from_bits(record.scopes),
        created_at: Timestamp::from_ms(record.created_at_ms),
    })
}

fn secret_record(secret: &ClientSecret) -> ClientSecretV1 {
    ClientSecretV1 {
        id: ByteArray::from(*secret.id.as_bytes()),
        digest: ByteArray::from(*secret.digest.as_bytes()),
        created_at_ms: secret.created_at.as_ms(),
        expires_at_ms: secret.expires_at.map(Timestamp::as_ms),
    }
}

fn client_secret(record: ClientSecretV1) -> ClientSecret {
    ClientSecret {
        id: SecretId::from_bytes(record.id.into()),
        digest: SecretDigest::from_bytes(record.digest.into()),
        created_at: Timestamp::from_ms(record.created_at_ms),
        expires_at: record.expires_at_ms.map(Timestamp::from_ms),
    }
}

/// Writes an access token.
pub(crate) fn write_token(token: &AccessToken) -> Vec<u8> {
    let record = TokenV1 {
        digest: ByteArray::from(*token.digest.as_bytes()),
        client: token.client.as_str(),
        expires_at_ms: token.expires_at.as_ms(),
        scopes: Some(token.scopes.bits()),
    };
    write(VERSION, &record)
}

/// Reads an access token.
pub(crate) fn read_token(value: &[u8]) -> Result<AccessToken, Unreadable> {
    let record: TokenV1<'_> = read(VERSION, value)?;
    Ok(AccessToken {
        digest: SecretDigest::from_bytes(record.digest.into()),
        client: client_id(record.client)?,
        expires_at: Timestamp::from_ms(record.expires_at_ms),
        scopes: record.scopes.map_or(Scopes::ALL, Scopes::from_bits),
    })
}

/// Writes a setting.
pub(crate) fn write_setting(setting: &Setting) -> Vec<u8> {
    let record = SettingV1 {
        customer: setting.customer.as_str(),
        name: code::of_setting(setting.name),
        state: code::of_setting_state(setting.state),
    };
    write(VERSION, &record)
}

/// Reads a setting.
pub(crate) fn read_setting(value: &[u8]) -> Result<Setting, Unreadable> {
    let record: SettingV1<'_> = read(VERSION, value)?;
    Ok(Setting {
        customer: customer_id(record.customer)?,
        name: code::setting(record.name)?,
        state: code::setting_state(record.state)?,
    })
}

/// Reads the id of a customer.
pub(crate) fn customer_id(text: &str) -> Result<CustomerId, Unreadable> {
    CustomerId::parse(text).map_err(damaged("no customer id"))
}

fn client_id(text: &str) -> Result<ClientId, Unreadable> {
    ClientId::parse(text).map_err(damaged("no client id"))
}
