//! Where two courses that parted come together again: the shortest way from one to the other, by steps that only one of
//! them has.

/// Steps in a row that are the same before the courses count as together.
const TOGETHER: usize = 3;

/// How many steps of each to pass over until both go the same way; None where they don't within what is given.
///
/// The shortest script of deletions and insertions is found by the greedy algorithm of Myers (1986); the first row of it
/// that is the same in both is where they meet. A row that reaches the end of both may be shorter.
#[must_use]
pub fn meeting(a: &[u32], b: &[u32]) -> Option<(usize, usize)> {
    let path = shortest(a, b)?;
    let mut best: Option<(usize, (usize, usize))> = None;
    for (x, y, length) in path {
        if length >= TOGETHER || (x + length == a.len() && y + length == b.len() && length > 0) {
            return Some((x, y));
        }
        if length > 0 && best.is_none_or(|(known, _)| length > known) {
            best = Some((length, (x, y)));
        }
    }
    best.map(|(_, place)| place)
}

/// The rows that are the same along the shortest script: where each begins in both, and its length.
fn shortest(a: &[u32], b: &[u32]) -> Option<Vec<(usize, usize, usize)>> {
    let mut script = Script { a, b, reached: Vec::new() };
    for changes in 0..=a.len() + b.len() {
        let mut now = Vec::with_capacity(changes + 1);
        for index in 0..=changes {
            let Some((x, y, _)) = script.start(changes, index) else {
                now.push(None);
                continue;
            };
            let length = a[x..].iter().zip(&b[y..]).take_while(|(a, b)| a == b).count();
            now.push(u32::try_from(x + length).ok());
            if x + length == a.len() && y + length == b.len() {
                script.reached.push(now);
                return Some(script.rows(index));
            }
        }
        script.reached.push(now);
    }
    None
}

/// For each number of changes, how far along `a` each diagonal reaches. With so many changes, the diagonal at `index` has
/// `x - y = 2 * index - changes`; None is outside.
struct Script<'a> {
    a: &'a [u32],
    b: &'a [u32],
    reached: Vec<Vec<Option<u32>>>,
}

impl Script<'_> {
    /// Where a diagonal begins: one change beyond what its neighbours reached with one change less, and which of them.
    fn start(&self, changes: usize, index: usize) -> Option<(usize, usize, usize)> {
        let Some(before) = changes.checked_sub(1) else { return Some((0, 0, 0)) };
        let at = |index: usize, more: usize| {
            let x = self.reached.get(before)?.get(index).copied().flatten()? as usize + more;
            let y = (x + changes).checked_sub(2 * (index + more))?;
            (x <= self.a.len() && y <= self.b.len()).then_some((x, y, index))
        };
        let deleted = index.checked_sub(1).and_then(|lower| at(lower, 1));
        at(index, 0).max(deleted)
    }

    /// The rows on the way to a diagonal with all changes, in order.
    fn rows(&self, mut index: usize) -> Vec<(usize, usize, usize)> {
        let mut rows = Vec::new();
        for (changes, reached) in self.reached.iter().enumerate().rev() {
            let (Some((x, y, from)), Some(end)) = (self.start(changes, index), reached[index]) else { break };
            rows.push((x, y, end as usize - x));
            index = from;
        }
        rows.reverse();
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn courses_meet_after_what_only_one_has() {
        assert_eq!(meeting(&[1, 2, 3, 4], &[9, 1, 2, 3, 4]), Some((0, 1)));
        assert_eq!(meeting(&[8, 7, 1, 2, 3, 4], &[1, 2, 3, 4]), Some((2, 0)));
        assert_eq!(meeting(&[8, 1, 2, 3], &[9, 9, 1, 2, 3]), Some((1, 2)));
        assert_eq!(meeting(&[8, 7], &[5, 6]), None);
        assert_eq!(meeting(&[], &[5, 6]), None);
        assert_eq!(meeting(&[8, 1], &[1]), Some((1, 0)));
        // A single step that is the same on the way is no meeting where a longer row follows.
        assert_eq!(meeting(&[8, 1, 7, 2, 3, 4, 5], &[9, 1, 6, 2, 3, 4, 5]), Some((3, 3)));
    }

    /// The rows are as long together as the longest common subsequence.
    #[test]
    fn the_way_is_the_shortest_one() {
        let mut seed = 7_u32;
        let mut next = |below: u32| {
            seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            (seed >> 16) % below
        };
        for _ in 0..300 {
            let mut list = || (0..next(12)).map(|_| next(4)).collect::<Vec<u32>>();
            let (a, b) = (list(), list());
            let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
            for x in 0..a.len() {
                for y in 0..b.len() {
                    table[x + 1][y + 1] =
                        if a[x] == b[y] { table[x][y] + 1 } else { table[x][y + 1].max(table[x + 1][y]) };
                }
            }
            let rows = shortest(&a, &b).unwrap();
            assert_eq!(rows.iter().map(|(.., length)| length).sum::<usize>(), table[a.len()][b.len()], "{a:?} {b:?}");
            for (x, y, length) in rows {
                assert_eq!(a[x..x + length], b[y..y + length]);
            }
        }
    }
}
