//! What does a request do to the device's resources? (LwM2M Core 1.1 section 6.3)

use std::fmt::Write as _;

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use protocol::lwm2m::path::{Level, Path};
use protocol::lwm2m::payload::{opaque, text};
use protocol::lwm2m::value::{DataType, Value};

use super::event::Operation;
use super::resource::Resource;

/// All resources of one device, with how often each was changed by the server.
#[derive(Clone, Debug)]
pub(super) struct Resources {
    // Ordered by path, which binary search rests on.
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    resource: Resource,
    executed: u64,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) code: Code,
    pub(super) format: Option<ContentFormat>,
    pub(super) payload: Vec<u8>,
}

impl Outcome {
    pub(super) fn of(code: Code) -> Self {
        Self {
            code,
            format: None,
            payload: Vec::new(),
        }
    }
}

impl Resources {
    pub(super) fn new(resources: Vec<Resource>) -> Self {
        let entry = |resource| Entry {
            resource,
            executed: 0,
        };
        let mut entries: Vec<Entry> = resources.into_iter().rev().map(entry).collect();
        // The sort is stable and the list reversed, so of equal paths the later stays.
        entries.sort_by_key(|entry| entry.resource.path);
        entries.dedup_by_key(|entry| entry.resource.path);
        Self { entries }
    }

    /// Performs an operation, or tells why it is not done.
    pub(super) fn perform(&mut self, path: Path, operation: Operation, by: &Message) -> Outcome {
        let done = match self.entry_mut(path) {
            Some(entry) => match operation {
                Operation::Read => entry.read(by.accept()),
                Operation::Write => entry.write(by),
                Operation::Execute => entry.execute(by),
            },
            None => Err(self.refusal_of(path, operation)),
        };
        done.unwrap_or_else(Outcome::of)
    }

    /// Puts a value in the place of another one of its type, and returns that.
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

    /// Tells how often the server wrote or executed the resource.
    pub(super) fn executed(&self, path: Path) -> u64 {
        self.entry(path).map_or(0, |entry| entry.executed)
    }

    /// Writes the links of all object instances, as a registration carries them.
    pub(super) fn write_links(&self, links: &mut String) {
        let mut listed = None;
        for entry in &self.entries {
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

    // What is no single value travels in formats this device does not speak.
    fn refusal_of(&self, path: Path, operation: Operation) -> Code {
        let is_parent = self
            .entries
            .iter()
            .any(|entry| is_below(entry.resource.path, path));
        if !is_parent {
            return Code::NOT_FOUND;
        }
        match operation {
            Operation::Read => Code::NOT_ACCEPTABLE,
            Operation::Write => Code::UNSUPPORTED_CONTENT_FORMAT,
            Operation::Execute => Code::METHOD_NOT_ALLOWED,
        }
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
    fn read(&self, accept: Option<ContentFormat>) -> Result<Outcome, Code> {
        let value = self.resource.value.as_ref();
        let value = value.filter(|_| self.resource.operations.can_read());
        let value = value.ok_or(Code::METHOD_NOT_ALLOWED)?;
        let is_opaque = value.data_type() == DataType::Opaque;
        let (format, payload) = match accept {
            None if is_opaque => (ContentFormat::OCTET_STREAM, opaque::encode(value)),
            None | Some(ContentFormat::TEXT) => (ContentFormat::TEXT, text::encode(value)),
            Some(ContentFormat::OCTET_STREAM) if is_opaque => {
                (ContentFormat::OCTET_STREAM, opaque::encode(value))
            }
            Some(_) => return Err(Code::NOT_ACCEPTABLE),
        };
        Ok(Outcome {
            code: Code::CONTENT,
            format: Some(format),
            payload,
        })
    }

    fn write(&mut self, by: &Message) -> Result<Outcome, Code> {
        // A PUT with parameters writes attributes, which this device keeps none of.
        if by.uri_query().next().is_some() {
            return Err(Code::NOT_IMPLEMENTED);
        }
        let can_write = self.resource.operations.can_write();
        let value = self.resource.value.as_mut().filter(|_| can_write);
        let value = value.ok_or(Code::METHOD_NOT_ALLOWED)?;
        let data_type = value.data_type();
        let decoded = match (by.content_format(), data_type) {
            (None | Some(ContentFormat::OCTET_STREAM), DataType::Opaque) => {
                opaque::decode(&by.payload, data_type)
            }
            (None | Some(ContentFormat::TEXT), _) => text::decode(&by.payload, data_type),
            (Some(_), _) => return Err(Code::UNSUPPORTED_CONTENT_FORMAT),
        };
        *value = decoded.map_err(|_| Code::BAD_REQUEST)?;
        self.executed += 1;
        Ok(Outcome::of(Code::CHANGED))
    }

    fn execute(&mut self, by: &Message) -> Result<Outcome, Code> {
        if !self.resource.operations.can_execute() {
            return Err(Code::METHOD_NOT_ALLOWED);
        }
        match by.content_format() {
            None | Some(ContentFormat::TEXT) => {}
            Some(_) => return Err(Code::UNSUPPORTED_CONTENT_FORMAT),
        }
        self.executed += 1;
        Ok(Outcome::of(Code::CHANGED))
    }
}

fn is_below(path: Path, parent: Path) -> bool {
    let reaches_instance = parent.level() >= Level::Instance;
    let reaches_resource = parent.level() >= Level::Resource;
    path.level() > parent.level()
        && path.object_id() == parent.object_id()
        && (!reaches_instance || path.instance_id() == parent.instance_id())
        && (!reaches_resource || path.resource_id() == parent.resource_id())
}
