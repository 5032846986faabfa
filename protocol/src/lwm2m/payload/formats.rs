//! Which formats is a device asked in and written in, and which one next if it refuses? (LwM2M Core
//! 1.2 section 7.4)
//!
//! A device says in its registration which formats it has (`ct` of the root link), or nothing. What
//! it says is tried before what it left out; the release it speaks tells which formats it can know
//! at all. A format the device refuses (4.06, 4.15) is followed by the next of the list.

#[cfg(test)]
mod tests;

use crate::coap::content::ContentFormat;
use crate::lwm2m::model::{Instances, Object, Resource};
use crate::lwm2m::path::Path;
use crate::lwm2m::value::{DataType, Value};
use crate::lwm2m::version::EnablerVersion;

use super::format_of;

/// Bounds the formats of a list: one for each of a release. Of a device that announces more, the
/// worst are left out.
pub const FORMATS_MAX: usize = 8;

/// The formats to try in turn, best first. An empty list leaves the choice to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats {
    // What lies behind the count is padding.
    list: [ContentFormat; FORMATS_MAX],
    count: usize,
}

/// What a device is known to have.
#[derive(Clone, Copy)]
struct Offer<'a> {
    announced: &'a [u16],
    enabler: EnablerVersion,
}

/// Every format that a device may be asked in or written in: each list below takes of these.
pub const FORMATS: [ContentFormat; 11] = [
    ContentFormat::TEXT,
    ContentFormat::OCTET_STREAM,
    ContentFormat::CBOR,
    ContentFormat::LWM2M_TLV,
    ContentFormat::SENML_CBOR,
    ContentFormat::SENML_JSON,
    ContentFormat::LWM2M_CBOR,
    ContentFormat::LWM2M_JSON,
    ContentFormat::LEGACY_TEXT,
    ContentFormat::LEGACY_TLV,
    ContentFormat::LEGACY_JSON,
];

/// Formats for one value behind text and bytes, of which every device has that of the value's type.
/// Bytes have a form as text, too, which is the longest.
const FOR_ONE: [ContentFormat; 10] = [
    ContentFormat::CBOR,
    ContentFormat::LWM2M_TLV,
    ContentFormat::SENML_CBOR,
    ContentFormat::SENML_JSON,
    ContentFormat::LWM2M_CBOR,
    ContentFormat::LWM2M_JSON,
    ContentFormat::LEGACY_TEXT,
    ContentFormat::LEGACY_TLV,
    ContentFormat::LEGACY_JSON,
    ContentFormat::TEXT,
];

/// Formats for several values, for devices that announce none: LwM2M 1.0 demands TLV, and later
/// devices keep it.
const PROVEN: [ContentFormat; 5] = [
    ContentFormat::LWM2M_TLV,
    ContentFormat::SENML_CBOR,
    ContentFormat::SENML_JSON,
    ContentFormat::LWM2M_CBOR,
    ContentFormat::LWM2M_JSON,
];

/// Formats for several values of known types, the shortest first: an answer that needs no blocks is
/// the cheapest.
const SHORTEST: [ContentFormat; 7] = [
    ContentFormat::LWM2M_CBOR,
    ContentFormat::LWM2M_TLV,
    ContentFormat::SENML_CBOR,
    ContentFormat::SENML_JSON,
    ContentFormat::LEGACY_TLV,
    ContentFormat::LWM2M_JSON,
    ContentFormat::LEGACY_JSON,
];

/// Formats for several values of unknown types: TLV, which does not say what is a number and what
/// is text, comes last.
const TELLING: [ContentFormat; 7] = [
    ContentFormat::LWM2M_CBOR,
    ContentFormat::SENML_CBOR,
    ContentFormat::SENML_JSON,
    ContentFormat::LWM2M_JSON,
    ContentFormat::LEGACY_JSON,
    ContentFormat::LWM2M_TLV,
    ContentFormat::LEGACY_TLV,
];

/// Formats that can hold a list of paths and the values of several objects.
const COMPOSITE: [ContentFormat; 3] = [
    ContentFormat::SENML_CBOR,
    ContentFormat::SENML_JSON,
    ContentFormat::LWM2M_CBOR,
];

impl Formats {
    const NONE: Self = Self {
        list: [ContentFormat::TEXT; FORMATS_MAX],
        count: 0,
    };

    /// Returns the best format; none if the device is to choose.
    pub fn first(&self) -> Option<ContentFormat> {
        self.as_slice().first().copied()
    }

    /// Returns the format to try when the device refuses this one; none behind the last, or behind
    /// one that is not in the list.
    pub fn after(&self, refused: ContentFormat) -> Option<ContentFormat> {
        let mut formats = self.iter();
        formats.find(|format| *format == refused)?;
        formats.next()
    }

    /// Goes through the formats, best first.
    pub fn iter(&self) -> impl Iterator<Item = ContentFormat> + '_ {
        self.as_slice().iter().copied()
    }

    /// Returns the formats, best first.
    pub fn as_slice(&self) -> &[ContentFormat] {
        self.list.get(..self.count).unwrap_or_default()
    }

    /// Puts a format behind the others, unless it is among them or there is no room.
    fn add(&mut self, format: ContentFormat) {
        if self.as_slice().contains(&format) {
            return;
        }
        if let Some(place) = self.list.get_mut(self.count) {
            *place = format;
            self.count += 1;
        }
    }
}

impl FromIterator<ContentFormat> for Formats {
    fn from_iter<T: IntoIterator<Item = ContentFormat>>(formats: T) -> Self {
        let mut list = Self::NONE;
        formats.into_iter().for_each(|format| list.add(format));
        list
    }
}

impl<'a> Offer<'a> {
    fn announces(self, format: ContentFormat) -> bool {
        self.announced.contains(&format.0)
    }

    /// Tells whether the release has the format. The numbers of the drafts are in none.
    fn may_know(self, format: ContentFormat) -> bool {
        let since = match format {
            ContentFormat::TEXT
            | ContentFormat::OCTET_STREAM
            | ContentFormat::LWM2M_TLV
            | ContentFormat::LWM2M_JSON => EnablerVersion::V1_0,
            ContentFormat::CBOR | ContentFormat::SENML_CBOR | ContentFormat::SENML_JSON => {
                EnablerVersion::V1_1
            }
            ContentFormat::LWM2M_CBOR => EnablerVersion::V1_2,
            _ => return false,
        };
        since <= self.enabler
    }

    /// Returns those of the formats that are announced, then the others the release has.
    fn sorted(self, formats: &'a [ContentFormat]) -> impl Iterator<Item = ContentFormat> + 'a {
        let announced = formats.iter().filter(move |it| self.announces(**it));
        let others = formats.iter().filter(move |it| self.may_know(**it));
        announced.chain(others).copied()
    }
}

/// Returns the formats to ask a path in, whose object is as the device offers it, if it is known.
///
/// One value is asked for as text or as bytes first, which every device has and few announce; one
/// of unknown type as the device likes. Several are asked for in a format that is announced; if
/// only others are, as the device likes.
pub fn formats_to_read(
    path: Path,
    object: Option<Object<'_>>,
    announced: &[u16],
    enabler: EnablerVersion,
) -> Formats {
    let offer = Offer { announced, enabler };
    let resource = object.and_then(|object| object.resource(path.resource_id()?));
    if holds_one_value(path, resource) {
        let data_type = resource.and_then(Resource::data_type);
        return data_type.map_or(Formats::NONE, |data_type| of_one_value(data_type, offer));
    }
    if announced.is_empty() {
        return offer.sorted(&PROVEN).collect();
    }
    let formats = match is_known(path, object, resource) {
        true => &SHORTEST,
        false => &TELLING,
    };
    if formats.iter().any(|format| offer.announces(*format)) {
        offer.sorted(formats).collect()
    } else {
        Formats::NONE
    }
}

/// Returns the formats to write a value in. A format that holds one value only is left out where
/// the device takes nothing but a list.
pub fn formats_to_write(
    path: Path,
    resource: Option<&Resource>,
    value: &Value,
    announced: &[u16],
    enabler: EnablerVersion,
) -> Formats {
    let offer = Offer { announced, enabler };
    match takes_a_list(path, resource, enabler) {
        true if announced.is_empty() => offer.sorted(&PROVEN).collect(),
        true => offer.sorted(&SHORTEST).collect(),
        false => of_one_value(value.data_type(), offer),
    }
}

/// Returns the formats to ask for several paths at once in; none if the device cannot be asked so.
///
/// LwM2M 1.0 has no such request. A device that announces formats and none of these is not asked.
pub fn formats_to_compose(announced: &[u16], enabler: EnablerVersion) -> Formats {
    let offer = Offer { announced, enabler };
    let speaks_one = announced.is_empty() || COMPOSITE.iter().any(|it| offer.announces(*it));
    if enabler == EnablerVersion::V1_0 || !speaks_one {
        return Formats::NONE;
    }
    offer.sorted(&COMPOSITE).collect()
}

/// Tells whether a path holds one value, as far as the model knows.
pub(super) fn holds_one_value(path: Path, resource: Option<&Resource>) -> bool {
    path.is_resource_instance() || (path.is_resource() && !is_multiple(resource))
}

/// Tells whether a single value is written as a list of one: LwM2M 1.0 has no path for the instance
/// of a multiple resource.
pub(in crate::lwm2m) fn takes_a_list(
    path: Path,
    resource: Option<&Resource>,
    enabler: EnablerVersion,
) -> bool {
    enabler == EnablerVersion::V1_0 && path.is_resource() && is_multiple(resource)
}

fn of_one_value(data_type: DataType, offer: Offer<'_>) -> Formats {
    let plain = [format_of(data_type)].into_iter();
    plain.chain(offer.sorted(&FOR_ONE)).collect()
}

fn is_multiple(resource: Option<&Resource>) -> bool {
    resource.is_some_and(|resource| resource.instances() == Instances::Multiple)
}

/// Tells whether the types of what lies at a path are likely to be known.
fn is_known(path: Path, object: Option<Object<'_>>, resource: Option<&Resource>) -> bool {
    match path.is_object() || path.is_instance() {
        true => object.is_some(),
        false => resource.is_some_and(|resource| resource.data_type().is_some()),
    }
}
