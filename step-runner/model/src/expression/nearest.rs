//! The name that somebody most likely meant.

/// The candidate that is nearest to `wanted`, when one is near: at most one slip in three letters.
/// A slip is a letter that is wrong, missing, too many, or swapped with its neighbour; upper and lower case count as half a slip.
pub fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = wanted.chars().take(LONGEST + 1).collect();
    if wanted.len() > LONGEST {
        return None;
    }
    let allowed = wanted.len().div_ceil(3) * SLIP;
    candidates
        .into_iter()
        .map(|candidate| (distance(&wanted, &candidate.chars().take(LONGEST + 1).collect::<Vec<_>>()), candidate))
        .filter(|(distance, _)| *distance > 0 && *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// ``did you mean `name`?``
pub(super) fn did_you_mean<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(wanted, candidates).map(|name| format!("did you mean `{name}`?"))
}

/// Names of people and files are shorter; the work grows with the square.
const LONGEST: usize = 64;
const SLIP: usize = 2;

fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).map(|length| length * SLIP).collect();
    for (row, &left) in a.iter().enumerate() {
        let mut current = vec![(row + 1) * SLIP];
        for (column, &right) in b.iter().enumerate() {
            let replace = above[column] + cost(left, right);
            let mut best = replace.min(above[column + 1] + SLIP).min(current[column] + SLIP);
            if row > 0 && column > 0 && left == b[column - 1] && a[row - 1] == right {
                best = best.min(before[column - 1] + cost(left, right).min(SLIP));
            }
            current.push(best);
        }
        before = std::mem::replace(&mut above, current);
    }
    above[b.len()]
}

fn cost(left: char, right: char) -> usize {
    match left == right {
        true => 0,
        false if left.to_lowercase().eq(right.to_lowercase()) => SLIP / 2,
        false => SLIP,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slip_in_three_letters_is_near() {
        assert_eq!(nearest("input", ["inputs", "env"]), Some("inputs"));
        assert_eq!(nearest("vesrion", ["version", "verbose"]), Some("version"));
        assert_eq!(nearest("S", ["s", "x"]), Some("s"));
        assert_eq!(nearest("path", ["who", "digest"]), None);
        assert_eq!(nearest("", ["a"]), None);
    }

    #[test]
    fn the_same_name_is_not_a_suggestion() {
        assert_eq!(nearest("env", ["env"]), None);
    }

    #[test]
    fn endless_names_are_not_compared() {
        let long = "x".repeat(100_000);
        assert_eq!(nearest(&long, [long.as_str()]), None);
        assert_eq!(nearest("xx", [long.as_str()]), None);
    }
}
