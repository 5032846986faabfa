//! How does the registry's table of objects become static tables? (data/oma-objects.csv, RFC 4180)
//!
//! Writes `object_tables.rs`: one blob of all names, one row per object version, one row per
//! resource, the rows sorted as the lookups of `lwm2m::model` need them. A malformed line fails the
//! build with the line's number.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs, process};

use registry::{Fault, Objects, ResourceLine, read_objects};

#[path = "build/registry.rs"]
mod registry;

const SOURCE: &str = "data/oma-objects.csv";

/// All names end to end; equal names are stored once.
#[derive(Default)]
struct Blob {
    text: String,
    at_by_name: BTreeMap<String, usize>,
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build/registry.rs");
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
             instances: Instances::{instances}, resources: rows_of({first}, {count}), \
             names: NAMES }},\n"
        );
        for resource in object.resources.values() {
            resource_rows += &write_resource(resource, &mut blob)?;
        }
        first += count;
    }
    let versions = objects.len();
    Ok(format!(
        "pub(super) const NAMES: &str = {:?};\n\
         pub(super) static OBJECTS: [Object<'static>; {versions}] = [\n{object_rows}];\n\
         pub(super) static RESOURCES: [Resource; {first}] = [\n{resource_rows}];\n",
        blob.text
    ))
}

fn write_resource(resource: &ResourceLine, blob: &mut Blob) -> Result<String, Fault> {
    let ResourceLine {
        id,
        operations,
        instances,
        mandatory,
        ..
    } = resource;
    let data_type = match resource.data_type {
        Some(name) => format!("Some(DataType::{name})"),
        None => "None".to_owned(),
    };
    let name = blob.place(&resource.name)?;
    let units = blob.place(&resource.units)?;
    Ok(format!(
        "Resource {{ id: {id}, name: {name}, units: {units}, \
         operations: Operations::{operations}, instances: Instances::{instances}, \
         mandatory: {mandatory}, data_type: {data_type} }},\n"
    ))
}

impl Blob {
    /// Adds a name to the blob and returns the expression that finds it there.
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
