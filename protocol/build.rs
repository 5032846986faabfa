//! How does the registry's table of objects become static tables? (data/oma-objects.csv, RFC 4180)
//!
//! Writes `object_tables.rs`: one blob of all names, one row per object version, one row per
//! resource, the rows sorted as the lookups of `lwm2m::model` need them. A line it does not
//! understand ends the build with the line's number.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, process};

const SOURCE: &str = "data/oma-objects.csv";
const HEADER: &str = "object_id,object_version,object_name,object_instances,resource_id,\
    resource_name,operations,resource_instances,mandatory,type,units";
const COLUMNS: usize = 11;

type Fault = String;

/// One line of the source, understood.
struct Line {
    object_id: u16,
    version: (u8, u8),
    object_name: String,
    object_instances: &'static str,
    resource: ResourceLine,
}

struct ResourceLine {
    id: u16,
    name: String,
    operations: &'static str,
    instances: &'static str,
    mandatory: bool,
    data_type: &'static str,
    units: String,
}

/// One version of one object, with its resources.
struct ObjectVersion {
    name: String,
    instances: &'static str,
    resources: BTreeMap<u16, ResourceLine>,
}

type Objects = BTreeMap<(u16, (u8, u8)), ObjectVersion>;

/// All names end to end; equal names are kept once.
#[derive(Default)]
struct Blob {
    text: String,
    at_by_name: BTreeMap<String, usize>,
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={SOURCE}");
    if let Err(fault) = generate() {
        eprintln!("{SOURCE}: {fault}");
        process::exit(1);
    }
}

fn generate() -> Result<(), Fault> {
    let source = fs::read_to_string(SOURCE).map_err(|error| error.to_string())?;
    let tables = write_tables(&read_objects(&source)?)?;
    let folder = env::var("OUT_DIR").map_err(|error| error.to_string())?;
    fs::write(Path::new(&folder).join("object_tables.rs"), tables)
        .map_err(|error| error.to_string())
}

fn read_objects(source: &str) -> Result<Objects, Fault> {
    let mut lines = source.lines().enumerate();
    if lines.next().map(|(_, header)| header) != Some(HEADER) {
        return Err(format!("the header is not {HEADER}"));
    }
    let mut objects = Objects::new();
    for (index, text) in lines {
        read_line(text)
            .and_then(|line| add(&mut objects, line))
            .map_err(|fault| format!("line {}: {fault}", index + 1))?;
    }
    Ok(objects)
}

fn add(objects: &mut Objects, line: Line) -> Result<(), Fault> {
    let object = objects
        .entry((line.object_id, line.version))
        .or_insert_with(|| ObjectVersion {
            name: line.object_name.clone(),
            instances: line.object_instances,
            resources: BTreeMap::new(),
        });
    if object.name != line.object_name || object.instances != line.object_instances {
        return Err("the object was described differently above".into());
    }
    match object.resources.insert(line.resource.id, line.resource) {
        Some(_) => Err("the resource is listed twice".into()),
        None => Ok(()),
    }
}

fn read_line(text: &str) -> Result<Line, Fault> {
    let fields = split_fields(text)?;
    let fields: [String; COLUMNS] = fields
        .try_into()
        .map_err(|found: Vec<_>| format!("{} fields", found.len()))?;
    let [
        object_id,
        version,
        object_name,
        object_instances,
        resource_id,
        name,
        rest @ ..,
    ] = fields;
    let [operations, resource_instances, mandatory, data_type, units] = rest;
    Ok(Line {
        object_id: read_id(&object_id)?,
        version: read_version(&version)?,
        object_name: read_name(object_name)?,
        object_instances: read_instances(&object_instances)?,
        resource: ResourceLine {
            id: read_id(&resource_id)?,
            name: read_name(name)?,
            operations: read_operations(&operations)?,
            instances: read_instances(&resource_instances)?,
            mandatory: read_mandatory(&mandatory)?,
            data_type: read_data_type(&data_type)?,
            units,
        },
    })
}

/// Splits one line into fields; a quoted field may hold commas, and quotes written twice.
fn split_fields(line: &str) -> Result<Vec<String>, Fault> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let (field, tail) = match rest.strip_prefix('"') {
            Some(quoted) => take_quoted(quoted)?,
            None => take_plain(rest)?,
        };
        fields.push(field);
        match tail.strip_prefix(',') {
            Some(next) => rest = next,
            None if tail.is_empty() => return Ok(fields),
            None => return Err("text follows a closing quote".into()),
        }
    }
}

fn take_quoted(mut rest: &str) -> Result<(String, &str), Fault> {
    let mut field = String::new();
    loop {
        let (part, tail) = rest.split_once('"').ok_or("a quote is not closed")?;
        field.push_str(part);
        match tail.strip_prefix('"') {
            Some(more) => {
                field.push('"');
                rest = more;
            }
            None => return Ok((field, tail)),
        }
    }
}

fn take_plain(rest: &str) -> Result<(String, &str), Fault> {
    let (field, tail) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
    if field.contains('"') {
        return Err("a quote stands inside a plain field".into());
    }
    Ok((field.to_owned(), tail))
}

fn read_id(text: &str) -> Result<u16, Fault> {
    text.parse().map_err(|_| format!("{text:?} is no id"))
}

fn read_version(text: &str) -> Result<(u8, u8), Fault> {
    text.split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
        .ok_or_else(|| format!("{text:?} is no version"))
}

fn read_name(text: String) -> Result<String, Fault> {
    match text.trim().is_empty() {
        true => Err("a name is empty".into()),
        false => Ok(text),
    }
}

fn read_instances(text: &str) -> Result<&'static str, Fault> {
    match text {
        "single" => Ok("Single"),
        "multiple" => Ok("Multiple"),
        _ => Err(format!("{text:?} is neither single nor multiple")),
    }
}

fn read_operations(text: &str) -> Result<&'static str, Fault> {
    match text {
        "" => Ok("None"),
        "R" => Ok("Read"),
        "W" => Ok("Write"),
        "RW" => Ok("ReadWrite"),
        "E" => Ok("Execute"),
        _ => Err(format!("{text:?} are no operations")),
    }
}

fn read_mandatory(text: &str) -> Result<bool, Fault> {
    match text {
        "mandatory" => Ok(true),
        "optional" => Ok(false),
        _ => Err(format!("{text:?} is neither mandatory nor optional")),
    }
}

fn read_data_type(text: &str) -> Result<&'static str, Fault> {
    match text {
        "" => Ok("None"),
        "boolean" => Ok("Some(DataType::Boolean)"),
        "corelnk" => Ok("Some(DataType::CoreLink)"),
        "float" => Ok("Some(DataType::Float)"),
        "integer" => Ok("Some(DataType::Integer)"),
        "objlnk" => Ok("Some(DataType::ObjectLink)"),
        "opaque" => Ok("Some(DataType::Opaque)"),
        "string" => Ok("Some(DataType::String)"),
        "time" => Ok("Some(DataType::Time)"),
        "unsigned_integer" => Ok("Some(DataType::UnsignedInteger)"),
        _ => Err(format!("{text:?} is no type")),
    }
}

fn write_tables(objects: &Objects) -> Result<String, Fault> {
    let mut blob = Blob::default();
    let mut object_rows = String::new();
    let mut resource_rows = String::new();
    let mut first = 0;
    for ((id, (major, minor)), object) in objects {
        let name = blob.place(&object.name)?;
        let count = object.resources.len();
        let instances = object.instances;
        object_rows += &format!(
            "Object {{ id: {id}, version: Version::new({major}, {minor}), name: {name}, \
             instances: Instances::{instances}, first: {first}, count: {count} }},\n"
        );
        for resource in object.resources.values() {
            resource_rows += &write_resource(resource, &mut blob)?;
        }
        first += count;
    }
    let mut out = String::new();
    let faults = |error: std::fmt::Error| error.to_string();
    writeln!(out, "pub(super) static NAMES: &str = {:?};", blob.text).map_err(faults)?;
    let (versions, resources) = (objects.len(), first);
    writeln!(
        out,
        "pub(super) static OBJECTS: [Object; {versions}] = [\n{object_rows}];"
    )
    .map_err(faults)?;
    writeln!(
        out,
        "pub(super) static RESOURCES: [Resource; {resources}] = [\n{resource_rows}];"
    )
    .map_err(faults)?;
    Ok(out)
}

fn write_resource(resource: &ResourceLine, blob: &mut Blob) -> Result<String, Fault> {
    let ResourceLine {
        id,
        operations,
        instances,
        mandatory,
        data_type,
        ..
    } = resource;
    let name = blob.place(&resource.name)?;
    let units = blob.place(&resource.units)?;
    Ok(format!(
        "Resource {{ id: {id}, name: {name}, units: {units}, \
         operations: Operations::{operations}, instances: Instances::{instances}, \
         mandatory: {mandatory}, data_type: {data_type} }},\n"
    ))
}

impl Blob {
    /// Puts a name into the blob and returns the expression that finds it there.
    fn place(&mut self, name: &str) -> Result<String, Fault> {
        let at = match self.at_by_name.get(name) {
            Some(at) => *at,
            None => {
                let at = self.text.len();
                self.text.push_str(name);
                self.at_by_name.insert(name.to_owned(), at);
                at
            }
        };
        let at = u16::try_from(at).map_err(|_| "the names no longer fit 64 KiB")?;
        let length = u8::try_from(name.len()).map_err(|_| format!("{name:?} is too long"))?;
        Ok(format!("Name {{ at: {at}, length: {length} }}"))
    }
}
