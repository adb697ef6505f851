//! The nearest known name to one that is not known.

/// The name that most likely was meant: the one the fewest edits away, if that is at most a third of its length; the first of equals.
pub fn nearest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let best = known.into_iter().map(|name| (distance(text, name), name)).min_by_key(|(edits, _)| *edits)?;
    (best.0 <= best.1.chars().count() / 3).then_some(best.1)
}

/// Insertions, removals and replacements of one character between two texts.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        // `corner` is the cell above and to the left of the one that is written.
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = corner + usize::from(from != *to);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (a, b, edits) in [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("model", "model", 0), ("flaw", "lawn", 2)] {
            assert_eq!(distance(a, b), edits, "{a} {b}");
            assert_eq!(distance(b, a), edits, "{b} {a}");
        }
    }

    #[test]
    fn only_a_near_name_is_suggested() {
        let known = ["model", "demo", "plugin_path"];
        assert_eq!(nearest("modle", known), None, "two edits of five letters are too many");
        assert_eq!(nearest("models", known), Some("model"));
        assert_eq!(nearest("plugins_path", known), Some("plugin_path"));
        assert_eq!(nearest("temperature", known), None);
        assert_eq!(nearest("x", []), None);
    }
}
