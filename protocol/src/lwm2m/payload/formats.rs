//! In which format is a device requested, and which one is next if it refuses? (LwM2M Core 1.2
//! section 7.4)
//!
//! A device may announce its formats in its registration (`ct` of the root link). Announced formats
//! are tried before others; the release of the device determines which formats it can know at all.
//! If the device refuses a format (4.06, 4.15), the next of the list is tried.

#[cfg(test)]
mod tests;

use crate::coap::content::ContentFormat;
use crate::lwm2m::model::{Instances, Object, Resource};
use crate::lwm2m::path::Path;
use crate::lwm2m::value::{DataType, Value};
use crate::lwm2m::version::EnablerVersion;

use super::format_of;

/// Bounds the formats of a list: one for each of a release. If a device announces more, the least
/// preferred are left out.
pub const FORMATS_MAX: usize = 8;

/// The formats to try in turn, best first. An empty list leaves the choice to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats {
    // The entries after the count are padding.
    list: [ContentFormat; FORMATS_MAX],
    count: usize,
}

/// What is known of a device's formats.
#[derive(Clone, Copy)]
struct Offer<'a> {
    announced: &'a [u16],
    enabler: EnablerVersion,
}

/// How a single value is written (LwM2M Core 1.2 section 6.3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteMethod {
    /// PUT to the path of the value: Write (Replace).
    #[default]
    Replace,
    /// POST to the object instance, with a list of the value alone: Write (Partial Update). Other
    /// resources and resource instances stay as they are, and an absent one is created.
    PartialUpdate,
}

/// Every format that is requested or written: each list below is a selection of these.
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

/// Formats for one value, after text and bytes, of which every device has the one of the value's
/// type. Bytes have a form as text, too, which is the longest.
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

/// Formats for several values, for devices that announce none: LwM2M 1.0 requires TLV, and later
/// devices still support it.
const PROVEN: [ContentFormat; 5] = [
    ContentFormat::LWM2M_TLV,
    ContentFormat::SENML_CBOR,
    ContentFormat::SENML_JSON,
    ContentFormat::LWM2M_CBOR,
    ContentFormat::LWM2M_JSON,
];

/// Formats for several values of known types, the shortest first: a response that needs no blocks
/// is the cheapest.
const SHORTEST: [ContentFormat; 7] = [
    ContentFormat::LWM2M_CBOR,
    ContentFormat::LWM2M_TLV,
    ContentFormat::SENML_CBOR,
    ContentFormat::SENML_JSON,
    ContentFormat::LEGACY_TLV,
    ContentFormat::LWM2M_JSON,
    ContentFormat::LEGACY_JSON,
];

/// Formats for several values of unknown types: TLV, which does not distinguish numbers from text,
/// comes last.
const TELLING: [ContentFormat; 7] = [
    ContentFormat::LWM2M_CBOR,
    ContentFormat::SENML_CBOR,
    ContentFormat::SENML_JSON,
    ContentFormat::LWM2M_JSON,
    ContentFormat::LEGACY_JSON,
    ContentFormat::LWM2M_TLV,
    ContentFormat::LEGACY_TLV,
];

/// Formats for one value of unknown type: those that contain its type.
const TYPED: [ContentFormat; 6] = [
    ContentFormat::LWM2M_CBOR,
    ContentFormat::SENML_CBOR,
    ContentFormat::SENML_JSON,
    ContentFormat::CBOR,
    ContentFormat::LWM2M_JSON,
    ContentFormat::LEGACY_JSON,
];

/// Formats for a list of paths and the values of several objects.
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

    /// Returns the best format; none if the device chooses.
    pub fn first(&self) -> Option<ContentFormat> {
        self.as_slice().first().copied()
    }

    /// Returns the format to try when the device refuses this one; none after the last, or after
    /// one that is not in the list.
    pub fn after(&self, refused: ContentFormat) -> Option<ContentFormat> {
        let mut formats = self.iter();
        formats.find(|format| *format == refused)?;
        formats.next()
    }

    /// Iterates over the formats, best first.
    pub fn iter(&self) -> impl Iterator<Item = ContentFormat> + '_ {
        self.as_slice().iter().copied()
    }

    /// Returns the formats, best first.
    pub fn as_slice(&self) -> &[ContentFormat] {
        self.list.get(..self.count).unwrap_or_default()
    }

    /// Appends a format, unless it is in the list or the list is full.
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

    /// Returns whether the release has the format. The numbers of the drafts are in no release.
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

    /// Returns the announced formats, then the others that the release has.
    fn sorted(self, formats: &'a [ContentFormat]) -> impl Iterator<Item = ContentFormat> + 'a {
        let announced = formats.iter().filter(move |it| self.announces(**it));
        let others = formats.iter().filter(move |it| self.may_know(**it));
        announced.chain(others).copied()
    }
}

/// Returns the formats to read a path in, given the object as the device offers it, if it is known.
///
/// One value is requested as text or as bytes first, which every device has and few announce. One
/// of unknown type is requested in the announced formats that contain its type; after them the
/// device chooses. Several values are requested in an announced format; if only other formats are
/// announced, the device chooses.
pub fn formats_to_read(
    path: Path,
    object: Option<Object<'_>>,
    announced: &[u16],
    enabler: EnablerVersion,
) -> Formats {
    let offer = Offer { announced, enabler };
    let resource = object.and_then(|object| object.resource(path.resource_id()?));
    if holds_one_value(path, resource) {
        let announced = TYPED.into_iter().filter(|it| offer.announces(*it));
        return match resource.and_then(Resource::data_type) {
            Some(data_type) => of_one_value(data_type, offer),
            None => announced.collect(),
        };
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

/// Returns the formats to write a value in. A partial update is a list, so formats for one value
/// only are left out.
pub fn formats_to_write(
    method: WriteMethod,
    value: &Value,
    announced: &[u16],
    enabler: EnablerVersion,
) -> Formats {
    let offer = Offer { announced, enabler };
    match method {
        WriteMethod::PartialUpdate => formats_of_several(announced, enabler),
        WriteMethod::Replace => of_one_value(value.data_type(), offer),
    }
}

/// Returns the formats to write several values in.
pub fn formats_of_several(announced: &[u16], enabler: EnablerVersion) -> Formats {
    let offer = Offer { announced, enabler };
    match announced.is_empty() {
        true => offer.sorted(&PROVEN).collect(),
        false => offer.sorted(&SHORTEST).collect(),
    }
}

/// Returns whether a payload in the format contains the types of its values.
pub(in crate::lwm2m) fn has_types(format: ContentFormat) -> bool {
    TYPED.contains(&format)
}

/// Returns the formats to read several paths at once; none if the device does not support it.
///
/// LwM2M 1.0 has no such request. A device that announces formats and none of these gets no such
/// request.
pub fn formats_to_compose(announced: &[u16], enabler: EnablerVersion) -> Formats {
    let offer = Offer { announced, enabler };
    let speaks_one = announced.is_empty() || COMPOSITE.iter().any(|it| offer.announces(*it));
    if enabler == EnablerVersion::V1_0 || !speaks_one {
        return Formats::NONE;
    }
    offer.sorted(&COMPOSITE).collect()
}

/// Returns whether a path holds one value, as far as the model knows.
pub(super) fn holds_one_value(path: Path, resource: Option<&Resource>) -> bool {
    path.is_resource_instance() || (path.is_resource() && !is_multiple(resource))
}

fn of_one_value(data_type: DataType, offer: Offer<'_>) -> Formats {
    let plain = [format_of(data_type)].into_iter();
    plain.chain(offer.sorted(&FOR_ONE)).collect()
}

fn is_multiple(resource: Option<&Resource>) -> bool {
    resource.is_some_and(|resource| resource.instances() == Instances::Multiple)
}

/// Returns whether the types of the values at a path are likely to be known.
fn is_known(path: Path, object: Option<Object<'_>>, resource: Option<&Resource>) -> bool {
    match path.is_object() || path.is_instance() {
        true => object.is_some(),
        false => resource.is_some_and(|resource| resource.data_type().is_some()),
    }
}
