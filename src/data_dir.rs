//! Who can read the data directory? Its owner alone.
//!
//! Everything in it is a secret or is sealed by a key in it: directories have mode 0700, files
//! 0600.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

use nix::sys::stat::{Mode, umask};
use tracing::warn;

const GROUP_AND_OTHERS: u32 = 0o077;

/// The bit of a directory that all users share, such as `/tmp`.
const STICKY: u32 = 0o1000;

/// What the service keeps in the data directory.
const OWN: [&str; 3] = ["operator-token", "master-key", "store"];

/// Creates the data directory, or makes an existing one private. From now on everything that the
/// process creates is private.
pub(crate) fn open(path: &Path) -> io::Result<()> {
    make_new_files_private();
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    make_private(path)?;
    for own in OWN {
        match make_all_private(&path.join(own)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            outcome => outcome?,
        }
    }
    Ok(())
}

/// From now on everything that the process creates is private.
pub(crate) fn make_new_files_private() {
    umask(Mode::S_IRWXG | Mode::S_IRWXO);
}

fn make_all_private(path: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(path)?;
    if kind.is_symlink() {
        return Ok(());
    }
    make_private(path)?;
    if kind.is_dir() {
        for entry in fs::read_dir(path)? {
            make_all_private(&entry?.path())?;
        }
    }
    Ok(())
}

fn make_private(path: &Path) -> io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & GROUP_AND_OTHERS == 0 {
        return Ok(());
    }
    let found = format!("{:04o}", mode & 0o7777);
    let outcome = match mode & STICKY {
        0 => fs::set_permissions(path, Permissions::from_mode(mode & !GROUP_AND_OTHERS)),
        _ => Err(io::Error::other("it is shared by all users of the machine")),
    };
    match outcome {
        Ok(()) => warn!(path = %path.display(), found, "access of other users was removed"),
        // A mounted directory may belong to somebody else and be lent to the group.
        Err(error) => {
            warn!(path = %path.display(), found, %error, "other users may have access");
        }
    }
    Ok(())
}
