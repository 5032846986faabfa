//! What do the elements of a definition contain, and which faults do they have?
//!
//! The XML is checked against bounds before it is parsed: the parser compares the attributes and
//! the namespaces of an element pairwise, and reserves an element for each character that could
//! begin one.

mod tree;

use std::collections::BTreeSet;

use roxmltree::Node;

use super::names::Names;
use super::{BYTES_MAX, Definition, DefinitionFault, DefinitionFaultKind, RESOURCES_MAX};
use crate::lwm2m::model::{Instances, Name, Operations, Resource};
use crate::lwm2m::value::DataType;
use crate::lwm2m::version::Version;
use tree::{FaultAt, TreeReader};

/// The elements of an object.
const OBJECT_PARTS: [&str; 10] = [
    "Name",
    "Description1",
    "ObjectID",
    "ObjectURN",
    "LWM2MVersion",
    "ObjectVersion",
    "MultipleInstances",
    "Mandatory",
    "Resources",
    "Description2",
];

/// The elements of a resource.
const ITEM_PARTS: [&str; 8] = [
    "Name",
    "Operations",
    "MultipleInstances",
    "Mandatory",
    "Type",
    "RangeEnumeration",
    "Units",
    "Description",
];

/// Reads a definition.
pub(super) fn read(xml: &[u8]) -> Result<Definition, Vec<DefinitionFault>> {
    if xml.len() > BYTES_MAX {
        let why = format!("the document is longer than {BYTES_MAX} bytes");
        return Err(tree::placed(
            "",
            vec![FaultAt::whole(DefinitionFaultKind::TooMuch, why)],
        ));
    }
    let text = std::str::from_utf8(xml).map_err(|error| {
        let known = xml.get(..error.valid_up_to()).unwrap_or_default();
        let known = String::from_utf8_lossy(known);
        let why = "the document is not UTF-8 from here on".to_owned();
        tree::placed(
            &known,
            vec![FaultAt::new(DefinitionFaultKind::NotXml, known.len(), why)],
        )
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let document = tree::parse(text).map_err(|found| tree::placed(text, vec![found]))?;
    let mut reader = TreeReader::default();
    let definition = read_document(&mut reader, document.root_element());
    match definition {
        Some(definition) if reader.found.is_empty() => Ok(definition),
        Some(_) | None => Err(tree::placed(text, reader.found)),
    }
}

fn read_document(reader: &mut TreeReader, root: Node<'_, '_>) -> Option<Definition> {
    let name = root.tag_name().name();
    if name != "LWM2M" {
        let why = "the root element must be LWM2M";
        reader.note(root, "", DefinitionFaultKind::Unknown, why);
        return None;
    }
    let parts = reader.parts(root, "LWM2M", &["Object"]);
    let object = reader.needed(&parts, "Object")?;
    read_object(reader, object)
}

fn read_object(reader: &mut TreeReader, object: Node<'_, '_>) -> Option<Definition> {
    let parts = reader.parts(object, "Object", &OBJECT_PARTS);
    let id = reader.value(&parts, "ObjectID", number);
    let version = reader.value_or(&parts, "ObjectVersion", Version::new(1, 0), version);
    let name = reader.value(&parts, "Name", name);
    let instances = reader.value(&parts, "MultipleInstances", instances);
    reader.value(&parts, "Mandatory", is_mandatory);
    let items = reader.needed(&parts, "Resources");
    let mut names = Names::default();
    let name = name.and_then(|name| placed(reader, &mut names, object, &name));
    let resources = items.map(|items| read_items(reader, &mut names, items));
    Some(Definition {
        id: id?,
        version: version?,
        name: name?,
        instances: instances?,
        resources: resources?.into(),
        names: names.into_text(),
    })
}

fn read_items(reader: &mut TreeReader, names: &mut Names, items: Node<'_, '_>) -> Vec<Resource> {
    let (known, others) = tree::children(items).partition(|it| it.tag_name().name() == "Item");
    let (known, others): (Vec<_>, Vec<_>) = (known, others);
    for other in others {
        reader.note(
            other,
            "Resources",
            DefinitionFaultKind::Unknown,
            "only Item elements are allowed here",
        );
    }
    if known.is_empty() {
        reader.note(
            items,
            "Resources",
            DefinitionFaultKind::Missing,
            "at least one Item element is required",
        );
    }
    if let Some(first) = known.get(RESOURCES_MAX) {
        let why = format!("an object can have at most {RESOURCES_MAX} resources");
        reader.note(*first, "Resources", DefinitionFaultKind::TooMuch, &why);
    }
    let mut ids = BTreeSet::new();
    let mut resources = Vec::new();
    for item in known.into_iter().take(RESOURCES_MAX) {
        resources.extend(read_item(reader, names, &mut ids, item));
    }
    resources.sort_by_key(|resource: &Resource| resource.id);
    resources
}

fn read_item(
    reader: &mut TreeReader,
    names: &mut Names,
    ids: &mut BTreeSet<u16>,
    item: Node<'_, '_>,
) -> Option<Resource> {
    let id = read_id(reader, ids, item);
    let way = id.map_or("Item".to_owned(), |id| format!("Item[{id}]"));
    let parts = reader.parts(item, &way, &ITEM_PARTS);
    let name = reader.value(&parts, "Name", name);
    let units = reader.value_or(&parts, "Units", String::new(), short);
    let operations = reader.value(&parts, "Operations", operations);
    let instances = reader.value(&parts, "MultipleInstances", instances);
    let mandatory = reader.value(&parts, "Mandatory", is_mandatory);
    let data_type = reader.value(&parts, "Type", data_type);
    let name = name.and_then(|name| placed(reader, names, item, &name));
    let units = units.and_then(|units| placed(reader, names, item, &units));
    Some(Resource {
        id: id?,
        name: name?,
        units: units?,
        operations: operations?,
        instances: instances?,
        mandatory: mandatory?,
        data_type: data_type?,
    })
}

fn read_id(reader: &mut TreeReader, ids: &mut BTreeSet<u16>, item: Node<'_, '_>) -> Option<u16> {
    let Some(text) = item.attribute("ID") else {
        reader.note(
            item,
            "Item",
            DefinitionFaultKind::Missing,
            "the attribute ID is missing",
        );
        return None;
    };
    match number(text.trim()) {
        Ok(id) if ids.insert(id) => Some(id),
        Ok(id) => {
            let why = format!("another resource has the ID {id}");
            reader.note(item, "Item", DefinitionFaultKind::Repeated, &why);
            None
        }
        Err(expected) => {
            let why = format!(
                "the attribute ID must be {expected}, not {}",
                tree::quoted(text)
            );
            reader.note(item, "Item", DefinitionFaultKind::Invalid, &why);
            None
        }
    }
}

fn placed(
    reader: &mut TreeReader,
    names: &mut Names,
    of: Node<'_, '_>,
    name: &str,
) -> Option<Name> {
    let placed = names.place(name).ok();
    if placed.is_none() && !reader.names_are_full {
        reader.names_are_full = true;
        let max = Names::TEXT_MAX;
        let why = format!("all names and units together are longer than {max} bytes");
        reader.note(of, "Object", DefinitionFaultKind::TooMuch, &why);
    }
    placed
}

/// The expected text, for the reader of a fault.
type Expected = String;

fn number(text: &str) -> Result<u16, Expected> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_digits);
    number.ok_or_else(|| "a whole number from 0 to 65535".to_owned())
}

fn version(text: &str) -> Result<Version, Expected> {
    Version::parse(text).map_err(|_| "a version, such as 1.0".to_owned())
}

fn name(text: &str) -> Result<String, Expected> {
    match text.is_empty() {
        true => Err("a name".to_owned()),
        false => short(text),
    }
}

fn short(text: &str) -> Result<String, Expected> {
    match text.len() > Names::LENGTH_MAX {
        true => Err(format!("a text of at most {} bytes", Names::LENGTH_MAX)),
        false => Ok(text.to_owned()),
    }
}

fn instances(text: &str) -> Result<Instances, Expected> {
    match text {
        "Single" => Ok(Instances::Single),
        "Multiple" => Ok(Instances::Multiple),
        _ => Err("Single or Multiple".to_owned()),
    }
}

fn is_mandatory(text: &str) -> Result<bool, Expected> {
    match text {
        "Mandatory" => Ok(true),
        "Optional" => Ok(false),
        _ => Err("Mandatory or Optional".to_owned()),
    }
}

fn operations(text: &str) -> Result<Operations, Expected> {
    match text {
        "" => Ok(Operations::None),
        "R" => Ok(Operations::Read),
        "W" => Ok(Operations::Write),
        "RW" => Ok(Operations::ReadWrite),
        "E" => Ok(Operations::Execute),
        _ => Err("R, W, RW, E or empty".to_owned()),
    }
}

/// Reads a type, in upper or lower case: the registry's own files differ in it. None for an empty
/// text.
fn data_type(text: &str) -> Result<Option<DataType>, Expected> {
    match text.to_ascii_lowercase().as_str() {
        "" => Ok(None),
        "boolean" => Ok(Some(DataType::Boolean)),
        "corelnk" => Ok(Some(DataType::CoreLink)),
        "float" => Ok(Some(DataType::Float)),
        "integer" => Ok(Some(DataType::Integer)),
        "objlnk" => Ok(Some(DataType::ObjectLink)),
        "opaque" => Ok(Some(DataType::Opaque)),
        "string" => Ok(Some(DataType::String)),
        "time" => Ok(Some(DataType::Time)),
        "unsigned integer" => Ok(Some(DataType::UnsignedInteger)),
        _ => Err(
            "String, Integer, Unsigned Integer, Float, Boolean, Opaque, Time, Objlnk, \
                  Corelnk or empty"
                .to_owned(),
        ),
    }
}
