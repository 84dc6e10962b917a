//! What a request says that its steps may use, as a message and checked.

use ci_proto::step_runner::Limits as LimitsMessage;
use step_model::limits::{Cores, Limits};

/// Zero is no limit.
/// # Errors
/// What cannot be a limit.
pub(super) fn of_message(message: &LimitsMessage) -> Result<Limits, String> {
    let number = |name: &str, number: i64| {
        let read = u64::try_from(number).map_err(|_| format!("the limit `{name}` is negative: {number}"));
        read.map(|number| Some(number).filter(|number| *number > 0))
    };
    let cpus = match message.cpus {
        0.0 => None,
        cpus => Some(Cores::of(cpus).ok_or_else(|| format!("the limit `cpus` is {cpus}; it is at least 0.01"))?),
    };
    Ok(Limits {
        cpus,
        memory: number("memory", message.memory)?,
        pids: number("pids", message.pids)?,
        disk: number("disk", message.disk)?,
        no_network: message.no_network,
    })
}

/// `None`: there are none.
pub(super) fn message(limits: Limits) -> Option<LimitsMessage> {
    let number = |number: Option<u64>| number.map_or(0, |number| i64::try_from(number).unwrap_or(i64::MAX));
    (!limits.is_empty()).then(|| LimitsMessage {
        cpus: limits.cpus.map(Cores::as_f64).unwrap_or_default(),
        memory: number(limits.memory),
        pids: number(limits.pids),
        disk: number(limits.disk),
        no_network: limits.no_network,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_come_back_as_they_were() {
        let limits = Limits::parse("cpu=1.5,memory=512MiB,pids=100,disk=1GiB,network=none").expect("limits");
        assert_eq!(of_message(&message(limits).expect("a message")), Ok(limits));
        assert_eq!(message(Limits::default()), None);
        assert_eq!(of_message(&LimitsMessage::default()), Ok(Limits::default()), "zero is no limit");
    }

    #[test]
    fn what_cannot_be_a_limit_is_said() {
        let fault = of_message(&LimitsMessage { memory: -1, ..LimitsMessage::default() });
        assert_eq!(fault, Err("the limit `memory` is negative: -1".into()));
        let fault = of_message(&LimitsMessage { cpus: f64::NAN, ..LimitsMessage::default() });
        assert_eq!(fault, Err("the limit `cpus` is NaN; it is at least 0.01".into()));
    }
}
