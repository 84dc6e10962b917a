//! What differs between two texts, line by line.

/// A longer text is compared only where it begins to differ.
const LONGEST: usize = 2000;
/// Lines around a difference.
const CONTEXT: usize = 2;

/// A line of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'t> {
    Same(&'t str),
    /// Expected, and not there.
    Missing(&'t str),
    /// There, and not expected.
    Surplus(&'t str),
    /// So many same lines are not shown.
    Left(usize),
}

/// The lines of both texts; long stretches of same lines are left out.
pub fn lines<'t>(expected: &'t str, got: &'t str) -> Vec<Line<'t>> {
    let (expected, got): (Vec<&str>, Vec<&str>) = (expected.split('\n').collect(), got.split('\n').collect());
    let before = expected.iter().zip(&got).take_while(|(left, right)| left == right).count();
    let longest = (expected.len() - before).min(got.len() - before);
    let behind = expected.iter().rev().zip(got.iter().rev()).take(longest).take_while(|(left, right)| left == right).count();
    let mut all: Vec<Line<'t>> = expected[..before].iter().map(|line| Line::Same(line)).collect();
    all.extend(middle(&expected[before..expected.len() - behind], &got[before..got.len() - behind]));
    all.extend(expected[expected.len() - behind..].iter().map(|line| Line::Same(line)));
    shortened(all)
}

/// By the longest common subsequence.
fn middle<'t>(expected: &[&'t str], got: &[&'t str]) -> Vec<Line<'t>> {
    if expected.len().saturating_mul(got.len()) > LONGEST * LONGEST {
        return expected.iter().map(|line| Line::Missing(line)).chain(got.iter().map(|line| Line::Surplus(line))).collect();
    }
    let width = got.len() + 1;
    let mut lengths = vec![0_u32; (expected.len() + 1) * width];
    for left in (0..expected.len()).rev() {
        for right in (0..got.len()).rev() {
            lengths[left * width + right] = if expected[left] == got[right] {
                lengths[(left + 1) * width + right + 1] + 1
            } else {
                lengths[(left + 1) * width + right].max(lengths[left * width + right + 1])
            };
        }
    }
    let (mut left, mut right) = (0, 0);
    let mut lines = Vec::new();
    while left < expected.len() || right < got.len() {
        if left < expected.len() && right < got.len() && expected[left] == got[right] {
            lines.push(Line::Same(expected[left]));
            (left, right) = (left + 1, right + 1);
        } else if right == got.len() || left < expected.len() && lengths[(left + 1) * width + right] >= lengths[left * width + right + 1] {
            lines.push(Line::Missing(expected[left]));
            left += 1;
        } else {
            lines.push(Line::Surplus(got[right]));
            right += 1;
        }
    }
    lines
}

fn shortened(all: Vec<Line<'_>>) -> Vec<Line<'_>> {
    let differs: Vec<usize> = all.iter().enumerate().filter(|(_, line)| !matches!(line, Line::Same(_))).map(|(index, _)| index).collect();
    let is_near = |index: usize| {
        let next = differs.partition_point(|at| *at < index);
        differs.get(next).is_some_and(|at| at - index <= CONTEXT) || next > 0 && index - differs[next - 1] <= CONTEXT
    };
    let mut shown = Vec::new();
    let mut left = 0;
    for (index, line) in all.into_iter().enumerate() {
        if is_near(index) {
            if left > 0 {
                shown.push(Line::Left(std::mem::take(&mut left)));
            }
            shown.push(line);
        } else {
            left += 1;
        }
    }
    if left > 0 {
        shown.push(Line::Left(left));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(expected: &str, got: &str) -> String {
        let line = |line: &Line<'_>| match line {
            Line::Same(text) => format!(" {text}"),
            Line::Missing(text) => format!("-{text}"),
            Line::Surplus(text) => format!("+{text}"),
            Line::Left(count) => format!("~{count}"),
        };
        lines(expected, got).iter().map(line).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn only_what_differs_is_marked() {
        assert_eq!(shown("a\nb\nc", "a\nx\nc"), " a|-b|+x| c");
        assert_eq!(shown("a\nb\nc\nd\ne\nf\ng", "a\nb\nc\nd\ne\nf\nx"), "~4| e| f|-g|+x");
        assert_eq!(shown("a\nc\nd", "a\nb\nc\ne\nd"), " a|+b| c|+e| d");
        assert_eq!(shown("", "a"), "-|+a");
        assert_eq!(shown("a\n", "a"), " a|-");
    }
}
