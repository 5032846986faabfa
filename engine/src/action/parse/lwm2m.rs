//! Is this a valid LwM2M operation? Parses what a caller wrote (seed 4.2).

use std::slice;

use protocol::lwm2m::attributes::{AttributeFault, AttributeName, Attributes};
use protocol::lwm2m::path::{InvalidPath, Level, Path};
use protocol::lwm2m::payload::formats::WriteMethod;

use super::RawField;
use crate::action::{InstanceWrite, Lwm2mRequest, NewInstance, Operation, PathData};
use crate::limits::REQUEST_PATHS_MAX;

/// A fault in a request.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Lwm2mFault {
    /// A field that the operation needs is missing.
    #[error("is required for this action")]
    Missing(Lwm2mField),
    /// The operation does not have the field.
    #[error("is not supported for this action")]
    Unwanted(Lwm2mField),
    /// The address is invalid.
    #[error("{1}")]
    Address(Lwm2mField, InvalidPath),
    /// The operation needs another kind of address.
    #[error("must address {0}")]
    Level(AddressKind),
    /// The address is given twice.
    #[error("must be given only once")]
    Repeated(Lwm2mField),
    /// There is nothing in the field, or too much.
    #[error("must have 1 to {REQUEST_PATHS_MAX} entries")]
    Count(Lwm2mField),
    /// The operation has one value.
    #[error("must be a string")]
    NoText,
    /// The operation has a map of values.
    #[error("must be an object of values")]
    NoValues,
    /// The data is too long.
    #[error("must not be longer than {max} bytes")]
    DataTooLong {
        /// The longest allowed.
        max: usize,
    },
    /// A value has a name that is no resource.
    #[error("must be named by a resource id, such as 5700, or a resource instance, such as 6/1")]
    ResourceName(Box<str>),
    /// A value has a path that is no resource.
    #[error("must be named by the path of a resource or of one of its instances")]
    ValuePath(Box<str>),
    /// The value of a resource is given beside that of one of its instances.
    #[error("is given for a resource that has another value")]
    Overlap(Box<str>),
    /// An attribute is invalid.
    #[error("{}", .0.reason)]
    Attribute(AttributeFault),
    /// An attribute is a condition on a value, and the address is no resource.
    #[error("is a condition on the value of a resource, and needs the address of one")]
    AttributeLevel(Box<str>),
}

/// The field that a fault is about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Lwm2mField {
    /// The path of the operation.
    Address,
    /// The paths of a composite operation, or one of them.
    Addresses(Option<usize>),
    /// The value to write, or the arguments to execute with; or a value of several.
    Data(Option<Box<str>>),
    /// The attributes, or one of them.
    Attributes(Option<Box<str>>),
    /// Whether the values replace the instance.
    Replace,
}

/// What an operation can address.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum AddressKind {
    /// A resource or one of its instances.
    #[error("a resource: /object/instance/resource")]
    Resource,
    /// A resource, of which an instance cannot be executed (LwM2M Core 1.2 section 6.3.5).
    #[error("a resource, not one of its instances: /object/instance/resource")]
    WholeResource,
    /// An object instance.
    #[error("an object instance: /object/instance")]
    Instance,
    /// An object, or the instance of it to create.
    #[error("an object or the instance to create: /object or /object/instance")]
    NewInstance,
    /// What can be deleted (LwM2M Core 1.2 section 6.3.7).
    #[error("an object instance or a resource instance")]
    Deletable,
}

impl Lwm2mFault {
    /// The field that must change.
    pub fn part(&self) -> Lwm2mField {
        match self {
            Self::Missing(field)
            | Self::Unwanted(field)
            | Self::Address(field, _)
            | Self::Repeated(field)
            | Self::Count(field) => field.clone(),
            Self::Level(_) => Lwm2mField::Address,
            Self::NoText | Self::NoValues | Self::DataTooLong { .. } => Lwm2mField::Data(None),
            Self::ResourceName(name) | Self::ValuePath(name) | Self::Overlap(name) => {
                Lwm2mField::Data(Some(name.clone()))
            }
            Self::Attribute(fault) => Lwm2mField::Attributes(Some(fault.name.clone())),
            Self::AttributeLevel(name) => Lwm2mField::Attributes(Some(name.clone())),
        }
    }
}

/// The data of a request as a caller wrote it.
#[derive(Clone, Copy, Debug)]
pub enum RawData<'a> {
    /// One string.
    Text(&'a str),
    /// Values by name.
    Values(&'a [(String, String)]),
}

/// A request as a caller wrote it. Fields of the wrong type are already reported; the others are
/// checked all the same.
#[derive(Clone, Copy, Debug)]
pub struct Lwm2mDraft<'a> {
    /// The operation; none if it is missing or unknown, which is already reported.
    pub operation: Option<Operation>,
    /// The address.
    pub address: RawField<&'a str>,
    /// The addresses of a composite operation.
    pub addresses: RawField<&'a [String]>,
    /// The values to write, or the arguments to execute with.
    pub data: RawField<RawData<'a>>,
    /// The attributes, each a name and its value; one without a value is to be removed.
    pub attributes: RawField<&'a [(String, Option<String>)]>,
    /// Whether the values replace the instance.
    pub replace: RawField<bool>,
}

impl<'a> Lwm2mDraft<'a> {
    /// A request without any field.
    pub const EMPTY: Self = Self {
        operation: None,
        address: RawField::Nothing,
        addresses: RawField::Nothing,
        data: RawField::Nothing,
        attributes: RawField::Nothing,
        replace: RawField::Nothing,
    };

    /// Parses the request; the error has every fault of the fields that are there. `None` if a
    /// field is unreadable or the operation is. The data has at most `data_max` bytes.
    pub fn read(self, data_max: usize) -> Result<Option<Lwm2mRequest>, Vec<Lwm2mFault>> {
        let mut reader = Reader {
            draft: self,
            data_max,
            faults: Vec::new(),
        };
        let request = match self.operation {
            Some(operation) => reader.request(operation),
            None => {
                reader.check_all();
                None
            }
        };
        match reader.faults.is_empty() {
            true => Ok(request),
            false => Err(reader.faults),
        }
    }
}

/// Collects the faults of a draft.
struct Reader<'a> {
    draft: Lwm2mDraft<'a>,
    data_max: usize,
    faults: Vec<Lwm2mFault>,
}

impl Reader<'_> {
    fn request(&mut self, operation: Operation) -> Option<Lwm2mRequest> {
        self.refuse_unwanted(operation);
        match operation {
            Operation::Read => self.address(operation).map(Lwm2mRequest::Read),
            Operation::ObserveStart => {
                let path = self.address(operation);
                let attributes = self.attributes(path.as_ref().map(slice::from_ref), false);
                Some(Lwm2mRequest::ObserveStart(path?, attributes?))
            }
            Operation::ObserveEnd => self.address(operation).map(Lwm2mRequest::ObserveEnd),
            Operation::Discover => self.address(operation).map(Lwm2mRequest::Discover),
            Operation::Delete => self.address(operation).map(Lwm2mRequest::Delete),
            Operation::Write => {
                let (path, data) = (self.address(operation), self.text(true));
                Some(Lwm2mRequest::Write(path?, data??))
            }
            Operation::Execute => {
                let (path, data) = (self.address(operation), self.text(false));
                Some(Lwm2mRequest::Execute(path?, data?))
            }
            Operation::Create => self.creation(),
            Operation::WriteInstance => self.instance_write(),
            Operation::WriteAttributes => {
                let path = self.address(operation);
                let attributes = self.attributes(path.as_ref().map(slice::from_ref), true);
                Some(Lwm2mRequest::WriteAttributes(path?, attributes?))
            }
            Operation::ReadComposite => self.addresses().map(Lwm2mRequest::ReadComposite),
            Operation::WriteComposite => self.values(None, true).map(Lwm2mRequest::WriteComposite),
            Operation::ObserveCompositeStart => {
                let paths = self.addresses();
                let attributes = self.attributes(paths.as_deref(), false);
                Some(Lwm2mRequest::ObserveCompositeStart(paths?, attributes?))
            }
            Operation::ObserveCompositeEnd => {
                self.addresses().map(Lwm2mRequest::ObserveCompositeEnd)
            }
        }
    }

    /// Checks the fields of a request whose operation is unknown.
    fn check_all(&mut self) {
        let is_composite = matches!(self.draft.addresses, RawField::Value(_));
        match self.draft.address {
            RawField::Nothing if is_composite => {}
            RawField::Nothing => self.faults.push(Lwm2mFault::Missing(Lwm2mField::Address)),
            RawField::Value(text) => {
                let parsed = Path::parse(text);
                let fault = parsed.map_err(|why| Lwm2mFault::Address(Lwm2mField::Address, why));
                self.faults.extend(fault.err());
            }
            RawField::Unreadable => {}
        }
        if is_composite {
            self.addresses();
        }
        self.check_length();
        self.attributes(None, false);
    }

    fn refuse_unwanted(&mut self, operation: Operation) {
        let fields = [
            (
                has_address(operation),
                is_given(&self.draft.address),
                Lwm2mField::Address,
            ),
            (
                has_addresses(operation),
                is_given(&self.draft.addresses),
                Lwm2mField::Addresses(None),
            ),
            (
                has_data(operation),
                is_given(&self.draft.data),
                Lwm2mField::Data(None),
            ),
            (
                has_attributes(operation),
                is_given(&self.draft.attributes),
                Lwm2mField::Attributes(None),
            ),
            (
                operation == Operation::WriteInstance,
                is_given(&self.draft.replace),
                Lwm2mField::Replace,
            ),
        ];
        let unwanted = fields
            .into_iter()
            .filter(|(has, is_given, _)| *is_given && !has);
        let unwanted = unwanted.map(|(_, _, field)| Lwm2mFault::Unwanted(field));
        self.faults.extend(unwanted);
    }

    fn address(&mut self, operation: Operation) -> Option<Path> {
        let text = self.taken(self.draft.address, true, Lwm2mField::Address)??;
        let path = Path::parse(text);
        let path = path.map_err(|why| Lwm2mFault::Address(Lwm2mField::Address, why));
        self.kept(path.and_then(|path| addressed(operation, path)))
    }

    fn addresses(&mut self) -> Option<Box<[Path]>> {
        let texts = self.taken(self.draft.addresses, true, Lwm2mField::Addresses(None))??;
        if let [only] = texts
            && only == "/"
        {
            return Some(Box::default());
        }
        let count = Lwm2mFault::Count(Lwm2mField::Addresses(None));
        self.check(is_count(texts.len()), count);
        let mut paths = Vec::new();
        for (place, text) in texts.iter().enumerate() {
            let field = || Lwm2mField::Addresses(Some(place));
            match Path::parse(text) {
                Err(why) => self.faults.push(Lwm2mFault::Address(field(), why)),
                Ok(path) if paths.contains(&path) => {
                    self.faults.push(Lwm2mFault::Repeated(field()));
                }
                Ok(path) => paths.push(path),
            }
        }
        (paths.len() == texts.len()).then(|| paths.into())
    }

    /// The one string of the data. The inner option is empty if it is missing and may be.
    fn text(&mut self, is_required: bool) -> Option<Option<Box<str>>> {
        self.check_length();
        match self.taken(self.draft.data, is_required, Lwm2mField::Data(None))? {
            Some(RawData::Text(text)) => Some(Some(text.into())),
            Some(RawData::Values(_)) => self.kept(Err(Lwm2mFault::NoText)),
            None => Some(None),
        }
    }

    fn creation(&mut self) -> Option<Lwm2mRequest> {
        let address = self.address(Operation::Create);
        let new = address.map(|address| NewInstance {
            object: address.object_id(),
            instance: address.instance_id(),
            values: Box::default(),
        });
        // No format can say which instance an empty list of values is for.
        let is_required = address.is_some_and(|it| it.is_instance());
        let base = new.as_ref().map_or(Path::instance(0, 0), NewInstance::path);
        let values = self.values(Some(base), is_required)?;
        Some(Lwm2mRequest::Create(NewInstance { values, ..new? }))
    }

    fn instance_write(&mut self) -> Option<Lwm2mRequest> {
        let path = self.address(Operation::WriteInstance);
        let values = self.values(Some(path.unwrap_or(Path::instance(0, 0))), true);
        let method = match self.draft.replace {
            RawField::Value(true) => WriteMethod::Replace,
            RawField::Value(false) | RawField::Nothing => WriteMethod::PartialUpdate,
            RawField::Unreadable => return None,
        };
        Some(Lwm2mRequest::WriteInstance(InstanceWrite {
            path: path?,
            method,
            values: values?,
        }))
    }

    /// The values of the data: their names are below a base, or whole paths.
    fn values(&mut self, base: Option<Path>, is_required: bool) -> Option<PathData> {
        self.check_length();
        let given = match self.taken(self.draft.data, is_required, Lwm2mField::Data(None))? {
            Some(RawData::Values(given)) => given,
            Some(RawData::Text(_)) => return self.kept(Err(Lwm2mFault::NoValues)),
            None => return Some(Box::default()),
        };
        let fits = is_count(given.len()) || given.is_empty() && !is_required;
        self.check(fits, Lwm2mFault::Count(Lwm2mField::Data(None)));
        let mut values: Vec<(Path, Box<str>)> = Vec::new();
        for (name, text) in given {
            let path = match base {
                Some(base) => Path::parse(&format!("{base}/{name}")),
                None => Path::parse(name),
            };
            let resource = path.ok().filter(|path| path.to_resource().is_some());
            let overlaps = |path: Path| {
                let mut others = values.iter().map(|(other, _)| *other);
                others.any(|other| other.contains(path) || path.contains(other))
            };
            match (resource, base) {
                (Some(path), _) if overlaps(path) => {
                    self.faults.push(Lwm2mFault::Overlap(name.as_str().into()));
                }
                (Some(path), _) => values.push((path, text.as_str().into())),
                (None, Some(_)) => {
                    self.faults
                        .push(Lwm2mFault::ResourceName(name.as_str().into()));
                }
                (None, None) => self
                    .faults
                    .push(Lwm2mFault::ValuePath(name.as_str().into())),
            }
        }
        values.sort_by_key(|(path, _)| *path);
        Some(values.into())
    }

    /// The attributes of paths, if these are known; no path stands for everything.
    fn attributes(&mut self, paths: Option<&[Path]>, is_required: bool) -> Option<Attributes> {
        let field = Lwm2mField::Attributes(None);
        let Some(given) = self.taken(self.draft.attributes, is_required, field)? else {
            return Some(Attributes::default());
        };
        let pairs = given
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_deref()));
        let attributes = match Attributes::parse(pairs) {
            Ok(attributes) => attributes,
            Err(faults) => {
                self.faults
                    .extend(faults.into_iter().map(Lwm2mFault::Attribute));
                return None;
            }
        };
        let is_empty = attributes.is_empty();
        self.check(!is_empty, Lwm2mFault::Count(Lwm2mField::Attributes(None)));
        let names = attributes.iter().map(|attribute| attribute.name);
        let suits = |name: AttributeName, paths: &[Path]| match paths {
            [] => !name.is_about_value(),
            some => some.iter().all(|path| name.suits(*path)),
        };
        let unsuited = names.filter(|name| paths.is_some_and(|paths| !suits(*name, paths)));
        let unsuited = unsuited.map(|name| Lwm2mFault::AttributeLevel(name.as_str().into()));
        self.faults.extend(unsuited);
        Some(attributes)
    }

    fn check_length(&mut self) {
        let length = match self.draft.data {
            RawField::Value(RawData::Text(text)) => text.len(),
            RawField::Value(RawData::Values(values)) => values
                .iter()
                .map(|(name, text)| name.len() + text.len())
                .sum(),
            RawField::Nothing | RawField::Unreadable => 0,
        };
        let max = self.data_max;
        self.check(length <= max, Lwm2mFault::DataTooLong { max });
    }

    /// The value of a field: none if it is unreadable, or missing and required; an empty one if it
    /// is missing and not required.
    fn taken<T>(
        &mut self,
        field: RawField<T>,
        is_required: bool,
        part: Lwm2mField,
    ) -> Option<Option<T>> {
        match field {
            RawField::Value(value) => Some(Some(value)),
            RawField::Nothing if is_required => self.kept(Err(Lwm2mFault::Missing(part))),
            RawField::Nothing => Some(None),
            RawField::Unreadable => None,
        }
    }

    fn kept<T>(&mut self, read: Result<T, Lwm2mFault>) -> Option<T> {
        read.map_err(|fault| self.faults.push(fault)).ok()
    }

    fn check(&mut self, holds: bool, fault: Lwm2mFault) {
        if !holds {
            self.faults.push(fault);
        }
    }
}

impl Lwm2mRequest {
    /// Parses a request on one path that has every field, with data of any length; the error has
    /// every fault.
    pub fn parse(
        operation: Operation,
        address: &str,
        data: Option<&str>,
    ) -> Result<Self, Vec<Lwm2mFault>> {
        let data = data.map(RawData::Text);
        let draft = Lwm2mDraft {
            operation: Some(operation),
            address: RawField::Value(address),
            data: data.map_or(RawField::Nothing, RawField::Value),
            ..Lwm2mDraft::EMPTY
        };
        draft
            .read(usize::MAX)
            .map(|request| request.expect("every part is there and readable"))
    }
}

fn is_given<T>(field: &RawField<T>) -> bool {
    matches!(field, RawField::Value(_))
}

fn is_count(count: usize) -> bool {
    (1..=REQUEST_PATHS_MAX).contains(&count)
}

fn has_address(operation: Operation) -> bool {
    match operation {
        Operation::Read
        | Operation::Write
        | Operation::Execute
        | Operation::ObserveStart
        | Operation::ObserveEnd
        | Operation::Discover
        | Operation::Create
        | Operation::Delete
        | Operation::WriteAttributes
        | Operation::WriteInstance => true,
        Operation::ReadComposite
        | Operation::WriteComposite
        | Operation::ObserveCompositeStart
        | Operation::ObserveCompositeEnd => false,
    }
}

fn has_addresses(operation: Operation) -> bool {
    !has_address(operation) && !has_data(operation)
}

fn has_attributes(operation: Operation) -> bool {
    match operation {
        Operation::WriteAttributes | Operation::ObserveStart | Operation::ObserveCompositeStart => {
            true
        }
        Operation::Read
        | Operation::Write
        | Operation::Execute
        | Operation::ObserveEnd
        | Operation::Discover
        | Operation::Create
        | Operation::Delete
        | Operation::WriteInstance
        | Operation::ReadComposite
        | Operation::WriteComposite
        | Operation::ObserveCompositeEnd => false,
    }
}

fn has_data(operation: Operation) -> bool {
    match operation {
        Operation::Write
        | Operation::Execute
        | Operation::Create
        | Operation::WriteInstance
        | Operation::WriteComposite => true,
        Operation::Read
        | Operation::ObserveStart
        | Operation::ObserveEnd
        | Operation::Discover
        | Operation::Delete
        | Operation::WriteAttributes
        | Operation::ReadComposite
        | Operation::ObserveCompositeStart
        | Operation::ObserveCompositeEnd => false,
    }
}

fn addressed(operation: Operation, path: Path) -> Result<Path, Lwm2mFault> {
    let (fits, kind) = match operation {
        Operation::Read
        | Operation::ObserveStart
        | Operation::ObserveEnd
        | Operation::Discover
        | Operation::WriteAttributes
        | Operation::ReadComposite
        | Operation::WriteComposite
        | Operation::ObserveCompositeStart
        | Operation::ObserveCompositeEnd => return Ok(path),
        Operation::Write => (path.to_resource().is_some(), AddressKind::Resource),
        Operation::Execute if path.is_resource_instance() => (false, AddressKind::WholeResource),
        Operation::Execute => (path.is_resource(), AddressKind::Resource),
        Operation::Create => (path.level() <= Level::Instance, AddressKind::NewInstance),
        Operation::Delete => (
            path.is_instance() || path.is_resource_instance(),
            AddressKind::Deletable,
        ),
        Operation::WriteInstance => (path.is_instance(), AddressKind::Instance),
    };
    match fits {
        true => Ok(path),
        false => Err(Lwm2mFault::Level(kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Operation::{Create, Delete, Execute, ObserveEnd, ObserveStart, Read, Write};

    #[test]
    fn a_resource_and_one_of_its_instances_can_be_read_and_written() {
        for address in ["/3/0/0", "/3/0/6/1"] {
            let path = Path::parse(address).unwrap();
            let read = Lwm2mRequest::Read(path);
            assert_eq!(Lwm2mRequest::parse(Read, address, None), Ok(read));
            let write = Lwm2mRequest::Write(path, "7".into());
            assert_eq!(Lwm2mRequest::parse(Write, address, Some("7")), Ok(write));
        }
    }

    #[test]
    fn anything_can_be_read_observed_and_discovered() {
        for address in ["/3", "/3/0", "/3/0/0", "/3/0/6/1"] {
            let path = Path::parse(address).unwrap();
            let parse = |operation| Lwm2mRequest::parse(operation, address, None);
            assert_eq!(parse(Read), Ok(Lwm2mRequest::Read(path)));
            assert_eq!(
                parse(ObserveStart),
                Ok(Lwm2mRequest::ObserveStart(path, Attributes::default()))
            );
            assert_eq!(parse(ObserveEnd), Ok(Lwm2mRequest::ObserveEnd(path)));
            assert_eq!(parse(Operation::Discover), Ok(Lwm2mRequest::Discover(path)));
        }
    }

    #[test]
    fn an_execution_may_have_arguments_and_needs_none() {
        let path = Path::resource(3, 0, 4);
        for arguments in [None, Some("0='a'")] {
            let execute = Lwm2mRequest::Execute(path, arguments.map(Box::from));
            assert_eq!(
                Lwm2mRequest::parse(Execute, "/3/0/4", arguments),
                Ok(execute)
            );
        }
    }

    #[test]
    fn an_address_that_does_not_suit_the_operation_is_refused() {
        let address = |why| Lwm2mFault::Address(Lwm2mField::Address, why);
        let cases = [
            (Execute, "/3/0", Lwm2mFault::Level(AddressKind::Resource)),
            (
                Execute,
                "/3/0/4/0",
                Lwm2mFault::Level(AddressKind::WholeResource),
            ),
            (Delete, "/3", Lwm2mFault::Level(AddressKind::Deletable)),
            (Delete, "/3/0/0", Lwm2mFault::Level(AddressKind::Deletable)),
            (
                Create,
                "/3/0/0",
                Lwm2mFault::Level(AddressKind::NewInstance),
            ),
            (Read, "3/0/0", address(InvalidPath::NoLeadingSlash)),
            (Read, "/3/0/65536", address(InvalidPath::InvalidSegment)),
            (Read, "/3/0/9/", address(InvalidPath::TrailingSlash)),
            (Read, "/3/0/0/0/0", address(InvalidPath::TooDeep)),
        ];
        for (operation, address, fault) in cases {
            assert_eq!(fault.part(), Lwm2mField::Address);
            let refused = Lwm2mRequest::parse(operation, address, None);
            assert_eq!(refused, Err(vec![fault]), "{operation:?} {address}");
        }
    }

    #[test]
    fn data_that_does_not_suit_the_operation_is_refused() {
        let data = || Lwm2mField::Data(None);
        let cases = [
            (Write, None, Lwm2mFault::Missing(data())),
            (Read, Some(""), Lwm2mFault::Unwanted(data())),
            (ObserveStart, Some("7"), Lwm2mFault::Unwanted(data())),
            (ObserveEnd, Some("7"), Lwm2mFault::Unwanted(data())),
        ];
        for (operation, text, fault) in cases {
            assert_eq!(fault.part(), data());
            let refused = Lwm2mRequest::parse(operation, "/3/0/0", text);
            assert_eq!(refused, Err(vec![fault]));
        }
        let refused = Lwm2mRequest::parse(Create, "/3303", Some("7"));
        assert_eq!(refused, Err(vec![Lwm2mFault::NoValues]));
    }

    #[test]
    fn every_fault_is_reported_at_once() {
        let both = vec![
            Lwm2mFault::Level(AddressKind::Resource),
            Lwm2mFault::Missing(Lwm2mField::Data(None)),
        ];
        assert_eq!(Lwm2mRequest::parse(Write, "/3", None), Err(both));
        let values = named(&[("5700", "1"), ("x", "2"), ("6/1", "3"), ("6", "4")]);
        let draft = Lwm2mDraft {
            operation: Some(Operation::WriteInstance),
            address: RawField::Value("/3303"),
            data: RawField::Value(RawData::Values(&values)),
            attributes: RawField::Value(&[]),
            ..Lwm2mDraft::EMPTY
        };
        let faults = vec![
            Lwm2mFault::Unwanted(Lwm2mField::Attributes(None)),
            Lwm2mFault::Level(AddressKind::Instance),
            Lwm2mFault::ResourceName("x".into()),
            Lwm2mFault::Overlap("6".into()),
        ];
        assert_eq!(draft.read(100), Err(faults));
    }

    #[test]
    fn a_field_is_checked_even_if_others_are_missing() {
        let address = || Lwm2mField::Address;
        let cases = [
            (Lwm2mDraft::EMPTY, vec![Lwm2mFault::Missing(address())]),
            (
                Lwm2mDraft {
                    address: RawField::Value("3"),
                    data: RawField::Value(RawData::Text("long")),
                    ..Lwm2mDraft::EMPTY
                },
                vec![
                    Lwm2mFault::Address(address(), InvalidPath::NoLeadingSlash),
                    Lwm2mFault::DataTooLong { max: 3 },
                ],
            ),
            (
                Lwm2mDraft {
                    operation: Some(Write),
                    ..Lwm2mDraft::EMPTY
                },
                vec![
                    Lwm2mFault::Missing(address()),
                    Lwm2mFault::Missing(Lwm2mField::Data(None)),
                ],
            ),
            (
                Lwm2mDraft {
                    operation: Some(Execute),
                    address: RawField::Value("/3/0/4/0"),
                    data: RawField::Unreadable,
                    ..Lwm2mDraft::EMPTY
                },
                vec![Lwm2mFault::Level(AddressKind::WholeResource)],
            ),
            (
                Lwm2mDraft {
                    operation: Some(Write),
                    address: RawField::Value("/3/0/0"),
                    data: RawField::Unreadable,
                    ..Lwm2mDraft::EMPTY
                },
                vec![],
            ),
        ];
        for (draft, faults) in cases {
            let expected = match faults.is_empty() {
                true => Ok(None),
                false => Err(faults),
            };
            assert_eq!(draft.read(3), expected, "{draft:?}");
        }
    }

    #[test]
    fn values_are_named_by_resource_in_an_instance_and_by_path_elsewhere() {
        let values = named(&[("5701", "Cel"), ("5700", "1")]);
        let read = |operation, address, values| {
            Lwm2mDraft {
                operation: Some(operation),
                address,
                data: RawField::Value(RawData::Values(values)),
                ..Lwm2mDraft::EMPTY
            }
            .read(100)
        };
        let create = Lwm2mRequest::Create(NewInstance {
            object: 3303,
            instance: Some(2),
            values: [
                (Path::resource(3303, 2, 5700), "1".into()),
                (Path::resource(3303, 2, 5701), "Cel".into()),
            ]
            .into(),
        });
        assert_eq!(
            read(Create, RawField::Value("/3303/2"), &values),
            Ok(Some(create))
        );
        let by_path = named(&[("/3/0/14", "+01:00"), ("/1/0/1", "60")]);
        let write = Lwm2mRequest::WriteComposite(
            [
                (Path::resource(1, 0, 1), "60".into()),
                (Path::resource(3, 0, 14), "+01:00".into()),
            ]
            .into(),
        );
        let composite = Operation::WriteComposite;
        assert_eq!(
            read(composite, RawField::Nothing, &by_path),
            Ok(Some(write))
        );
        let refused = read(composite, RawField::Nothing, &values).unwrap_err();
        assert_eq!(refused[0], Lwm2mFault::ValuePath("5701".into()));
    }

    #[test]
    fn every_path_of_an_observation_can_have_its_attributes() {
        let read = |addresses: &[&str], name: &str| {
            let addresses: Vec<String> = addresses.iter().map(|it| (*it).to_owned()).collect();
            let attributes = [(name.to_owned(), Some("5".to_owned()))];
            Lwm2mDraft {
                operation: Some(Operation::ObserveCompositeStart),
                addresses: RawField::Value(&addresses),
                attributes: RawField::Value(&attributes),
                ..Lwm2mDraft::EMPTY
            }
            .read(100)
        };
        for (addresses, name) in [
            (["/3303/0/5700", "/3"].as_slice(), "pmin"),
            (&["/"], "pmin"),
            (&["/3303/0/5700", "/3/0/9"], "gt"),
        ] {
            let Ok(Some(request)) = read(addresses, name) else {
                panic!("{name} suits {addresses:?}");
            };
            let query = request.attributes().unwrap().query();
            assert_eq!(query, format!("{name}=5"));
        }
        for addresses in [["/3303/0/5700", "/3"].as_slice(), &["/"]] {
            let fault = Lwm2mFault::AttributeLevel("gt".into());
            assert_eq!(read(addresses, "gt"), Err(vec![fault]));
        }
    }

    #[test]
    fn the_root_is_everything_and_stands_alone() {
        let read = |addresses: &[String]| {
            Lwm2mDraft {
                operation: Some(Operation::ReadComposite),
                addresses: RawField::Value(addresses),
                ..Lwm2mDraft::EMPTY
            }
            .read(100)
        };
        let everything = Lwm2mRequest::ReadComposite([].into());
        assert_eq!(read(&["/".to_owned()]), Ok(Some(everything)));
        let faults = read(&["/3".to_owned(), "/".to_owned(), "/3".to_owned()]).unwrap_err();
        let parts: Vec<_> = faults.iter().map(Lwm2mFault::part).collect();
        let expected = [1, 2].map(|place| Lwm2mField::Addresses(Some(place)));
        assert_eq!(parts, expected);
        assert_eq!(
            read(&[]).unwrap_err(),
            [Lwm2mFault::Count(Lwm2mField::Addresses(None))]
        );
    }

    #[test]
    fn a_condition_on_a_value_needs_a_resource() {
        let attributes = [
            ("gt".to_owned(), Some("5".to_owned())),
            ("pmin".to_owned(), None),
        ];
        let read = |address| {
            Lwm2mDraft {
                operation: Some(Operation::WriteAttributes),
                address: RawField::Value(address),
                attributes: RawField::Value(&attributes),
                ..Lwm2mDraft::EMPTY
            }
            .read(100)
        };
        assert!(read("/3303/0/5700").is_ok());
        assert_eq!(
            read("/3303/0"),
            Err(vec![Lwm2mFault::AttributeLevel("gt".into())])
        );
    }

    fn named(values: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        values.iter().map(owned).collect()
    }
}
