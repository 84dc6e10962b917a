//! Linux: how little memory a process that waits can do with.

use std::io::BufRead as _;

/// One heap for all threads. Each thread has one of its own otherwise, of which it touches a few pages of four kilobytes each, and a job process has two
/// threads that hardly ever allocate.
#[expect(unsafe_code, reason = "no safe way to choose how the C library allocates")]
pub fn share_one_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: a number that is read when the next thread first allocates.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Lets go of the code that was needed to start. It stays in the cache of the system, and what is needed again comes back from there, which takes a
/// microsecond for each sixteen pages.
pub fn let_go_of_code() {
    let Ok(maps) = std::fs::File::open("/proc/self/maps") else { return };
    let lines = std::io::BufReader::new(maps).lines().map_while(Result::ok);
    // All first: what reads them is code, too.
    let code: Vec<_> = lines.filter_map(|line| code_of(&line)).collect();
    code.into_iter().for_each(|(start, end)| let_go_of(start, end));
}

/// From where to where this mapping is code of a file that nobody can write to.
fn code_of(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (range, permissions, path) = (words.next()?, words.next()?, words.nth(3)?);
    let (start, end) = range.split_once('-')?;
    let is_code = permissions == "r-xp" && path.starts_with('/');
    is_code.then_some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
}

#[expect(unsafe_code, reason = "rustix has it behind a feature that nothing else needs")]
fn let_go_of(start: usize, end: usize) {
    // SAFETY: the pages belong to a file and were never written, so what is read from them afterwards is what was there before. Advice that is not taken
    // changes nothing.
    unsafe { libc::madvise(std::ptr::with_exposed_provenance_mut(start), end - start, libc::MADV_DONTNEED) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_files_is_let_go_of() {
        let code = "7f5950000000-7f5950010000 r-xp 00026000 fe:00 1234                       /usr/bin/a program";
        assert_eq!(code_of(code), Some((0x7f59_5000_0000, 0x7f59_5001_0000)));
        assert_eq!(code_of("7f5950000000-7f5950010000 r--p 00026000 fe:00 1234   /usr/bin/a"), None, "it may have been written to");
        assert_eq!(code_of("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]"), None);
        assert_eq!(code_of("7ffd1a5f2000-7ffd1a5f4000 r-xp 00000000 00:00 0   [vdso]"), None);
        assert_eq!(code_of("55557562e000-555575654000 rwxp 00000000 00:00 0"), None);
    }

    #[test]
    fn a_program_goes_on_without_the_code_that_it_has_let_go_of() {
        let_go_of_code();
        share_one_heap();
        let sum = std::thread::spawn(|| (0..1000_u64).collect::<Vec<_>>().iter().sum::<u64>());
        assert_eq!(sum.join().unwrap(), 499_500);
    }
}
