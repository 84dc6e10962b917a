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

/// Lets go of code and constants that were needed until now, and of memory that is free. They stay in the cache of the system, and what is needed again comes back
/// from there, which takes a microsecond for each sixteen pages.
pub fn let_go() {
    give_back_what_is_free();
    let Ok(mappings) = std::fs::File::open("/proc/self/smaps") else { return };
    let lines = std::io::BufReader::new(mappings).lines().map_while(Result::ok);
    // All first: what reads them is code, too.
    let unwritten = unwritten(lines);
    unwritten.into_iter().for_each(|(start, end)| let_go_of(start, end));
}

/// From where to where mappings of files go that nobody can write to, and nobody has: constants in which the loader has put addresses would be lost.
fn unwritten(lines: impl Iterator<Item = String>) -> Vec<(usize, usize)> {
    let mut unwritten = Vec::new();
    let mut last = None;
    for line in lines {
        if let Some(amount) = line.strip_prefix("Anonymous:") {
            unwritten.extend(last.take().filter(|_| amount.trim() == "0 kB"));
        } else if !line.split_ascii_whitespace().next().is_some_and(|word| word.ends_with(':')) {
            last = of_file(&line);
        }
    }
    unwritten
}

fn of_file(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (range, permissions, path) = (words.next()?, words.next()?, words.nth(3)?);
    let (start, end) = range.split_once('-')?;
    let is_constant = matches!(permissions, "r-xp" | "r--p") && path.starts_with('/');
    is_constant.then_some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
}

#[expect(unsafe_code, reason = "no safe way to have the C library give back memory")]
fn give_back_what_is_free() {
    #[cfg(target_env = "gnu")]
    // SAFETY: only memory that nobody has goes back.
    unsafe {
        libc::malloc_trim(0);
    }
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
    fn only_what_is_of_a_file_and_was_never_written_is_let_go_of() {
        let mapping = |line: &str, anonymous: u32| {
            let text = format!("{line}\nSize:                 64 kB\nAnonymous:          {anonymous} kB\nVmFlags: rd ex mr mw me\n");
            unwritten(text.lines().map(str::to_owned))
        };
        let code = "7f5950000000-7f5950010000 r-xp 00026000 fe:00 1234                       /usr/bin/a program";
        assert_eq!(mapping(code, 0), [(0x7f59_5000_0000, 0x7f59_5001_0000)]);
        assert_eq!(mapping(code, 4), [], "somebody has written to it, a debugger perhaps");
        let constants = "7f5950000000-7f5950010000 r--p 00026000 fe:00 1234   /usr/bin/a";
        assert_eq!(mapping(constants, 0), [(0x7f59_5000_0000, 0x7f59_5001_0000)]);
        assert_eq!(mapping(constants, 8), [], "the loader has written to it");
        assert_eq!(mapping("7f5950000000-7f5950010000 rw-p 00026000 fe:00 1234   /usr/bin/a", 0), []);
        assert_eq!(mapping("7ffd1a5f2000-7ffd1a5f4000 r-xp 00000000 00:00 0   [vdso]", 0), []);
        assert_eq!(mapping("55557562e000-555575654000 r--p 00000000 00:00 0", 0), []);
    }

    #[test]
    fn a_program_goes_on_without_what_it_has_let_go_of() {
        let_go();
        share_one_heap();
        let sum = std::thread::spawn(|| (0..1000_u64).collect::<Vec<_>>().iter().sum::<u64>());
        assert_eq!(sum.join().unwrap(), 499_500);
    }
}
