//! The nearest known name to one that is not known.

/// The name that most likely was meant: the one the fewest edits away, if that is at most a third of its length; the first of equals.
pub fn nearest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let best = known.into_iter().map(|name| (distance(text, name), name)).min_by_key(|(edits, _)| *edits)?;
    (best.0 <= best.1.chars().count() / 3).then_some(best.1)
}

/// Insertions, removals and replacements of one character, and swaps of two neighbours, between two texts.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // Row i, column j: the edits between the first i characters of `a` and the first j of `b`.
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut edits = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                edits = edits.min(rows[i - 2][j - 2] + 1);
            }
            row.push(edits);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        let cases = [
            ("", "", 0),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("model", "model", 0),
            ("flaw", "lawn", 2),
            ("tmep", "temp", 1),
            ("ab", "ba", 1),
        ];
        for (a, b, edits) in cases {
            assert_eq!(distance(a, b), edits, "{a} {b}");
            assert_eq!(distance(b, a), edits, "{b} {a}");
        }
    }

    #[test]
    fn only_a_near_name_is_suggested() {
        let known = ["model", "demo", "plugin_path"];
        assert_eq!(nearest("modle", known), Some("model"));
        assert_eq!(nearest("mdl", known), None, "two edits of five letters are too many");
        assert_eq!(nearest("models", known), Some("model"));
        assert_eq!(nearest("plugins_path", known), Some("plugin_path"));
        assert_eq!(nearest("temperature", known), None);
        assert_eq!(nearest("x", []), None);
    }
}
