//! What does a request do to the resources of the device? (LwM2M Core 1.1 section 6.3)

pub(super) mod accounts;
mod managing;

use std::fmt::Write as _;

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use protocol::lwm2m::bootstrap::SECURITY_OBJECT;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::Reading;
use protocol::lwm2m::value::Value;
use protocol::lwm2m::version::EnablerVersion;

use super::event::Operation;
use super::outcome::ResponseContent;
use super::payload_formats::PayloadFormats;
use super::resource::Resource;
use managing::AttributesByPath;

/// All resources of a device, with the number of changes by the server.
#[derive(Clone, Debug)]
pub(super) struct Resources {
    // Ordered by path, for binary search.
    entries: Vec<Entry>,
    formats: PayloadFormats,
    enabler: EnablerVersion,
    attributes: AttributesByPath,
    /// Whether the server has yet to learn of instances that were created or deleted.
    has_new_links: bool,
}

#[derive(Clone, Debug)]
struct Entry {
    resource: Resource,
    executed: u64,
}

impl Resources {
    pub(super) fn new(
        resources: Vec<Resource>,
        formats: PayloadFormats,
        enabler: EnablerVersion,
    ) -> Self {
        let mut entries: Vec<Entry> = resources.into_iter().rev().map(Entry::new).collect();
        // The sort is stable and the list reversed, so of equal paths the later one stays.
        entries.sort_by_key(|entry| entry.resource.path);
        entries.dedup_by_key(|entry| entry.resource.path);
        Self {
            entries,
            formats,
            enabler,
            attributes: AttributesByPath::new(),
            has_new_links: false,
        }
    }

    /// Performs an operation, or returns the code of its refusal.
    pub(super) fn perform(
        &mut self,
        path: Path,
        operation: Operation,
        by: &Message,
    ) -> ResponseContent {
        let done = match operation {
            Operation::Read | Operation::Observe | Operation::CancelObservation => {
                return self.read(path, by.accept());
            }
            Operation::Write => self.write(path, by),
            Operation::Execute => self.execute(path, by),
            Operation::Discover => self.discover(path),
            Operation::Create => self.create(path, by),
            Operation::Delete => self.delete(path),
            Operation::WriteAttributes => self.write_attributes(path, by),
        };
        done.unwrap_or_else(ResponseContent::of)
    }

    /// Encodes the values at and below a path in the requested format.
    pub(super) fn read(&self, path: Path, accept: Option<ContentFormat>) -> ResponseContent {
        let read = match self.entry(path) {
            Some(entry) => entry.read(accept, &self.formats),
            None => self.read_below(path, accept),
        };
        read.unwrap_or_else(ResponseContent::of)
    }

    /// Encodes the values at and below several paths, or everything without a path, but not those
    /// that do not exist or cannot be read.
    pub(super) fn read_several(&self, paths: &[Path], accept: ContentFormat) -> ResponseContent {
        let is_requested = |entry: &&Entry| {
            let at = entry.resource.path;
            paths.is_empty() || paths.iter().any(|path| path.contains(at))
        };
        let mut requested = self.entries.iter().filter(is_requested).peekable();
        if requested.peek().is_none() {
            return ResponseContent::of(Code::NOT_FOUND);
        }
        let values: Reading = requested.filter_map(Entry::readable).collect();
        let encoded = self.formats.encode_all(accept, &values);
        encoded.unwrap_or_else(ResponseContent::of)
    }

    pub(super) fn formats(&self) -> &PayloadFormats {
        &self.formats
    }

    /// Replaces a value with one of the same type, and returns the previous one.
    pub(super) fn replace(&mut self, path: Path, value: Value) -> Option<Value> {
        let held = self.entry_mut(path)?.resource.value.as_mut()?;
        (held.data_type() == value.data_type()).then(|| std::mem::replace(held, value))
    }

    pub(super) fn find_mut(&mut self, path: Path) -> Option<&mut Resource> {
        self.entry_mut(path).map(|entry| &mut entry.resource)
    }

    pub(super) fn find(&self, path: Path) -> Option<&Resource> {
        self.entry(path).map(|entry| &entry.resource)
    }

    pub(super) fn value(&self, path: Path) -> Option<&Value> {
        self.find(path)?.value.as_ref()
    }

    /// How often the server wrote or executed the resource; of several instances, the highest
    /// number.
    pub(super) fn executed(&self, path: Path) -> u64 {
        let executed = self.within(path).map(|entry| entry.executed);
        executed.max().unwrap_or(0)
    }

    /// Whether instances were created or deleted since this was last asked.
    pub(super) fn take_new_links(&mut self) -> bool {
        std::mem::take(&mut self.has_new_links)
    }

    /// Appends the links of all object instances to a registration.
    pub(super) fn write_links(&self, links: &mut String) {
        let mut listed = None;
        // The object of the accounts is never listed (LwM2M Core 1.1 section 6.2.1).
        let is_listed = |entry: &&Entry| entry.resource.path.object_id() != SECURITY_OBJECT;
        for entry in self.entries.iter().filter(is_listed) {
            let path = entry.resource.path;
            let instance = path
                .instance_id()
                .map(|instance| (path.object_id(), instance));
            if let Some((object, number)) = instance
                && instance != listed
            {
                let comma = if links.is_empty() { "" } else { "," };
                write!(links, "{comma}</{object}/{number}>").expect("a String takes all text");
                listed = instance;
            }
        }
    }

    fn read_below(
        &self,
        path: Path,
        accept: Option<ContentFormat>,
    ) -> Result<ResponseContent, Code> {
        self.within(path).next().ok_or(Code::NOT_FOUND)?;
        let readable = self.within(path).filter_map(Entry::readable);
        let values: Reading = readable.collect();
        if values.is_empty() && path.is_resource() {
            return Err(Code::METHOD_NOT_ALLOWED);
        }
        self.formats.encode_below(accept, path, &values)
    }

    fn write(&mut self, path: Path, by: &Message) -> Result<ResponseContent, Code> {
        let formats = self.formats.clone();
        match self.entry_mut(path) {
            Some(entry) => entry.write(by, &formats),
            None if by.code == Code::POST => self.update_partially(path, by),
            None if path.is_instance() => self.replace_instance(path, by),
            None => self.replace_instances(path, by),
        }
    }

    /// Replaces the instances of a multiple resource with those in a list.
    fn replace_instances(&mut self, path: Path, by: &Message) -> Result<ResponseContent, Code> {
        let like = self.within(path).next().ok_or(Code::NOT_FOUND)?;
        let value = like.writable().filter(|_| path.is_resource());
        let data_type = value.ok_or(Code::METHOD_NOT_ALLOWED)?.data_type();
        let values = self.formats.decode_several(path, by, |_| Some(data_type))?;
        // A resource without instances could not be restored.
        if values.is_empty() || values.contains_key(&path) {
            return Err(Code::BAD_REQUEST);
        }
        let written = self.written(values)?;
        self.entries
            .retain(|entry| !path.contains(entry.resource.path));
        self.add(written);
        Ok(ResponseContent::of(Code::CHANGED))
    }

    /// Updates the resources and resource instances in a list; the others stay as they are.
    fn update_partially(&mut self, path: Path, by: &Message) -> Result<ResponseContent, Code> {
        self.within(path).next().ok_or(Code::NOT_FOUND)?;
        let values = self
            .formats
            .decode_several(path, by, |path| self.type_of(path))?;
        let written = self.written(values)?;
        self.entries.retain(|entry| {
            let at = entry.resource.path;
            !written.iter().any(|new| new.resource.path == at)
        });
        self.add(written);
        Ok(ResponseContent::of(Code::CHANGED))
    }

    /// The entries with these values in place of their present ones.
    fn written(&self, values: Reading) -> Result<Vec<Entry>, Code> {
        let written = values.into_iter().map(|(path, value)| {
            let mut entry = self.alike(path).ok_or(Code::NOT_FOUND)?.clone();
            entry.writable().ok_or(Code::METHOD_NOT_ALLOWED)?;
            entry.executed = self.entry(path).map_or(0, |entry| entry.executed) + 1;
            entry.resource.path = path;
            entry.resource.value = Some(value);
            Ok(entry)
        });
        written.collect()
    }

    /// The entry of a path, or another instance of its resource.
    fn alike(&self, path: Path) -> Option<&Entry> {
        let other = || self.within(path.to_resource()?).next();
        self.entry(path).or_else(other)
    }

    fn add(&mut self, written: Vec<Entry>) {
        self.entries.extend(written);
        self.entries.sort_by_key(|entry| entry.resource.path);
    }

    fn execute(&mut self, path: Path, by: &Message) -> Result<ResponseContent, Code> {
        let is_known = self.within(path).next().is_some();
        match self.entry_mut(path) {
            Some(entry) => entry.execute(by),
            None if is_known => Err(Code::METHOD_NOT_ALLOWED),
            None => Err(Code::NOT_FOUND),
        }
    }

    fn within(&self, path: Path) -> impl Iterator<Item = &Entry> {
        let is_within = move |entry: &&Entry| path.contains(entry.resource.path);
        self.entries.iter().filter(is_within)
    }

    fn entry(&self, path: Path) -> Option<&Entry> {
        self.place(path).and_then(|place| self.entries.get(place))
    }

    fn entry_mut(&mut self, path: Path) -> Option<&mut Entry> {
        self.place(path)
            .and_then(|place| self.entries.get_mut(place))
    }

    fn place(&self, path: Path) -> Option<usize> {
        self.entries
            .binary_search_by_key(&path, |entry| entry.resource.path)
            .ok()
    }
}

impl Entry {
    fn new(resource: Resource) -> Self {
        Self {
            resource,
            executed: 0,
        }
    }

    fn read(
        &self,
        accept: Option<ContentFormat>,
        formats: &PayloadFormats,
    ) -> Result<ResponseContent, Code> {
        let (path, value) = self.readable().ok_or(Code::METHOD_NOT_ALLOWED)?;
        formats.encode_one(accept, path, value)
    }

    fn write(&mut self, by: &Message, formats: &PayloadFormats) -> Result<ResponseContent, Code> {
        let path = self.resource.path;
        let data_type = self.writable().ok_or(Code::METHOD_NOT_ALLOWED)?.data_type();
        self.resource.value = Some(formats.decode_one(path, by, data_type)?);
        self.executed += 1;
        Ok(ResponseContent::of(Code::CHANGED))
    }

    fn execute(&mut self, by: &Message) -> Result<ResponseContent, Code> {
        if !self.resource.operations.can_execute() {
            return Err(Code::METHOD_NOT_ALLOWED);
        }
        match by.content_format() {
            None | Some(ContentFormat::TEXT) => {}
            Some(_) => return Err(Code::UNSUPPORTED_CONTENT_FORMAT),
        }
        self.executed += 1;
        Ok(ResponseContent::of(Code::CHANGED))
    }

    fn readable(&self) -> Option<(Path, Value)> {
        let value = self.resource.value.as_ref();
        let value = value.filter(|_| self.resource.operations.can_read())?;
        Some((self.resource.path, value.clone()))
    }

    fn writable(&self) -> Option<&Value> {
        let value = self.resource.value.as_ref();
        value.filter(|_| self.resource.operations.can_write())
    }
}
