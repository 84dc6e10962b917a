//! Files into archives and out of them: what `builtin://cache` and `builtin://artifact` have in common.
//!
//! [`selection`] finds the files that patterns mean, [`pack`] writes them into an archive, [`unpack`] takes one apart: beside the place where its files
//! belong, and moves them only when all of it was sound. Which name and which link is safe, [`entry`] decides from values.

pub mod entry;
mod moving;
pub mod pack;
pub mod selection;
pub mod unpack;
pub mod untracked;

use std::fmt;
use std::str::FromStr;

/// How an archive is written. It is read by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    #[default]
    Zip,
    TarZstd,
}

impl Format {
    pub fn extension(self) -> &'static str {
        match self {
            Self::Zip => "zip",
            Self::TarZstd => "tar.zst",
        }
    }
}

/// GitLab's words for how much time an archive may take (`CACHE_COMPRESSION_LEVEL`, `ARTIFACT_COMPRESSION_LEVEL`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Level {
    Fastest,
    Fast,
    #[default]
    Default,
    Slow,
    Slowest,
}

/// A word that names no level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of `fastest`, `fast`, `default`, `slow`, `slowest`")]
pub struct UnknownLevel(pub String);

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Self, UnknownLevel> {
        match text {
            "fastest" => Ok(Self::Fastest),
            "fast" => Ok(Self::Fast),
            "" | "default" => Ok(Self::Default),
            "slow" => Ok(Self::Slow),
            "slowest" => Ok(Self::Slowest),
            other => Err(UnknownLevel(other.to_owned())),
        }
    }
}

impl Level {
    /// Of deflate, as zip and gzip use it.
    pub fn of_deflate(self) -> u32 {
        match self {
            Self::Fastest => 1,
            Self::Fast => 3,
            Self::Default => 6,
            Self::Slow => 7,
            Self::Slowest => 9,
        }
    }

    /// Of Zstandard. Above 10 it takes longer than most networks.
    pub fn of_zstd(self) -> i32 {
        match self {
            Self::Fastest => 1,
            Self::Fast => 2,
            Self::Default => 3,
            Self::Slow => 7,
            Self::Slowest => 10,
        }
    }
}

/// What the first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Zip,
    Zstd,
    Gzip,
}

impl Kind {
    pub fn of(first_bytes: &[u8]) -> Option<Self> {
        match first_bytes {
            [b'P', b'K', 3 | 5, 4 | 6, ..] => Some(Self::Zip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zip => "zip",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        })
    }
}
