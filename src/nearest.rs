//! "Did you mean": the known word that a mistyped one is nearest to. Apart, because commands, settings and adapters all
//! ask for it and should answer alike.

/// The word of `known` that `typed` was most likely meant to be, if any is near enough to be worth naming.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = ((typed.chars().count() + 1) / 3).max(1);
    known
        .into_iter()
        .map(|word| (if word.starts_with(typed) && typed.len() > 2 { 1 } else { distance(typed, word) }, word))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// How many letters must be put in, taken out, changed or swapped with their neighbour.
fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let mut best = (above[j] + usize::from(a != b)).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_recognised() {
        let known = ["break", "breakpoints", "continue", "status"];
        assert_eq!(nearest("brake", known), Some("break"));
        assert_eq!(nearest("braek", known), Some("break"));
        assert_eq!(nearest("contineu", known), Some("continue"));
        assert_eq!(nearest("stat", known), Some("status"));
        assert_eq!(nearest("fly", known), None);
        assert_eq!(nearest("", known), None);
    }
}
