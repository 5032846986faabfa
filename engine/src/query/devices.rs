//! Which devices of a customer does a query select?

use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;
use protocol::lwm2m::version::EnablerVersion;

use crate::action::Protocol;
use crate::device::record::DeviceRecord;
use crate::device::snapshot::Presence;
use crate::ids::{CustomerId, DeviceId};
use crate::limits::NAMES_SEARCHED_MAX;
use crate::moment::Timestamp;
use crate::profile::Profile;
use crate::query::PageRequest;
use crate::tags::Tag;

/// The firmware version of a device (OMA object 3, resource 3).
pub const FIRMWARE_VERSION: Path = Path::resource(3, 0, 3);

/// A filter for devices, ordered by device id. A device passes if it passes every part.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeviceFilter {
    /// Only those of one customer.
    pub customer: CustomerId,
    /// Only those whose device id, ICCID, IMSI, MSISDN or endpoint name begins with this.
    pub name_prefix: Option<Box<str>>,
    /// Only those that are registered, or only those that are not.
    pub registered: Option<bool>,
    /// Only those that ever sent over this protocol.
    pub protocols_seen: Option<Protocol>,
    /// Only those that have all of these tags.
    pub tags: Box<[Tag]>,
    /// Only those whose registration has this enabler version.
    pub version: Option<EnablerVersion>,
    /// Only those whose registration offers this object.
    pub object: Option<u16>,
    /// Only those that were last seen before this time; one never seen does not pass.
    pub last_seen_before: Option<Timestamp>,
    /// Only those that were last seen after this time.
    pub last_seen_after: Option<Timestamp>,
    /// Only those whose last known firmware version is this.
    pub firmware: Option<Box<str>>,
    /// Only those that are online, or only those that are offline; one of which neither is known
    /// does not pass.
    pub online: Option<bool>,
}

/// A page of the devices that pass a filter.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DevicePageRequest {
    /// The list begins behind this device id.
    pub after: Option<DeviceId>,
    /// The page of that list.
    pub page: PageRequest,
}

/// A device in a list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListedDevice {
    /// Its profile.
    pub profile: Profile,
    /// Its state when it was last saved.
    pub record: DeviceRecord,
}

/// A page of devices.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DevicePage {
    /// The devices on the page.
    pub items: Vec<ListedDevice>,
    /// How many devices the list has.
    pub total: DeviceTotal,
    /// Behind this device id the list continues; none if nothing follows.
    pub next: Option<DeviceId>,
}

/// How many devices a list has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DeviceTotal {
    /// This many.
    Exactly(u64),
    /// This many were found among those that were examined; there may be more.
    AtLeast(u64),
}

impl DeviceFilter {
    /// All devices of a customer.
    pub fn all_of(customer: CustomerId) -> Self {
        Self {
            customer,
            name_prefix: None,
            registered: None,
            protocols_seen: None,
            tags: Box::default(),
            version: None,
            object: None,
            last_seen_before: None,
            last_seen_after: None,
            firmware: None,
            online: None,
        }
    }

    /// Whether a device with this record may pass.
    pub fn wants_record(&self, record: &DeviceRecord) -> bool {
        let registration = record.registration.as_ref();
        let seen_over = |protocol| record.protocols_seen.has(protocol);
        let has_version = |version| registration.is_some_and(|it| it.version == version);
        let offers = |object| registration.is_some_and(|it| it.links.object(object).is_some());
        let seen_before = |time| record.last_seen_at.is_some_and(|at| at < time);
        let seen_after = |time| record.last_seen_at.is_some_and(|at| at > time);
        let is_registered = registration.is_some();
        let is_online = record.connectivity.is_online(is_registered);
        self.registered.is_none_or(|wanted| wanted == is_registered)
            && self.protocols_seen.is_none_or(seen_over)
            && self.version.is_none_or(has_version)
            && self.object.is_none_or(offers)
            && self.last_seen_before.is_none_or(seen_before)
            && self.last_seen_after.is_none_or(seen_after)
            && self.online.is_none_or(|wanted| is_online == Some(wanted))
    }

    /// Whether a device with this last known firmware version may pass.
    pub fn wants_firmware(&self, version: Option<&Value>) -> bool {
        self.firmware.as_deref().is_none_or(
            |wanted| matches!(version, Some(Value::String(version)) if **version == *wanted),
        )
    }
}

impl ListedDevice {
    /// Whether the device listens, as far as is stored.
    pub fn presence(&self, awake_window_ms: i64, now: Timestamp) -> Presence {
        let last_seen_at = self.record.last_seen_at.unwrap_or_default();
        let awake_until = last_seen_at.plus_ms(awake_window_ms);
        Presence::of(self.record.registration.as_ref(), awake_until, now)
    }
}

impl DevicePageRequest {
    /// A page of the whole list.
    pub fn of(page: PageRequest) -> Self {
        Self { after: None, page }
    }
}

impl DeviceTotal {
    /// The total with so many more.
    #[must_use]
    pub fn and(self, more: u64) -> Self {
        match self {
            Self::Exactly(count) => Self::Exactly(count.saturating_add(more)),
            Self::AtLeast(count) => Self::AtLeast(count.saturating_add(more)),
        }
    }

    /// The number that is known.
    pub fn count(self) -> u64 {
        match self {
            Self::Exactly(count) | Self::AtLeast(count) => count,
        }
    }
}

/// More names match the prefix than a search reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("matches more than {NAMES_SEARCHED_MAX} identifiers; use a longer prefix")]
pub struct SearchTooBroad;
