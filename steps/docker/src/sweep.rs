//! What jobs left that were killed: found by labels, and removed when their owner is dead.

use crate::engine::{Engine, Made};
use crate::owner::{OWNER_LABEL, Owner, STEP_LABEL, Standing, start_of};
use crate::trouble::Trouble;

/// Removes what dead jobs of this machine left. What cannot be removed now is found again the next time.
pub async fn sweep(engine: &Engine) -> Result<usize, Trouble> {
    let here = Owner::of_process(std::process::id());
    let made = engine.all_made().await?;
    let mut removed = 0;
    for left in left_behind(&made, |label| Owner::standing(label, here.as_ref(), start_of)) {
        engine.remove_made(left).await?;
        removed += 1;
    }
    Ok(removed)
}

/// Everything that one step made.
pub async fn remove_step(engine: &Engine, step: &str) -> Result<(), Trouble> {
    for made in engine.made(&format!("{STEP_LABEL}={step}")).await? {
        engine.remove_made(&made).await?;
    }
    Ok(())
}

fn left_behind(made: &[Made], standing: impl Fn(&str) -> Standing) -> impl Iterator<Item = &Made> {
    made.iter().filter(move |made| made.labels.get(OWNER_LABEL).is_some_and(|owner| standing(owner) == Standing::Dead))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Kind;

    #[test]
    fn only_what_the_dead_own_is_removed() {
        let made = |id: &str, owner: Option<&str>| Made {
            kind: Kind::Container,
            id: id.into(),
            labels: owner.map(|owner| (OWNER_LABEL.to_owned(), owner.to_owned())).into_iter().collect(),
        };
        let all = [made("1", Some("dead")), made("2", Some("lives")), made("3", None), made("4", Some("elsewhere"))];
        let standing = |owner: &str| match owner {
            "dead" => Standing::Dead,
            "lives" => Standing::Lives,
            _ => Standing::Unknown,
        };
        let ids: Vec<_> = left_behind(&all, standing).map(|made| made.id.as_str()).collect();
        assert_eq!(ids, ["1"]);
    }
}
