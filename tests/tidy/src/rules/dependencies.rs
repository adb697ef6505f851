//! Crates from outside: where their versions stand, and that each has its reason in docs/decisions/0001-dependencies.md.

use std::collections::BTreeSet;

use super::{Rule, breaches};
use crate::manifest::{Crate, Dependency, For, Workspace};
use crate::tree::Tree;

const RECORD: &str = "docs/decisions/0001-dependencies.md";

pub(super) const VERSIONS: Rule = Rule {
    name: "dependency_versions",
    advice: "write `name.workspace = true`, and the version into the workspace's Cargo.toml; what nobody uses goes out of there",
    check: |tree| breaches(versions(tree)),
};

fn versions(tree: &Tree) -> Result<Vec<String>, String> {
    let workspace = Workspace::read(tree)?;
    let mut found = Vec::new();
    for member in &workspace.crates {
        let own = member.dependencies.iter().filter(|dependency| !dependency.workspace);
        found.extend(own.map(|dependency| format!("{}/Cargo.toml: states {} by itself", member.dir, dependency.name)));
    }
    let used: BTreeSet<&str> =
        workspace.crates.iter().flat_map(|member| &member.dependencies).map(|dependency| dependency.name.as_str()).collect();
    let idle = workspace.shared.iter().filter(|name| !used.contains(name.as_str()) && workspace.named(name).is_none());
    found.extend(idle.map(|name| format!("Cargo.toml: nobody uses {name}")));
    Ok(found)
}

pub(super) const TABLE: Rule = Rule {
    name: "dependency_record",
    advice: "the table in docs/decisions/0001-dependencies.md has one row for each crate from outside, with what uses it and why. Users \
             are folders (`host` is all below it); those behind `tests of`, and those in tests/, use it in tests alone",
    check: |tree| breaches(record(tree)),
};

fn record(tree: &Tree) -> Result<Vec<String>, String> {
    let workspace = Workspace::read(tree)?;
    let rows = rows(tree.text(RECORD));
    let mut found = Vec::new();
    let names: BTreeSet<&str> = workspace.outside().map(|(_, dependency)| dependency.name.as_str()).collect();
    for name in &names {
        let users: Vec<User> = workspace.outside().filter(|(_, dependency)| dependency.name == *name).map(User::of).collect();
        match rows.iter().find(|(row, _)| row == name) {
            None => found.push(format!("{RECORD}: has no row for {name}")),
            Some((_, cell)) => found.extend(compare(&users, &stated(cell)).iter().map(|fault| format!("{RECORD}: {name}: {fault}"))),
        }
    }
    // What only a crate apart uses is no part of any build of ours: a word about it is enough.
    let words: BTreeSet<&str> = tree.text(RECORD).split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_').collect();
    let apart: BTreeSet<&str> = workspace.outside_apart().map(|(_, dependency)| dependency.name.as_str()).collect();
    let unknown = apart.iter().filter(|name| !names.contains(*name) && !words.contains(*name));
    found.extend(unknown.map(|name| format!("{RECORD}: does not say why a crate apart uses {name}")));
    let idle = rows.iter().filter(|(name, _)| !names.contains(name) && !apart.contains(name));
    found.extend(idle.map(|(name, _)| format!("{RECORD}: nobody uses {name}")));
    Ok(found)
}

/// Name and users of each row of the table.
fn rows(document: &str) -> Vec<(&str, &str)> {
    let cells = document.lines().filter(|line| line.starts_with('|')).map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    // Behind the heading and the line under it.
    cells.skip(2).filter_map(|cells| Some((*cells.get(1)?, *cells.get(2)?))).collect()
}

/// Who uses a crate from outside: a folder, or its tests alone.
#[derive(Debug, PartialEq, Eq)]
struct User<'a> {
    dir: &'a str,
    tests: bool,
}

impl<'a> User<'a> {
    fn of((member, dependency): (&'a Crate, &Dependency)) -> Self {
        Self { dir: &member.dir, tests: dependency.purpose == For::Tests || member.dir.starts_with("tests/") }
    }

    /// Whether this user, as the table states it, stands for that one.
    fn covers(&self, user: &User<'_>) -> bool {
        let inside = user.dir.strip_prefix(self.dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.tests == user.tests && (inside || self.dir == "tests")
    }
}

fn stated(cell: &str) -> Vec<User<'_>> {
    let mut tests = false;
    let parts = cell.split(',').map(str::trim).map(|part| {
        let name = part.strip_prefix("tests of ");
        tests |= name.is_some();
        let dir = name.unwrap_or(part);
        User { dir, tests: tests || dir == "tests" || dir.starts_with("tests/") }
    });
    parts.collect()
}

fn compare(users: &[User<'_>], stated: &[User<'_>]) -> Vec<String> {
    let words = |user: &User<'_>| format!("{}{}", if user.tests { "tests of " } else { "" }, user.dir);
    let missing = users.iter().filter(|user| !stated.iter().any(|entry| entry.covers(user)));
    let idle = stated.iter().filter(|entry| !users.iter().any(|user| entry.covers(user)));
    let missing = missing.map(|user| format!("does not name its user {}", words(user)));
    missing.chain(idle.map(|entry| format!("names {}, which does not use it", words(entry)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two crates of the product and one of tests, which use x, y and z.
    fn tree(shared: &str, own: &str, table: &str) -> Tree {
        Tree::of(&[
            ("Cargo.toml", &format!("[workspace]\nmembers = [\"shaders\", \"host/b\", \"tests/c\"]\n[workspace.dependencies]\n{shared}\n")),
            ("shaders/Cargo.toml", "[package]\nname = \"a\"\n[dependencies]\nx.workspace = true\n"),
            ("host/b/Cargo.toml", &format!("[package]\nname = \"b\"\n[dev-dependencies]\nx.workspace = true\na.workspace = true\n{own}\n")),
            ("tests/c/Cargo.toml", "[package]\nname = \"c\"\n[dependencies]\nz.workspace = true\n"),
            ("tests/d/Cargo.toml", "[package]\nname = \"d\"\n[dependencies]\nx = \"1\"\nv-v = \"1\"\n"),
            (RECORD, &format!("# 1\n\n| crate | used by | why |\n|---|---|---|\n{table}\n")),
        ])
    }

    const SHARED: &str = "x = \"1\"\nz = \"1\"\na = { path = \"a\" }";

    #[test]
    fn versions_stand_in_one_place_and_are_used() {
        assert_eq!((VERSIONS.check)(&tree(SHARED, "", "")), [""; 0]);
        assert_eq!((VERSIONS.check)(&tree(SHARED, "y = \"1\"", "")), ["host/b/Cargo.toml: states y by itself"]);
        assert_eq!((VERSIONS.check)(&tree(&format!("{SHARED}\nw = \"1\""), "", "")), ["Cargo.toml: nobody uses w"]);
    }

    #[test]
    fn the_record_has_every_crate_and_its_users() {
        let verdict = |table: &str| (TABLE.check)(&tree(SHARED, "", table));
        let good = "| x | shaders, tests of host/b | why |\n| z | tests/c | why |\n\nd needs v-v.";
        assert_eq!(verdict(good), [""; 0]);
        assert_eq!(verdict("| x | shaders, tests | why |\n| z | tests | why |\n| v-v | tests/d | why |"), [""; 0]);
        assert_eq!(verdict("| x | shaders, tests of host/b | why |\nv-v"), [format!("{RECORD}: has no row for z")]);
        assert_eq!(verdict(&format!("{good}\n| w | host/b | why |")), [format!("{RECORD}: nobody uses w")]);
        let unsaid = verdict(&good.replace("v-v", "v"));
        assert_eq!(unsaid, [format!("{RECORD}: does not say why a crate apart uses v-v")]);
        let expected = ["does not name its user tests of host/b", "names host, which does not use it"];
        assert_eq!(verdict("| x | shaders, host | why |\n| z | tests | why |\nv-v"), expected.map(|fault| format!("{RECORD}: x: {fault}")));
    }
}
