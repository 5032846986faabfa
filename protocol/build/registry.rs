//! How is the registry's table read, line by line? (RFC 4180, one record to a line)
//!
//! Every field of every line is parsed; an error names the line.

use std::collections::BTreeMap;

const HEADER: &str = "object_id,object_version,object_name,object_instances,resource_id,\
    resource_name,operations,resource_instances,mandatory,type,units";
const COLUMNS: usize = 11;

/// What is wrong with the source, and where.
pub(super) type Fault = String;

/// One line of the source, parsed.
struct Line {
    object_id: u16,
    version: (u8, u8),
    object_name: String,
    object_instances: &'static str,
    resource: ResourceLine,
}

/// One resource; operations, instances and type are named as in `lwm2m`.
pub(super) struct ResourceLine {
    pub(super) id: u16,
    pub(super) name: String,
    pub(super) operations: &'static str,
    pub(super) instances: &'static str,
    pub(super) mandatory: bool,
    pub(super) data_type: Option<&'static str>,
    pub(super) units: String,
}

/// One version of one object, with its resources by number.
pub(super) struct ObjectVersion {
    pub(super) name: String,
    pub(super) instances: &'static str,
    pub(super) resources: BTreeMap<u16, ResourceLine>,
}

/// All versions of all objects by number and version.
pub(super) type Objects = BTreeMap<(u16, (u8, u8)), ObjectVersion>;

/// Reads the whole source.
pub(super) fn read_objects(source: &str) -> Result<Objects, Fault> {
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
    if text.trim().is_empty() {
        return Err("a name is empty".into());
    }
    Ok(text)
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

fn read_data_type(text: &str) -> Result<Option<&'static str>, Fault> {
    match text {
        "" => Ok(None),
        "boolean" => Ok(Some("Boolean")),
        "corelnk" => Ok(Some("CoreLink")),
        "float" => Ok(Some("Float")),
        "integer" => Ok(Some("Integer")),
        "objlnk" => Ok(Some("ObjectLink")),
        "opaque" => Ok(Some("Opaque")),
        "string" => Ok(Some("String")),
        "time" => Ok(Some("Time")),
        "unsigned_integer" => Ok(Some("UnsignedInteger")),
        _ => Err(format!("{text:?} is no type")),
    }
}
