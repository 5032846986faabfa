//! Where are the bytes of firmware images? Each is a file of its directory, named by its id; one
//! that is still being received has another name.

mod pieces;

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::firmware::ImageDigest;
use engine::ids::ImageId;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::image_progress::ImageProgress;

use pieces::{PIECE_BYTES, PieceCache};

/// How the name of a file ends that is still being received.
const UNFINISHED: &str = ".part";

/// Pieces that are read at a time; when a campaign begins, many devices want the same one.
const READ_AT_ONCE: usize = 4;

/// The directory of the images.
#[derive(Clone)]
pub struct ImageFiles {
    directory: Arc<Path>,
    pieces: Arc<PieceCache>,
    reading: Arc<Semaphore>,
    progress: ImageProgress,
}

/// A file that is being received; it is removed unless it is kept.
pub struct ImageUpload {
    file: Option<(File, ImageDigest)>,
    unfinished: PathBuf,
    finished: PathBuf,
    bytes: u64,
}

impl ImageFiles {
    /// The images in a directory, which other nodes may have, too.
    pub fn at(directory: impl AsRef<Path>) -> Self {
        Self {
            directory: directory.as_ref().into(),
            pieces: Arc::default(),
            reading: Arc::new(Semaphore::new(READ_AT_ONCE)),
            progress: ImageProgress::default(),
        }
    }

    /// Makes the directory, and removes every file that is none of these images. Only whoever
    /// receives images may call this, before it does.
    pub fn keep_only(&self, images: &[ImageId]) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let names = images.iter().map(|id| OsString::from(id.to_string()));
        let known: HashSet<OsString> = names.collect();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            if !known.contains(&entry.file_name()) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Begins to receive an image.
    pub async fn receive(&self, id: ImageId) -> io::Result<ImageUpload> {
        let finished = self.path_of(id);
        blocking(move || {
            let mut unfinished = finished.clone().into_os_string();
            unfinished.push(UNFINISHED);
            let unfinished = PathBuf::from(unfinished);
            let file = File::create(&unfinished)?;
            Ok(ImageUpload {
                file: Some((file, ImageDigest::default())),
                unfinished,
                finished,
                bytes: 0,
            })
        })
        .await
    }

    /// Removes an image; one that is not there is removed already.
    pub async fn remove(&self, id: ImageId) -> io::Result<()> {
        let path = self.path_of(id);
        blocking(move || match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        })
        .await
    }

    /// How much of their images devices were given.
    pub fn progress(&self) -> &ImageProgress {
        &self.progress
    }

    /// A part of an image, if it is in memory; a shorter one at the end of a piece.
    pub fn find(&self, id: ImageId, from: u64, bytes: usize) -> Option<Vec<u8>> {
        let piece = self.pieces.find((id, from / PIECE_BYTES))?;
        Some(part_of(&piece, from, bytes))
    }

    /// Reads a part of an image; a shorter one at the end of a piece.
    pub async fn read(&self, id: ImageId, from: u64, bytes: usize) -> io::Result<Vec<u8>> {
        if let Some(part) = self.find(id, from, bytes) {
            return Ok(part);
        }
        let _turn = self.reading.acquire().await.map_err(io::Error::other)?;
        // Somebody else may have read it meanwhile.
        if let Some(part) = self.find(id, from, bytes) {
            return Ok(part);
        }
        let (path, number) = (self.path_of(id), from / PIECE_BYTES);
        let piece: Arc<[u8]> = blocking(move || {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(number * PIECE_BYTES))?;
            let mut piece = Vec::new();
            file.take(PIECE_BYTES).read_to_end(&mut piece)?;
            Ok(piece.into())
        })
        .await?;
        let part = part_of(&piece, from, bytes);
        self.pieces.keep((id, number), piece);
        Ok(part)
    }

    fn path_of(&self, id: ImageId) -> PathBuf {
        self.directory.join(id.to_string())
    }
}

impl ImageUpload {
    /// Writes what was received next.
    pub async fn write(&mut self, piece: impl AsRef<[u8]> + Send + 'static) -> io::Result<()> {
        let Some((mut file, mut digest)) = self.file.take() else {
            return Err(io::Error::other("an earlier piece was not written"));
        };
        let length = piece.as_ref().len();
        let written = blocking(move || {
            file.write_all(piece.as_ref())?;
            digest.update(piece.as_ref());
            Ok((file, digest))
        });
        self.file = Some(written.await?);
        self.bytes += length as u64;
        Ok(())
    }

    /// How much was received.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Keeps the file: when this returns, it is durable. Returns the digest of its bytes.
    pub async fn keep(mut self) -> io::Result<[u8; 32]> {
        let Some((file, digest)) = self.file.take() else {
            return Err(io::Error::other("an earlier piece was not written"));
        };
        let (from, to) = (self.unfinished.clone(), self.finished.clone());
        blocking(move || {
            file.sync_all()?;
            fs::rename(from, &to)?;
            let directory = to.parent().unwrap_or(Path::new("."));
            File::open(directory)?.sync_all()?;
            Ok(digest.finish())
        })
        .await
    }
}

impl Drop for ImageUpload {
    fn drop(&mut self) {
        // After `keep` there is none. One that cannot be removed now is removed at the next start.
        let _ = fs::remove_file(&self.unfinished).is_ok();
    }
}

fn part_of(piece: &[u8], from: u64, bytes: usize) -> Vec<u8> {
    let first = usize::try_from(from % PIECE_BYTES).unwrap_or(usize::MAX);
    let last = first.saturating_add(bytes).min(piece.len());
    piece.get(first..last).unwrap_or_default().to_vec()
}

async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(act).await.map_err(io::Error::other)?
}
