//! Patterns with `*` and `?`, as names are chosen by.

/// Whether a text is what a pattern means: `*` stands for any characters, `?` for one.
#[must_use]
pub fn is_like(glob: &str, text: &str) -> bool {
    let (glob, text): (Vec<char>, Vec<char>) = (glob.chars().collect(), text.chars().collect());
    let (mut g, mut t) = (0, 0);
    // Where the last `*` is, and how far it reaches so far.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match glob.get(g) {
            Some('*') => {
                star = Some((g, t));
                g += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                g += 1;
                t += 1;
            }
            _ => {
                let Some((at, reach)) = star else { return false };
                star = Some((at, reach + 1));
                (g, t) = (at + 1, reach + 1);
            }
        }
    }
    glob[g..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn stars_and_question_marks_stand_for_others() {
        for (glob, text) in [
            ("", ""),
            ("*", ""),
            ("*", "abc"),
            ("out*", "output"),
            ("*.result", "command.result"),
            ("st?te", "state"),
            ("*a*b*", "xxaxxbxx"),
            ("grü?", "grün"),
            ("a**", "a"),
        ] {
            assert!(is_like(glob, text), "{glob} {text}");
        }
        for (glob, text) in [("", "a"), ("a", ""), ("out", "output"), ("st?te", "stte"), ("*b", "abc"), ("?", "ab")] {
            assert!(!is_like(glob, text), "{glob} {text}");
        }
        assert!(!is_like(&"*a".repeat(40), &"a".repeat(39)));
    }
}
