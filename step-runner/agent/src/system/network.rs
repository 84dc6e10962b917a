//! What went over the network of our namespace, but for what stayed on the machine.

use step_model::result::Traffic;

/// `None`: the system does not tell.
pub fn counters() -> Option<Traffic> {
    Some(sum(&std::fs::read_to_string("/proc/self/net/dev").ok()?))
}

/// Lines `eth0: RECEIVED and seven numbers more SENT ...`, behind two of headings.
fn sum(text: &str) -> Traffic {
    let mut sum = Traffic::default();
    for (_, numbers) in text.lines().filter_map(|line| line.split_once(':')).filter(|(name, _)| name.trim() != "lo") {
        let numbers: Vec<u64> = numbers.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        if let (Some(received), Some(sent)) = (numbers.first(), numbers.get(8)) {
            sum.incoming = sum.incoming.saturating_add(*received);
            sum.outgoing = sum.outgoing.saturating_add(*sent);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_device_counts_but_the_loopback() {
        let text = "Inter-|   Receive                            |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     900      10    0    0    0     0          0         0      900      10    0    0    0     0       0          0
  eth0:    1000      10    0    0    0     0          0         0      200       2    0    0    0     0       0          0
  eth1:1      1    0    0    0     0          0         0        2       1    0    0    0     0       0          0
";
        assert_eq!(sum(text), Traffic { incoming: 1001, outgoing: 202 });
        assert_eq!(sum("nonsense"), Traffic::default());
    }
}
