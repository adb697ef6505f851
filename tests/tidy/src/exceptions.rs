//! The ratchet: what is over a budget stands in `exceptions.txt` with its present size, and may only shrink.

use std::collections::BTreeMap;

use crate::tree::Tree;

/// Where the list is.
pub const PATH: &str = "tests/tidy/exceptions.txt";

/// What can be over a budget.
pub const KINDS: [&str; 3] = ["file", "function", "width"];

/// One measured thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// Its name in the list: a path, or `path#function`.
    pub key: String,
    /// Its size.
    pub size: usize,
    /// What it may be.
    pub budget: usize,
}

/// What is over its budget and not listed with its present size, and what is listed without need.
pub fn hold(tree: &Tree, kind: &str, unit: &str, figures: &[Figure]) -> Vec<String> {
    let mut over: BTreeMap<&str, &Figure> = BTreeMap::new();
    for figure in figures.iter().filter(|figure| figure.size > figure.budget) {
        let known = over.entry(&figure.key).or_insert(figure);
        // Two functions of one name: the longer one counts.
        if figure.size > known.size {
            *known = figure;
        }
    }
    let listed = entries(tree.text(PATH), kind);
    let new = over.values().filter(|figure| !listed.contains_key(figure.key.as_str()));
    let mut faults: Vec<String> = new.map(|Figure { key, size, budget }| format!("{key}: {size} {unit}, at most {budget}")).collect();
    for (key, allowed) in listed {
        let entry = format!("{PATH}: `{kind} {key} {allowed}`");
        match over.get(key).map(|figure| figure.size) {
            None => faults.push(format!("{entry}: is within the budget now, or gone: remove the entry")),
            Some(size) if size < allowed => faults.push(format!("{entry}: has only {size} {unit} now: lower the number to {size}")),
            Some(size) if size > allowed => faults.push(format!("{key}: grew to {size} {unit}; its entry allows {allowed}")),
            Some(_) => {}
        }
    }
    faults
}

/// The entries of a kind. Lines that are none are [`malformed`]'s business.
fn entries<'a>(list: &'a str, kind: &str) -> BTreeMap<&'a str, usize> {
    list.lines().filter_map(entry).filter(|(found, ..)| *found == kind).map(|(_, key, number)| (key, number)).collect()
}

fn entry(line: &str) -> Option<(&str, &str, usize)> {
    let mut words = line.split_whitespace();
    let entry = (words.next()?, words.next()?, words.next()?.parse().ok()?);
    (KINDS.contains(&entry.0) && words.next().is_none()).then_some(entry)
}

/// Lines that are neither an entry, a comment nor empty.
pub fn malformed(tree: &Tree) -> Vec<String> {
    let lines = tree.text(PATH).lines().enumerate();
    let wrong = lines.filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty() && entry(line).is_none());
    wrong
        .map(|(index, line)| format!("{PATH}:{}: `{line}` is not `kind path number` with a kind of {}", index + 1, KINDS.join(", ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(key: &str, size: usize) -> Figure {
        Figure { key: key.into(), size, budget: 10 }
    }

    #[test]
    fn an_entry_allows_its_number_and_nothing_else() {
        let verdict = |list: &str, figures: &[Figure]| hold(&Tree::of(&[(PATH, list)]), "file", "lines", figures);
        assert_eq!(verdict("", &[figure("a", 10)]), [""; 0]);
        assert_eq!(verdict("", &[figure("a", 11)]), ["a: 11 lines, at most 10"]);
        assert_eq!(verdict("function a 11\n", &[figure("a", 11)]), ["a: 11 lines, at most 10"]);
        assert_eq!(verdict("# why\nfile a 11\n", &[figure("a", 11)]), [""; 0]);
        assert!(verdict("file a 12\n", &[figure("a", 11)])[0].contains("lower the number to 11"));
        assert!(verdict("file a 11\n", &[figure("a", 12), figure("a", 11)])[0].contains("grew to 12"));
        assert!(verdict("file a 11\n", &[figure("a", 9)])[0].contains("remove the entry"));
        assert!(verdict("file b 11\n", &[])[0].contains("remove the entry"));
    }

    #[test]
    fn other_lines_are_refused() {
        let tree = Tree::of(&[(PATH, "# comment\n\nfile a 3\nfile a\nfiles a 3\nwidth a b\nwidth a 3 b\n")]);
        assert_eq!(malformed(&tree).len(), 4);
    }
}
