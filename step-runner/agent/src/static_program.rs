//! What a program needs to know about itself when glibc is linked into it: where names are looked up, and how programs are started.
//!
//! Everywhere else (another C library, or the system's own glibc) there is nothing to do.

/// The first statement of every `main`. A program that has glibc inside would look into the `nsswitch.conf` of the container that it was
/// put into, and load the libraries named there: code of another glibc, or of a stranger. From here on it reads the files of `/etc` and asks
/// DNS, which it has inside.
pub fn pin_name_services() {
    #[cfg(all(target_os = "linux", target_env = "gnu", target_feature = "crt-static"))]
    {
        glibc::pin_name_services();
        glibc::keep_spawn_with_a_directory();
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu", target_feature = "crt-static"))]
#[expect(unsafe_code, reason = "two functions of glibc that no crate offers")]
mod glibc {
    use std::ffi::{CStr, c_char, c_int, c_void};

    unsafe extern "C" {
        fn __nss_configure_lookup(database: *const c_char, line: *const c_char) -> c_int;
        fn posix_spawn_file_actions_addchdir_np(actions: *mut c_void, path: *const c_char) -> c_int;
    }

    const SOURCES: [(&CStr, &CStr); 5] =
        [(c"hosts", c"files dns"), (c"passwd", c"files"), (c"group", c"files"), (c"services", c"files"), (c"protocols", c"files")];

    /// The standard library knows this function as a weak symbol, which a static link drops; then a program with a work directory is
    /// started by fork, 31 ms with 512 MiB in place of 0.5 ms. A use that the optimiser cannot see through keeps it; a `#[used]` static does
    /// not outlive link-time optimisation.
    pub fn keep_spawn_with_a_directory() {
        std::hint::black_box(posix_spawn_file_actions_addchdir_np as *const ());
    }

    pub fn pin_name_services() {
        for (database, sources) in SOURCES {
            // SAFETY: both are texts that end with a zero and live for ever; nobody looks a name up before `main` has begun.
            // It fails only for a database that it does not know, and then that one is not looked up either.
            unsafe { __nss_configure_lookup(database.as_ptr(), sources.as_ptr()) };
        }
    }
}
