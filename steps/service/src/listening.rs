//! Which ports a container listens on, without a word to it: its service would log a stranger's connection.

use std::collections::BTreeSet;
use std::time::Duration;

/// A connection that takes longer is none.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The ports that a container listens on, as its kernel says. `None`: the kernel is not ours, or does not tell us.
pub fn ports_of(container: &str, pid: u32) -> Option<BTreeSet<u16>> {
    // A process of that number here may be another one than the engine's.
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    if pid == 0 || !groups.contains(container) {
        return None;
    }
    let table = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
    let mut ports = listening(&std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).ok()?);
    ports.extend(listening(&table("tcp6")));
    Some(ports)
}

/// Reads the kernel's table (proc(5), /proc/net/tcp): state 0A listens. What listens on the loopback alone is reached by nobody.
fn listening(table: &str) -> BTreeSet<u16> {
    const LOOPBACK: [&str; 2] = ["0100007F", "00000000000000000000000001000000"];
    let lines = table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (address, port) = fields.next()?.split_once(':')?;
        let state = fields.nth(1)?;
        (state == "0A" && !LOOPBACK.contains(&address)).then(|| u16::from_str_radix(port, 16).ok())?
    });
    lines.collect()
}

/// Whether something takes connections there and keeps them: a proxy in front of a port that nobody listens on takes them, too, and lets go at once.
pub async fn takes_connections(host: &str, port: u16) -> bool {
    let connecting = tokio::net::TcpStream::connect((host, port));
    let Ok(Ok(stream)) = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await else { return false };
    let let_go = async {
        let mut first = [0];
        // A greeting is as good as silence.
        matches!(stream.readable().await.and_then(|()| stream.try_read(&mut first)), Ok(0) | Err(_))
    };
    !tokio::time::timeout(CONNECT_TIMEOUT / 4, let_go).await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_listens_for_others_is_found_in_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
               0: 00000000:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n\
               1: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n\
               2: 020011AC:1F90 010011AC:9C40 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n";
        assert_eq!(listening(table), BTreeSet::from([5432]));
        let six = "h\n0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0:0\n";
        assert_eq!(listening(six), BTreeSet::from([8080]));
        assert_eq!(listening(""), BTreeSet::new());
    }

    #[test]
    fn another_process_of_the_same_number_is_not_the_container() {
        assert_eq!(ports_of("0123456789abcdef", std::process::id()), None);
        assert_eq!(ports_of("0123456789abcdef", 0), None);
    }
}
