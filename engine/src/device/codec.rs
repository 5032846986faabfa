//! In which format is a device requested, and how are its payloads decoded? By the objects and
//! formats it registered with, the object model of its customer, and the formats it refused (LwM2M
//! Core 1.2 section 7.4).

use std::num::NonZeroU32;

use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use protocol::lwm2m::attributes::Attributes;
use protocol::lwm2m::model::catalog::Catalog;
use protocol::lwm2m::model::{self, Instances, Object, Resource};
use protocol::lwm2m::operation::{self, ExchangeLabel, PlannedWrite};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::formats::{self, Formats, WriteMethod};
use protocol::lwm2m::payload::{self, Decoded, Model, Reading, Scope, Undecodable};
use protocol::lwm2m::value::{DataType, Value};
use protocol::lwm2m::version::EnablerVersion;

use crate::action::NewInstance;
use crate::device::formats::{AttemptState, FormatSet, Refused, WrittenAttributes};
use crate::device::record::{ObservationTarget, Registration};
use crate::device::registration::RegistrationState;
use crate::device::samples::{self, ReadValues};
use crate::moment::Timestamp;

/// What is observed, under which conditions.
#[derive(Clone, Copy)]
pub(super) struct Observed<'a> {
    pub(super) target: &'a ObservationTarget,
    pub(super) attributes: &'a Attributes,
}

/// The object model of a device: the objects it offers, in their versions and as its customer
/// defines them.
#[derive(Clone, Copy)]
pub(super) struct Codec<'a> {
    registration: Option<&'a Registration>,
    catalog: &'a Catalog,
    /// The formats it has refused since it registered.
    refused: FormatSet,
    /// What it announced when it left a request for several objects unanswered.
    composite_unanswered: Option<NonZeroU32>,
}

impl<'a> Codec<'a> {
    /// The codec of a device, by its customer's model.
    pub(super) fn of(device: &'a RegistrationState, catalog: &'a Catalog) -> Self {
        Self {
            registration: device.registration(),
            catalog,
            refused: device.refused(),
            composite_unanswered: device.composite_unanswered(),
        }
    }

    /// The path under which the device has its objects.
    pub(super) fn root(self) -> &'a str {
        self.registration.map_or("", |r| r.links.root())
    }

    /// The format to request for the values of a path: the best of those that the device has not
    /// refused, before or in this attempt. None if it refused them all; it may then answer in any.
    pub(super) fn format_to_read(self, path: Path, refused: FormatSet) -> Option<ContentFormat> {
        let object = self.object_at(path.object_id());
        let wanted = formats::formats_to_read(path, object, self.announced(), self.enabler());
        let refused = self.refused.with(refused);
        wanted.iter().find(|format| !refused.has(*format))
    }

    /// The format to request for several objects at once; none if the device announces no format
    /// that can carry such an answer.
    pub(super) fn format_to_compose(self, refused: FormatSet) -> Option<ContentFormat> {
        let announced = self.announced();
        let is_unanswered =
            |it: &Registration| self.composite_unanswered == Some(it.announcement());
        if announced.is_empty() || self.registration.is_some_and(is_unanswered) {
            return None;
        }
        let wanted = formats::formats_to_compose(announced, self.enabler());
        let refused = self.refused.with(refused);
        wanted.iter().find(|format| !refused.has(*format))
    }

    /// The message that requests an observation; none if the device has no format for it.
    ///
    /// Attributes are in its query since LwM2M 1.2. Before, they are written to the path first
    /// (LwM2M Core 1.1 section 6.3.4): then the message is that Write-Attributes.
    pub(super) fn observe(
        self,
        label: ExchangeLabel,
        what: Observed<'_>,
        attempt: AttemptState,
    ) -> Option<Message> {
        let root = self.root();
        let refused = attempt.refused.formats;
        match what.target {
            ObservationTarget::Path(path) => {
                let accept = self.format_to_read(*path, refused);
                Some(match self.writes_before(what.attributes, attempt) {
                    true => operation::write_attributes(label, root, *path, what.attributes),
                    false => {
                        let message = operation::observe(label, root, *path, accept);
                        self.with_attributes(message, what.attributes)
                    }
                })
            }
            ObservationTarget::Paths(paths) => {
                if !self.takes_in_query(what.attributes) {
                    return None;
                }
                let format = self.format_of_composite(refused)?;
                let message = operation::observe_composite(label, root, paths, format).ok()?;
                Some(self.with_attributes(message, what.attributes))
            }
        }
    }

    /// The message that ends an observation; none if the device has no format for it.
    pub(super) fn cancel_observation(
        self,
        label: ExchangeLabel,
        what: Observed<'_>,
        refused: FormatSet,
    ) -> Option<Message> {
        let root = self.root();
        match what.target {
            ObservationTarget::Path(path) => {
                let accept = self.format_to_read(*path, refused);
                let message = operation::cancel_observation(label, root, *path, accept);
                Some(self.with_attributes(message, what.attributes))
            }
            ObservationTarget::Paths(paths) => {
                let format = self.format_of_composite(refused)?;
                let message =
                    operation::cancel_composite_observation(label, root, paths, format).ok()?;
                Some(self.with_attributes(message, what.attributes))
            }
        }
    }

    /// The message with the attributes of an observation, if the device takes them in a query.
    pub(super) fn with_attributes(self, message: Message, attributes: &Attributes) -> Message {
        match self.takes_in_query(attributes) {
            true => operation::with_attributes(message, attributes),
            false => message,
        }
    }

    /// Whether the device takes these attributes of an observation in a query.
    pub(super) fn takes_in_query(self, attributes: &Attributes) -> bool {
        match self.enabler() {
            EnablerVersion::V1_0 | EnablerVersion::V1_1 => attributes.is_empty(),
            EnablerVersion::V1_2 => true,
        }
    }

    /// Whether attributes have to be written before the observation is requested.
    pub(super) fn writes_before(self, attributes: &Attributes, attempt: AttemptState) -> bool {
        let is_written = attempt.attributes == WrittenAttributes::Yes;
        !self.takes_in_query(attributes) && !is_written
    }

    /// How to write a value: in the best format that the device did not refuse in this attempt,
    /// preferably one that it did not refuse before either.
    pub(super) fn planned_write(
        self,
        path: Path,
        value: &Value,
        refused: Refused,
    ) -> Option<PlannedWrite> {
        let resource = self.resource_at(path);
        let method = match refused.write {
            WriteMethod::Replace => operation::write_method(self.enabler(), path, resource),
            WriteMethod::PartialUpdate => WriteMethod::PartialUpdate,
        };
        let wanted = formats::formats_to_write(method, value, self.announced(), self.enabler());
        let format = self.best_of(wanted, refused.formats)?;
        operation::plan_write(method, path, resource, value, format).ok()
    }

    /// How to write several values to an instance with a method.
    pub(super) fn planned_writes(
        self,
        (target, method): (Path, WriteMethod),
        values: &Reading,
        refused: FormatSet,
    ) -> Option<PlannedWrite> {
        let format = self.format_of_several(refused)?;
        let resource_of = |path| self.resource_at(path);
        operation::plan_writes(method, target, values, format, resource_of).ok()
    }

    /// The payload that creates an instance with these values, at the path that the instance has if
    /// the device does not choose it.
    ///
    /// Only TLV can leave the choice to the device (LwM2M Core 1.1 section 6.3.6). In other formats
    /// the instance gets the first number that the device does not offer.
    pub(super) fn planned_creation(
        self,
        new: &NewInstance,
        values: &Reading,
        refused: FormatSet,
    ) -> Option<(ContentFormat, Vec<u8>)> {
        let format = self.format_of_several(refused)?;
        let values = operation::values_in(format, values, |path| self.resource_at(path));
        let is_tlv = [ContentFormat::LWM2M_TLV, ContentFormat::LEGACY_TLV].contains(&format);
        let payload = match new.instance {
            None if is_tlv => payload::encode(format, new.path(), &values),
            None => {
                let free = self.free_instance(new.object)?;
                let base = Path::instance(new.object, free);
                let moved = values.into_iter().filter_map(|(path, value)| {
                    let mut below = path.segments().skip(2);
                    let at = below.try_fold(base, |at, id| at.child(id));
                    at.map(|at| (at, value))
                });
                payload::encode(format, Path::object(new.object), &moved.collect())
            }
            Some(_) => payload::encode(format, Path::object(new.object), &values),
        };
        payload.ok().map(|payload| (format, payload))
    }

    /// The format of a request for several paths of a caller; none if the device has none.
    pub(super) fn format_of_composite(self, refused: FormatSet) -> Option<ContentFormat> {
        let wanted = formats::formats_to_compose(self.announced(), self.enabler());
        self.best_of(wanted, refused)
    }

    /// The format of several values to write.
    fn format_of_several(self, refused: FormatSet) -> Option<ContentFormat> {
        let wanted = formats::formats_of_several(self.announced(), self.enabler());
        self.best_of(wanted, refused)
    }

    /// The best format that the device did not refuse in this attempt, preferably one that it did
    /// not refuse before either.
    fn best_of(self, wanted: Formats, refused: FormatSet) -> Option<ContentFormat> {
        let best = |refused: FormatSet| wanted.iter().find(|format| !refused.has(*format));
        best(self.refused.with(refused)).or_else(|| best(refused))
    }

    fn free_instance(self, object: u16) -> Option<u16> {
        let object = self.registration.and_then(|r| r.links.object(object));
        let taken = object.map_or(&[][..], |object| object.instances);
        // 65535 is no instance (LwM2M Core 1.1 section 7.1).
        (0..u16::MAX).find(|id| taken.binary_search(id).is_err())
    }

    /// Whether a value for a path is written to a resource instance by replacing it.
    pub(super) fn replaces_instance(self, path: Path) -> bool {
        let resource = self.resource_at(path);
        operation::write_target(path, resource).is_resource_instance()
            && operation::write_method(self.enabler(), path, resource) == WriteMethod::Replace
    }

    /// Decodes the samples of a message that can be read, restricted to a scope.
    pub(super) fn samples_in(
        self,
        scope: Scope,
        message: &Message,
    ) -> Result<Decoded, Undecodable> {
        let format = message.content_format();
        payload::decode_readable(format, scope, &message.payload, &self)
    }

    /// Decodes the values of an answer to a request.
    pub(super) fn values_in(
        self,
        received_at: Timestamp,
        scope: Scope,
        answer: &Message,
    ) -> Result<ReadValues, String> {
        let decoded = self.samples_in(scope, answer);
        let decoded = decoded.map_err(|why| why.to_string())?;
        Ok(ReadValues {
            measurements: samples::by_time(received_at, decoded.samples),
            unreadable: decoded.unreadable,
        })
    }

    /// Decodes the values of an answer about several paths; about everything, if there is none.
    /// Values of other paths are left out.
    pub(super) fn values_at(
        self,
        received_at: Timestamp,
        paths: &[Path],
        answer: &Message,
    ) -> Result<ReadValues, String> {
        // Nothing that was requested exists; there may be no format to say that in.
        if answer.payload.is_empty() {
            return Ok(ReadValues::default());
        }
        let mut read = self.values_in(received_at, Scope::All, answer)?;
        read.retain(|at| paths.is_empty() || paths.iter().any(|path| path.contains(*at)));
        Ok(read)
    }

    /// Whether the model has the object of a path, and the registration the instance.
    pub(super) fn knows(self, path: Path) -> bool {
        let is_offered = self.registration.is_some_and(|r| r.links.offers(path));
        is_offered && self.object_at(path.object_id()).is_some()
    }

    /// An object in the version the device offers; none if the model does not have it.
    pub(super) fn object_at(self, object: u16) -> Option<Object<'a>> {
        let version = self.registration.and_then(|r| r.links.version_of(object));
        let version = version.unwrap_or_else(|| model::default_version(object, self.enabler()));
        self.catalog.object(object, version)
    }

    /// The resource of a path, in the version the device offers; none if the model does not have
    /// it.
    pub(super) fn resource_at(self, path: Path) -> Option<&'a Resource> {
        self.object_at(path.object_id())?
            .resource(path.resource_id()?)
    }

    /// The LwM2M release of the device.
    pub(super) fn enabler(self) -> EnablerVersion {
        self.registration
            .map_or(EnablerVersion::V1_1, |r| r.version)
    }

    /// The formats the device announces.
    fn announced(self) -> &'a [u16] {
        self.registration
            .map_or(&[][..], |r| r.links.content_formats())
    }
}

impl Model for Codec<'_> {
    fn type_of(&self, path: Path) -> Option<DataType> {
        self.resource_at(path)?.data_type()
    }

    fn instances_of(&self, object: u16) -> Option<Instances> {
        self.object_at(object).map(|object| object.instances())
    }
}
