//! Which queries answer the questions of device machines?

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use engine::bootstrap::{BootstrapConfig, BootstrapScope};
use engine::certificate_authorities::CertificateAuthorities;
use engine::change::UniqueName;
use engine::device::record::RestoredDevice;
use engine::directory::import::ExistingDevices;
use engine::directory::sms::waking::WakeUpFacts;
use engine::dispatch::DevicesAtAddress;
use engine::firmware::download::OfferedImage;
use engine::ids::{CampaignId, CustomerId, DeviceKey};
use engine::known_devices::KnownDevices;
use engine::limits::SmsRules;
use engine::policy::CustomerSettings;
use engine::profile::Profile;

use super::{customers, firmware, id_in, record_in, records, restoring, settings, sms};
use crate::postgres::PostgresStore;
use crate::postgres::fault::PostgresFault;
use crate::postgres::readers::Reader;
use crate::postgres::sql_types::SqlId;
use crate::record::bootstrap::read_config;
use crate::record::profile::read_profile;
use crate::{DeviceReads, ReadAnswer, RestoredPage};

impl DeviceReads for PostgresStore {
    fn profile(&self, device: DeviceKey) -> ReadAnswer<Option<Profile>> {
        self.readers
            .ask(move |reader| async move { profile(&reader, device).await })
    }

    fn device_by_name(&self, name: UniqueName) -> ReadAnswer<Option<DeviceKey>> {
        self.readers
            .ask(move |reader| async move { device_by_name(&reader, &name).await })
    }

    fn profile_by_name(&self, name: UniqueName) -> ReadAnswer<Option<Profile>> {
        self.readers
            .ask(move |reader| async move { profile_by_name(&reader, &name).await })
    }

    fn offered_image(&self, campaign: CampaignId) -> ReadAnswer<Option<OfferedImage>> {
        self.readers
            .ask(move |reader| async move { firmware::offered_image(&reader, campaign).await })
    }

    fn device_at(&self, prefix: [u8; 8]) -> ReadAnswer<Option<DeviceKey>> {
        self.readers
            .ask(move |reader| async move { device_at(&reader, prefix).await })
    }

    fn known_devices(&self) -> Arc<KnownDevices> {
        Arc::clone(&self.state.known_devices)
    }

    fn devices_at_address(&self, ip: IpAddr) -> ReadAnswer<DevicesAtAddress> {
        self.readers
            .ask(move |reader| async move { at_address(&reader, ip).await })
    }

    fn wake_up_facts(&self, device: DeviceKey, rules: SmsRules) -> ReadAnswer<Option<WakeUpFacts>> {
        self.readers.ask(move |reader| async move {
            match profile(&reader, device).await? {
                Some(device) => sms::wake_up_facts(&reader, device, rules).await.map(Some),
                None => Ok(None),
            }
        })
    }

    fn bootstrap_config(&self, scope: BootstrapScope) -> ReadAnswer<Option<BootstrapConfig>> {
        self.readers
            .ask(move |reader| async move { bootstrap_config(&reader, &scope).await })
    }

    fn restored(&self, device: DeviceKey) -> ReadAnswer<Option<RestoredDevice>> {
        let now = self.state.now();
        self.readers
            .ask(move |reader| async move { restoring::restored(&reader, device, now).await })
    }

    fn restored_page(&self, keys: RangeInclusive<DeviceKey>, max: u32) -> ReadAnswer<RestoredPage> {
        let now = self.state.now();
        self.readers.list(move |reader| async move {
            restoring::restored_page(&reader, &keys, max, now).await
        })
    }

    fn all_customer_settings(&self) -> ReadAnswer<Vec<CustomerSettings>> {
        self.readers
            .list(move |reader| async move { settings::of_all_customers(&reader).await })
    }

    fn certificate_authorities(
        &self,
        customer: CustomerId,
    ) -> ReadAnswer<Option<CertificateAuthorities>> {
        self.readers.ask(move |reader| async move {
            let customer = customers::customer(&reader, &customer).await?;
            Ok(customer.and_then(|it| it.authorities))
        })
    }

    fn customer_settings(&self, customer: CustomerId) -> ReadAnswer<CustomerSettings> {
        self.readers
            .ask(move |reader| async move { settings::of_customer(&reader, customer).await })
    }
}

/// A device.
pub(super) async fn profile(
    reader: &Reader,
    device: DeviceKey,
) -> Result<Option<Profile>, PostgresFault> {
    const SQL: &str = "SELECT record FROM device WHERE key = $1";
    let row = reader.row(SQL, &[&SqlId(*device.as_bytes())]).await?;
    record_in(row, read_profile)
}

/// The device that has a name.
pub(super) async fn device_by_name(
    reader: &Reader,
    name: &UniqueName,
) -> Result<Option<DeviceKey>, PostgresFault> {
    const BY_KEY: &str = "SELECT key FROM device WHERE key = $1";
    const BY_NAME: &str = "SELECT device FROM device_name WHERE kind = $1 AND name = $2";
    let row = match name {
        UniqueName::Customer(_) | UniqueName::Client(_) => None,
        UniqueName::Device(device) => reader.row(BY_KEY, &[&SqlId(*device.as_bytes())]).await?,
        UniqueName::Address { ip, customer } => {
            return at_address_of_another(reader, *ip, customer).await;
        }
        UniqueName::Iccid(_)
        | UniqueName::Imsi(_)
        | UniqueName::Msisdn(_)
        | UniqueName::Endpoint(_)
        | UniqueName::PskIdentity(_)
        | UniqueName::PublicKey(_) => match name_of_device(name) {
            Some((kind, name)) => reader.row(BY_NAME, &[&kind, &name]).await?,
            None => None,
        },
    };
    device_in(row)
}

/// The kind and the bytes of a name that the table of names has; none of others.
pub(super) fn name_of_device(name: &UniqueName) -> Option<(i16, &[u8])> {
    match name {
        UniqueName::Customer(_)
        | UniqueName::Client(_)
        | UniqueName::Device(_)
        | UniqueName::Address { .. } => None,
        UniqueName::Iccid(iccid) => Some((1, iccid.as_str().as_bytes())),
        UniqueName::Imsi(imsi) => Some((2, imsi.as_str().as_bytes())),
        UniqueName::Msisdn(msisdn) => Some((3, msisdn.as_str().as_bytes())),
        UniqueName::Endpoint(endpoint) => Some((4, endpoint.as_str().as_bytes())),
        UniqueName::PskIdentity(identity) => Some((5, identity.as_bytes())),
        UniqueName::PublicKey(key) => Some((6, key.point())),
    }
}

/// The profile of the device that has a name, as it is while it has that name.
async fn profile_by_name(
    reader: &Reader,
    name: &UniqueName,
) -> Result<Option<Profile>, PostgresFault> {
    let Some(device) = device_by_name(reader, name).await? else {
        return Ok(None);
    };
    let has_name = |profile: &Profile| UniqueName::all_of(profile).contains(name);
    Ok(profile(reader, device).await?.filter(has_name))
}

/// The first device with an address, if it is another customer's: an address is one of devices of
/// one customer.
async fn at_address_of_another(
    reader: &Reader,
    ip: IpAddr,
    customer: &CustomerId,
) -> Result<Option<DeviceKey>, PostgresFault> {
    const SQL: &str = "SELECT key FROM \
        (SELECT key, customer FROM device WHERE address = $1 ORDER BY key LIMIT 1) AS first \
        WHERE customer <> $2";
    let row = reader
        .row(SQL, &[&ip.to_canonical(), &customer.as_str()])
        .await?;
    device_in(row)
}

/// Those of the names that devices have, and the devices whose ids are among them.
pub(super) async fn existing_devices(
    reader: &Reader,
    names: Vec<UniqueName>,
) -> Result<ExistingDevices, PostgresFault> {
    const BY_KEY: &str = "SELECT record FROM device WHERE key = ANY($1)";
    const BY_NAME: &str = "SELECT wanted.place FROM unnest($1::smallint[], $2::bytea[]) \
        WITH ORDINALITY AS wanted (kind, name, place) WHERE (SELECT true FROM device_name \
            WHERE device_name.kind = wanted.kind AND device_name.name = wanted.name)";
    let mut found = ExistingDevices::default();
    let mut keys = Vec::new();
    let (mut kinds, mut texts, mut of_devices) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        match (&name, name_of_device(&name)) {
            (UniqueName::Device(device), _) => keys.push(SqlId(*device.as_bytes())),
            (_, Some((kind, text))) => {
                kinds.push(kind);
                texts.push(text.to_vec());
                of_devices.push(name);
            }
            (_, None) => {
                let has_it = device_by_name(reader, &name).await?.is_some();
                found.key_by_name.extend(has_it.then_some(name));
            }
        }
    }
    for profile in records(&reader.rows(BY_KEY, &[&keys]).await?, read_profile)? {
        found.key_by_name.insert(UniqueName::Device(profile.key()));
        found.profile_by_key.insert(profile.key(), profile);
    }
    for row in reader.rows(BY_NAME, &[&kinds, &texts]).await? {
        let place: i64 = row.try_get(0)?;
        // Ordinality counts from one.
        let place = usize::try_from(place - 1).unwrap_or(usize::MAX);
        found.key_by_name.extend(of_devices.get(place).cloned());
    }
    Ok(found)
}

/// The device whose key begins with these bytes.
async fn device_at(reader: &Reader, prefix: [u8; 8]) -> Result<Option<DeviceKey>, PostgresFault> {
    const SQL: &str = "SELECT key FROM device WHERE key >= $1 AND key <= $2 ORDER BY key LIMIT 1";
    let [mut first, mut last] = [[0; 16], [0xff; 16]];
    first[..8].copy_from_slice(&prefix);
    last[..8].copy_from_slice(&prefix);
    device_in(reader.row(SQL, &[&SqlId(first), &SqlId(last)]).await?)
}

/// Which devices have an address; if several have it, the first.
async fn at_address(reader: &Reader, ip: IpAddr) -> Result<DevicesAtAddress, PostgresFault> {
    const SQL: &str = "SELECT key FROM device WHERE address = $1 ORDER BY key LIMIT 2";
    let rows = reader.rows(SQL, &[&ip.to_canonical()]).await?;
    let first = |row| id_in(row, 0).map(DeviceKey::from_bytes);
    Ok(match rows.as_slice() {
        [] => DevicesAtAddress::Nobody,
        [one] => DevicesAtAddress::One(first(one)?),
        [one, ..] => DevicesAtAddress::Several(first(one)?),
    })
}

/// What devices are given when they are bootstrapped.
async fn bootstrap_config(
    reader: &Reader,
    scope: &BootstrapScope,
) -> Result<Option<BootstrapConfig>, PostgresFault> {
    const OF_CUSTOMER: &str = "SELECT record FROM customer_bootstrap_config WHERE customer = $1";
    const OF_DEVICE: &str = "SELECT record FROM device_bootstrap_config WHERE device = $1";
    let row = match scope {
        BootstrapScope::Customer(customer) => reader.row(OF_CUSTOMER, &[&customer.as_str()]).await,
        BootstrapScope::Device(device) => {
            reader.row(OF_DEVICE, &[&SqlId(*device.as_bytes())]).await
        }
    };
    record_in(row?, read_config)
}

fn device_in(row: Option<tokio_postgres::Row>) -> Result<Option<DeviceKey>, PostgresFault> {
    let device = row.map(|row| id_in(&row, 0)).transpose()?;
    Ok(device.map(DeviceKey::from_bytes))
}
