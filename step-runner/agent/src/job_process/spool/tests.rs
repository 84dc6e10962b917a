use super::*;

/// A disk with room for so many bytes, and a fault for what does not fit.
#[derive(Debug)]
struct Disk {
    bytes: Vec<u8>,
    room: usize,
    fault: io::ErrorKind,
    /// At most this many bytes by one write.
    piece: usize,
}

impl Append for Disk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fit = bytes.len().min(self.room - self.bytes.len()).min(self.piece);
        if fit == 0 {
            return Err(self.fault.into());
        }
        self.bytes.extend_from_slice(&bytes[..fit]);
        Ok(fit)
    }

    fn shorten(&mut self, length: u64) -> io::Result<()> {
        self.bytes.truncate(usize::try_from(length).unwrap());
        Ok(())
    }
}

fn spool(disk: &mut Disk, framing: Framing, limit: u64) -> Spool<&mut Disk> {
    Spool::over(disk, SpoolSettings { framing, limit }, Reserve::default())
}

impl Append for &mut Disk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (**self).append(bytes)
    }
    fn shorten(&mut self, length: u64) -> io::Result<()> {
        (**self).shorten(length)
    }
}

fn disk(room: usize) -> Disk {
    Disk { bytes: Vec::new(), room, fault: io::ErrorKind::StorageFull, piece: 7 }
}

fn write(spool: &mut Spool<&mut Disk>, text: &str) {
    spool.write(|framer, now, out| framer.output(Stream::Output, text.as_bytes(), now, out));
}

/// Without the times.
fn text(disk: &Disk) -> String {
    let text = std::str::from_utf8(&disk.bytes).unwrap();
    text.split_inclusive('\n').map(|line| if line.len() > 28 && &line[26..28] == "Z " { &line[28..] } else { line }).collect()
}

#[test]
fn the_limit_cuts_the_tail_and_leaves_one_marker() {
    let mut disk = disk(4096);
    let mut spool = spool(&mut disk, Framing::Stamped, 80);
    let extent = spool.extent();
    write(&mut spool, "one\n");
    assert_eq!(*extent.borrow(), Extent { bytes: 36, is_cut: false });
    write(&mut spool, "two\nthree\nfour\n");
    let cut = *extent.borrow();
    write(&mut spool, "more\n");
    spool.finish();
    assert!(cut.is_cut && *extent.borrow() == cut);
    assert_eq!(disk.bytes.len() as u64, cut.bytes);
    assert_eq!(
        text(&disk),
        "01O one\n01O two\n01E step-runner: the log ends here: it has reached its limit of 80 bytes; the job goes on\n"
    );
}

#[test]
fn the_marker_of_a_raw_log_begins_a_line() {
    let mut disk = disk(4096);
    let mut spool = spool(&mut disk, Framing::Raw, 5);
    write(&mut spool, "1234567");
    drop(spool);
    assert_eq!(text(&disk), "12345\nstep-runner: the log ends here: it has reached its limit of 5 bytes; the job goes on\n");
}

#[test]
fn a_full_disk_ends_the_log_with_a_marker_between_lines() {
    for (fault, why) in [(io::ErrorKind::StorageFull, "no space left on device"), (io::ErrorKind::QuotaExceeded, "disk quota exceeded")] {
        let mut disk = Disk { fault, ..disk(100) };
        let mut spool = spool(&mut disk, Framing::Stamped, u64::MAX);
        write(&mut spool, "one\n");
        write(&mut spool, "two\nthree\n");
        // Somebody makes room; the log has ended all the same.
        let bytes = disk.bytes.clone();
        assert!(bytes.starts_with(b"20"), "{why}");
        assert_eq!(text(&disk), "01O one\n01O two\n", "no room for the marker, and no part of a line");
    }
    let mut disk = disk(230);
    let mut spool = spool(&mut disk, Framing::Stamped, u64::MAX);
    let extent = spool.extent();
    write(&mut spool, "one\n");
    write(&mut spool, &format!("two\n{}\nthree\n", "x".repeat(400)));
    write(&mut spool, "four\n");
    assert!(extent.borrow().is_cut);
    assert_eq!(
        text(&disk),
        "01O one\n01O two\n01E step-runner: the log ends here: it could not be written (no space left on device); the job goes on\n"
    );
}

#[test]
fn what_was_told_of_never_goes() {
    for room in 0..400 {
        let mut disk = disk(room);
        let mut spool = spool(&mut disk, Framing::Raw, u64::MAX);
        let extent = spool.extent();
        let mut told = Vec::new();
        for number in 0..40 {
            write(&mut spool, &format!("line {number}\n"));
            told.push(*extent.borrow());
        }
        drop(spool);
        assert!(told.is_sorted_by_key(|extent| extent.bytes), "{room}: {told:?}");
        assert_eq!(told.last().unwrap().bytes, disk.bytes.len() as u64, "{room}");
        let whole: String = (0..40).map(|number| format!("line {number}\n")).collect();
        let text = text(&disk);
        let kept = text.split("step-runner:").next().unwrap_or_default().trim_end();
        assert!(whole.starts_with(kept), "{room}: {text}");
    }
}

#[test]
fn the_file_is_private_and_is_made_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut spool = Spool::create(directory.path(), directory.path(), SpoolSettings::default()).unwrap();
    let _ = spool.output(StepId(1), Stream::Output, b"a\nb");
    assert!(spool.holds_back());
    spool.quiet();
    assert!(!spool.holds_back());
    spool.said(StepId(1), "Running step \"x\"", false);
    spool.finish();
    let path = directory.path().join(FILE);
    let length = std::fs::metadata(&path).unwrap().len();
    assert_eq!(*spool.extent().borrow(), Extent { bytes: length, is_cut: false });
    assert_eq!(length, 32 * 3 + "a\nb\nRunning step \"x\"\n".len() as u64);
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions()) & 0o777, 0o600);
    assert!(Spool::create(directory.path(), directory.path(), SpoolSettings::default()).is_err());
}
