//! The system's errors in the words of the original, which are those of the Go library.

use std::io::{self, ErrorKind};

/// `no such file or directory`, without a number, the same on every system.
pub fn text(error: &io::Error) -> String {
    let known = match error.kind() {
        ErrorKind::NotFound => "no such file or directory",
        ErrorKind::PermissionDenied if !is_not_permitted(error) => "permission denied",
        ErrorKind::IsADirectory => "is a directory",
        ErrorKind::NotADirectory => "not a directory",
        ErrorKind::ArgumentListTooLong => "argument list too long",
        ErrorKind::ExecutableFileBusy => "text file busy",
        ErrorKind::BrokenPipe => "broken pipe",
        ErrorKind::StorageFull => "no space left on device",
        ErrorKind::QuotaExceeded => "disk quota exceeded",
        ErrorKind::FileTooLarge => "file too large",
        ErrorKind::ReadOnlyFilesystem => "read-only file system",
        ErrorKind::AlreadyExists => "file exists",
        ErrorKind::InvalidInput => "invalid argument",
        _ => return plain(error),
    };
    known.to_owned()
}

/// As the C library says it, without Rust's number and capital.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or_default();
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

#[cfg(unix)]
fn is_not_permitted(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EPERM)
}

#[cfg(not(unix))]
fn is_not_permitted(_error: &io::Error) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn errors_read_as_in_the_original() {
        let text = |number| text(&io::Error::from_raw_os_error(number));
        assert_eq!(text(libc::ENOENT), "no such file or directory");
        assert_eq!(text(libc::EACCES), "permission denied");
        assert_eq!(text(libc::EPERM), "operation not permitted");
        assert_eq!(text(libc::ENOEXEC), "exec format error");
        assert_eq!(text(libc::E2BIG), "argument list too long");
        assert_eq!(text(libc::ENOTDIR), "not a directory");
        assert_eq!(text(libc::ELOOP), "too many levels of symbolic links");
        assert_eq!(text(libc::EINVAL), "invalid argument");
    }
}
