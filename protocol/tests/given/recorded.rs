//! How is a recorded payload read from its file under `vectors`?

use std::fs;
use std::path::{Path as FilePath, PathBuf};

use protocol::lwm2m::model;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::{DataType, Value};
use protocol::lwm2m::version::Version;

/// The files of a folder, by name.
pub(crate) fn files_of(folder: &str) -> Vec<PathBuf> {
    let vectors = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let entries = fs::read_dir(vectors.join(folder)).expect("the vectors are in the repository");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("the folder is readable").path())
        .collect();
    files.sort();
    files
}

/// Reads a line such as `/3/0/9 INTEGER 100`; an empty text is left out.
pub(crate) fn value_of(line: &str) -> (Path, Value) {
    let mut parts = line.splitn(3, ' ');
    let path = parts
        .next()
        .and_then(|path| path.parse().ok())
        .expect("a path");
    let name = parts.next().expect("a type behind the path");
    let known = DataType::ALL
        .into_iter()
        .find(|data_type| data_type.as_str() == name);
    let text = parts.next().unwrap_or_default();
    let value = Value::parse(known.expect("the name of a type"), text);
    (path, value.expect("a value of the type"))
}

/// The type of the resource a path is or is in.
pub(crate) fn type_in_model(path: Path) -> Option<DataType> {
    model::resource(path.object_id(), Version::new(1, 1), path.resource_id()?)?.data_type()
}
