//! Where caches are kept.

mod bucket;
mod directory;
mod signed;

use crate::inputs::Inputs;
use crate::retry::Trouble;
use crate::settings::Key;
use bucket::{Bucket, BucketSettings};
use directory::Directory;
use signed::SignedObjects;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::NamedTempFile;

/// One of three kinds, as it was asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreSettings {
    Directory(PathBuf),
    Bucket(BucketSettings),
    Signed(SignedObjects),
}

impl StoreSettings {
    /// `None`: what was wrong is among the problems.
    pub(crate) fn of(inputs: Inputs, problems: &mut Vec<String>) -> Option<Self> {
        let given =
            [("directory", !inputs.directory.is_empty()), ("bucket", !inputs.bucket.is_empty()), ("signed", !inputs.signed.is_empty())];
        let given: Vec<&str> = given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect();
        match given.as_slice() {
            ["directory"] => Some(Self::Directory(inputs.directory.into())),
            ["bucket"] => Some(Self::Bucket(BucketSettings::of(inputs))),
            ["signed"] => SignedObjects::of(inputs.signed, problems).map(Self::Signed),
            [] => {
                problems.push("one of `directory`, `bucket` and `signed` says where caches are kept".to_owned());
                None
            }
            several => {
                problems.push(format!("`{}` exclude each other: a cache is kept in one place", several.join("` and `")));
                None
            }
        }
    }
}

/// One of three kinds, ready to be asked.
pub enum Store {
    Directory(Directory),
    Bucket(Bucket),
    Signed(SignedObjects, reqwest::Client),
}

impl Store {
    /// # Errors
    /// The machine gives no client, or the bucket has no sound address.
    pub fn open(settings: &StoreSettings, timeout: Duration) -> Result<Self, Trouble> {
        Ok(match settings {
            StoreSettings::Directory(path) => Self::Directory(Directory::new(path)),
            StoreSettings::Bucket(settings) => Self::Bucket(Bucket::open(settings, timeout)?),
            StoreSettings::Signed(objects) => Self::Signed(objects.clone(), signed::client(timeout)?),
        })
    }

    /// The archive of a key. `None`: there is none.
    /// # Errors
    /// The store does not answer, or answers something else.
    pub async fn fetch(&self, key: &Key) -> Result<Option<File>, Trouble> {
        match self {
            Self::Directory(directory) => directory.fetch(key),
            Self::Bucket(bucket) => bucket.fetch(key.as_str()).await,
            Self::Signed(objects, client) => objects.fetch(key, client).await,
        }
    }

    /// A file to write an archive into, where [`Store::save`] finds it best.
    /// # Errors
    /// None can be made.
    pub fn new_file(&self, key: &Key) -> Result<NamedTempFile, Trouble> {
        match self {
            Self::Directory(directory) => directory.new_file(key),
            Self::Bucket(_) | Self::Signed(..) => temporary_file(),
        }
    }

    /// Makes the archive that of the key, all at once: nobody ever finds half of it.
    /// # Errors
    /// The store does not take it.
    pub async fn save(&self, key: &Key, archive: &NamedTempFile) -> Result<(), Trouble> {
        match self {
            Self::Directory(directory) => directory.save(key, archive),
            Self::Bucket(bucket) => bucket.save(key.as_str(), archive).await,
            Self::Signed(objects, client) => objects.save(key, archive, client).await,
        }
    }
}

fn temporary_file() -> Result<NamedTempFile, Trouble> {
    NamedTempFile::new().map_err(|error| Trouble::lasting(format!("could not make a temporary file: {error}")))
}

/// The bytes of an answer in a file.
async fn to_file<B: AsRef<[u8]>, E: std::fmt::Display>(
    mut content: impl futures::Stream<Item = Result<B, E>> + Unpin,
    shown: impl Fn(E) -> Trouble,
) -> Result<File, Trouble> {
    use futures::StreamExt as _;
    use std::io::{Seek as _, Write as _};
    let fault = |error: std::io::Error| Trouble::lasting(format!("could not write a temporary file: {error}"));
    let mut file = tempfile::tempfile().map_err(fault)?;
    while let Some(chunk) = content.next().await {
        file.write_all(chunk.map_err(&shown)?.as_ref()).map_err(fault)?;
    }
    file.rewind().map_err(fault)?;
    Ok(file)
}
