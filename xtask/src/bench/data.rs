//! Where does a measured service keep its things? In a directory of the build's, for the system's
//! own place for such things may be in memory, where nothing is durable.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::steps::{Stop, root};

/// A directory that is new, and that goes with this value.
pub(crate) struct Data {
    path: PathBuf,
}

impl Data {
    /// Makes it, without whatever an earlier run left there.
    pub(crate) fn new(name: &str) -> Result<Self, Stop> {
        let path = root().join("target/scale").join(name);
        remove(&path)
            .and_then(|()| fs::create_dir_all(&path))
            .map_err(|error| Stop::Failed(format!("{}: {error}", path.display())))?;
        Ok(Self { path })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is kept there.
    pub(crate) fn bytes(&self) -> Result<f64, Stop> {
        let bytes = bytes_of(&self.path);
        bytes.map_err(|error| Stop::Failed(format!("{}: {error}", self.path.display())))
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        // The next run begins by removing it, and says so if it cannot.
        remove(&self.path).ok();
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn bytes_of(folder: &Path) -> io::Result<f64> {
    let mut bytes = 0.0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += if about.is_dir() {
            bytes_of(&entry.path())?
        } else {
            about.len() as f64
        };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::Data;
    use std::fs;

    #[test]
    fn a_directory_is_new_counted_and_gone() {
        let data = Data::new("test-of-a-directory").unwrap();
        fs::create_dir(data.path().join("inner")).unwrap();
        fs::write(data.path().join("inner/a"), [0; 1_000]).unwrap();
        fs::write(data.path().join("b"), [0; 24]).unwrap();
        assert_eq!(data.bytes().unwrap(), 1_024.0);
        let path = data.path().to_owned();
        drop(data);
        assert!(!path.exists());
    }
}
