//! How does the device list, create and delete instances, and keep attributes? (LwM2M Core 1.1
//! sections 6.3.2, 6.3.4, 6.3.6 and 6.3.7)

use std::collections::BTreeMap;
use std::fmt::Write as _;

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use protocol::lwm2m::attributes::{Attribute, AttributeName, Attributes};
use protocol::lwm2m::model::{self, Instances, Object};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::Reading;
use protocol::lwm2m::value::DataType;
use protocol::lwm2m::version::EnablerVersion;

use super::{Entry, Resources};
use crate::device::outcome::ResponseContent;
use crate::device::resource::Resource;

/// The attributes of the paths that have any.
pub(in crate::device) type AttributesByPath = BTreeMap<Path, BTreeMap<AttributeName, Box<str>>>;

/// The objects whose instances stay: security and device (section 6.3.7).
const LASTING: [u16; 2] = [0, 3];

impl Resources {
    /// Lists what is at and below a path.
    pub(in crate::device) fn discover(&self, path: Path) -> Result<ResponseContent, Code> {
        self.within(path).next().ok_or(Code::NOT_FOUND)?;
        let mut paths = vec![path];
        for entry in self.within(path) {
            let at = entry.resource.path;
            let above = [instance_of(at), at.to_resource()];
            let own = path.to_resource().map(|_| at);
            paths.extend(above.into_iter().flatten().chain(own));
        }
        paths.retain(|listed| path.contains(*listed));
        paths.sort();
        paths.dedup();
        let links: Vec<String> = paths.into_iter().map(|listed| self.link(listed)).collect();
        let format = ContentFormat::LINK_FORMAT;
        Ok(ResponseContent::content(
            format,
            links.join(",").into_bytes(),
        ))
    }

    /// Creates an instance of an object with the values in a list.
    pub(super) fn create(&mut self, object: Path, by: &Message) -> Result<ResponseContent, Code> {
        let definition = definition_of(object.object_id()).ok_or(Code::NOT_FOUND)?;
        let has_one = self.within(object).next().is_some();
        if definition.instances() == Instances::Single && has_one {
            return Err(Code::BAD_REQUEST);
        }
        let free = self.free_instance(object);
        let values = self.values_of_new(object, free, by)?;
        let instance = values.keys().next().and_then(|path| instance_of(*path));
        let instance = instance.unwrap_or(free);
        let is_other = |path: &Path| !instance.contains(*path);
        if self.within(instance).next().is_some() || values.keys().any(is_other) {
            return Err(Code::BAD_REQUEST);
        }
        let created = created(definition, instance, values)?;
        self.add(created);
        self.has_new_links = true;
        Ok(ResponseContent {
            location: Some(instance),
            ..ResponseContent::of(Code::CREATED)
        })
    }

    /// Deletes an object instance, or an instance of a resource.
    pub(super) fn delete(&mut self, path: Path) -> Result<ResponseContent, Code> {
        self.within(path).next().ok_or(Code::NOT_FOUND)?;
        let is_lasting = path.is_instance() && LASTING.contains(&path.object_id());
        if is_lasting || !(path.is_instance() || path.is_resource_instance()) {
            return Err(Code::METHOD_NOT_ALLOWED);
        }
        self.entries
            .retain(|entry| !path.contains(entry.resource.path));
        self.attributes.retain(|at, _| !path.contains(*at));
        self.has_new_links |= path.is_instance();
        Ok(ResponseContent::of(Code::DELETED))
    }

    /// Keeps the attributes in a query; one without a value is removed.
    pub(super) fn write_attributes(
        &mut self,
        path: Path,
        by: &Message,
    ) -> Result<ResponseContent, Code> {
        self.within(path).next().ok_or(Code::NOT_FOUND)?;
        let attributes = self.attributes_in(by, path)?;
        let kept = self.attributes.entry(path).or_default();
        for Attribute { name, value } in attributes.iter() {
            match value {
                Some(value) => drop(kept.insert(*name, value.clone())),
                None => drop(kept.remove(name)),
            }
        }
        Ok(ResponseContent::of(Code::CHANGED))
    }

    /// The attributes in the query of a request for a path.
    pub(in crate::device) fn attributes_in(
        &self,
        by: &Message,
        path: Path,
    ) -> Result<Attributes, Code> {
        let query: Vec<&str> = by.uri_query().collect();
        let attributes = Attributes::from_query(&query.join("&")).map_err(|_| Code::BAD_REQUEST)?;
        let is_unsuited = |it: &Attribute| it.name.since() > self.enabler || !it.name.suits(path);
        if attributes.iter().any(is_unsuited) {
            return Err(Code::BAD_REQUEST);
        }
        Ok(attributes)
    }

    /// The attributes that apply to a path: its own, and those of what it is in.
    pub(in crate::device) fn attributes_of(&self, path: Path) -> BTreeMap<AttributeName, f64> {
        let above = self.attributes.iter().filter(|(at, _)| at.contains(path));
        let all = above.flat_map(|(_, attributes)| attributes);
        all.filter_map(|(name, value)| Some((*name, value.parse().ok()?)))
            .collect()
    }

    /// Replaces the values of an instance: those that the server may write and does not are gone.
    pub(super) fn replace_instance(
        &mut self,
        path: Path,
        by: &Message,
    ) -> Result<ResponseContent, Code> {
        self.within(path).next().ok_or(Code::NOT_FOUND)?;
        let values = self
            .formats
            .decode_several(path, by, |path| self.type_of(path))?;
        let written = self.written(values)?;
        self.entries
            .retain(|entry| !path.contains(entry.resource.path) || entry.writable().is_none());
        self.add(written);
        Ok(ResponseContent::of(Code::CHANGED))
    }

    /// Writes values of several objects, all of them or none, and returns their paths.
    pub(in crate::device) fn write_several(&mut self, by: &Message) -> Result<Vec<Path>, Code> {
        let values = self.formats.decode_all(by, |path| self.type_of(path))?;
        let written = self.written(values)?;
        let paths: Vec<Path> = written.iter().map(|entry| entry.resource.path).collect();
        self.entries
            .retain(|entry| !paths.contains(&entry.resource.path));
        self.add(written);
        Ok(paths)
    }

    /// The type of a resource that the device has, or that the registry knows.
    pub(super) fn type_of(&self, path: Path) -> Option<DataType> {
        let held = self.alike(path).and_then(|it| it.resource.value.as_ref());
        let held = held.map(|value| value.data_type());
        held.or_else(|| {
            let resource = definition_of(path.object_id())?.resource(path.resource_id()?)?;
            resource.data_type()
        })
    }

    /// The values for a new instance; a list in TLV that names no instance is for the free one.
    fn values_of_new(&self, object: Path, free: Path, by: &Message) -> Result<Reading, Code> {
        if by.payload.is_empty() {
            return Ok(Reading::new());
        }
        let decode = |at: Path| {
            self.formats
                .decode_several(at, by, |path| self.type_of(path))
        };
        match by.content_format() {
            Some(ContentFormat::LWM2M_TLV) => decode(object).or_else(|_| decode(free)),
            Some(_) | None => decode(object),
        }
    }

    fn free_instance(&self, object: Path) -> Path {
        let at = |id: u16| Path::instance(object.object_id(), id);
        let free = (0..u16::MAX).find(|id| self.within(at(*id)).next().is_none());
        at(free.unwrap_or(u16::MAX))
    }

    fn link(&self, path: Path) -> String {
        let mut link = format!("<{path}>");
        let instances = self.within(path);
        let instances = instances.filter(|it| it.resource.path.is_resource_instance());
        let dimension = instances.count();
        if path.is_resource() && dimension > 0 {
            write!(link, ";dim={dimension}").expect("a String takes all text");
        }
        for (name, value) in self.attributes.get(&path).into_iter().flatten() {
            write!(link, ";{name}={value}").expect("a String takes all text");
        }
        link
    }
}

/// The entries of a new instance: its values, and the resources that can be executed. A mandatory
/// resource that the server may write must have a value (section 6.3.6).
fn created(
    definition: &Object<'static>,
    instance: Path,
    values: Reading,
) -> Result<Vec<Entry>, Code> {
    let mut created = Vec::new();
    for resource in definition.resources().iter().filter(|it| it.is_mandatory()) {
        let path = instance.child(resource.id()).ok_or(Code::BAD_REQUEST)?;
        let has_value = values.keys().any(|at| path.contains(*at));
        if resource.operations().can_execute() {
            created.push(Entry::new(Resource::executable(path)));
        } else if resource.operations().can_write() && !has_value {
            return Err(Code::BAD_REQUEST);
        }
    }
    for (path, value) in values {
        let resource = path.resource_id().and_then(|id| definition.resource(id));
        resource.ok_or(Code::BAD_REQUEST)?;
        created.push(Entry::new(Resource::holding(path, value)));
    }
    // An instance without any resource could not be listed.
    match created.is_empty() {
        true => Err(Code::BAD_REQUEST),
        false => Ok(created),
    }
}

fn definition_of(object: u16) -> Option<&'static Object<'static>> {
    let version = model::default_version(object, EnablerVersion::V1_2);
    model::object(object, version)
}

fn instance_of(path: Path) -> Option<Path> {
    let instance = path.instance_id()?;
    Some(Path::instance(path.object_id(), instance))
}
