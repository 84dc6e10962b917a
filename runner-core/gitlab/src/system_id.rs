//! The `system_id`: tells the managers that share one runner token apart.

use std::fmt;

/// `s_` or `r_` and twelve letters or digits: how the program of GitLab writes and accepts it, so that one file serves both.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SystemId(String);

const LENGTH: usize = 12;

impl SystemId {
    /// What stands in a `.runner_system_id`. `None`: it is none, and a new one is made.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let rest = text.strip_prefix("s_").or_else(|| text.strip_prefix("r_"))?;
        (rest.len() == LENGTH && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())).then(|| Self(text.to_owned()))
    }

    /// From HMAC-SHA256 with the machine's id as key and `gitlab-runner` as message: the same after a new installation.
    /// # Panics
    /// Never for a digest of at least six bytes, which all are.
    pub fn of_machine(digest: &[u8]) -> Self {
        let hex: String = digest.iter().take(LENGTH / 2).map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex.len(), LENGTH, "a digest has at least six bytes");
        Self(format!("s_{hex}"))
    }

    /// For a machine that has no id. Only the first twelve numbers count.
    /// # Panics
    /// There are fewer.
    pub fn of_chance(dice: &[u8]) -> Self {
        const LETTERS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        assert!(dice.len() >= LENGTH, "twelve numbers are needed");
        let text: String = dice[..LENGTH].iter().map(|number| char::from(LETTERS[usize::from(*number) % LETTERS.len()])).collect();
        Self(format!("r_{text}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SystemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runner_193_a_valid_id_is_kept_without_the_white_space_and_anything_else_is_none() {
        assert_eq!(SystemId::parse("  s_0123456789ab\n").expect("valid").as_str(), "s_0123456789ab");
        assert_eq!(SystemId::parse("r_ABCdef012345").expect("valid").as_str(), "r_ABCdef012345");
        for text in ["", "s_0123456789abc", "s_0123456789a", "xx s_0123456789ab", "t_0123456789ab", "s_01234567-9ab", "0123456789ab"] {
            assert_eq!(SystemId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn runner_193_what_is_made_is_valid() {
        for id in [SystemId::of_machine(&[0xab; 32]), SystemId::of_chance(&[61, 62, 0, 255, 9, 10, 35, 36, 1, 2, 3, 4])] {
            assert_eq!(SystemId::parse(id.as_str()), Some(id));
        }
        assert_eq!(SystemId::of_machine(&[0x0f; 32]).as_str(), "s_0f0f0f0f0f0f");
    }
}
