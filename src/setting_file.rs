//! What is in the file that a setting names?

use std::io;
use std::path::{Path, PathBuf};

/// The file that a setting names cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {setting} {path}: {source}")]
pub struct UnreadableSettingFile {
    setting: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// Reads the file that a setting names.
pub(crate) fn read(setting: &'static str, path: &Path) -> Result<Vec<u8>, UnreadableSettingFile> {
    std::fs::read(path).map_err(|source| UnreadableSettingFile {
        setting,
        path: path.to_owned(),
        source,
    })
}

/// Reads the file that a setting names, if it names one.
pub(crate) fn read_if_set(
    setting: &'static str,
    path: Option<&Path>,
) -> Result<Option<Vec<u8>>, UnreadableSettingFile> {
    path.map(|path| read(setting, path)).transpose()
}
