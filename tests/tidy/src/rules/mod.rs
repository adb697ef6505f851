//! The rules. Each is a name, what to do about a breach, and a check that reports every breach.

mod access;
mod budgets;
mod dependencies;
mod edges;
mod fence;
mod folders;
mod generated;
mod names;
mod text;

use crate::tree::Tree;

/// A rule.
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// What it asks for, and what to do about a breach.
    pub advice: &'static str,
    /// Every breach, as `path:line: what`.
    pub check: fn(&Tree) -> Vec<String>,
}

/// All rules.
pub const RULES: &[Rule] = &[
    budgets::MODULE_DOCS,
    budgets::FILES,
    budgets::FUNCTIONS,
    budgets::WIDTH,
    budgets::EXCEPTIONS,
    names::MODEL_NAMES,
    access::ENVIRONMENT,
    access::BUILD_ENVIRONMENT,
    access::FENCED_CRATES,
    access::THREADS,
    access::PRINTING,
    fence::FENCE,
    fence::SAFETY,
    edges::EDGES,
    dependencies::VERSIONS,
    dependencies::TABLE,
    folders::OPS,
    folders::FORMATS,
    folders::MODELS,
    folders::MAP,
    text::MACHINE,
    text::MARKERS,
    text::SPACE,
    text::SIZES,
    generated::GENERATED,
];

impl Rule {
    /// The rule with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        RULES.iter().find(|rule| rule.name == name)
    }

    /// The whole report, or `None` where the tree keeps the rule.
    pub fn report(&self, tree: &Tree) -> Option<String> {
        let breaches = (self.check)(tree);
        let list = || breaches.iter().map(|breach| format!("\n  {breach}")).collect::<String>();
        (!breaches.is_empty()).then(|| format!("rule {}: {}\n{}", self.name, self.advice, list()))
    }
}

/// The sentences of a check that may give up with one.
fn breaches(result: Result<Vec<String>, String>) -> Vec<String> {
    result.unwrap_or_else(|error| vec![error])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_every_breach_and_the_advice() {
        let tree = Tree::of(&[("a.rs", ""), ("b.rs", "//! Doc\n"), ("c.rs", "use d;\n")]);
        let report = Rule::named("module_docs").unwrap().report(&tree).unwrap();
        for part in ["module_docs", budgets::MODULE_DOCS.advice, "a.rs", "c.rs"] {
            assert!(report.contains(part), "{report}");
        }
        assert!(!report.contains("b.rs"));
        assert_eq!(budgets::MODULE_DOCS.report(&Tree::of(&[])), None);
    }
}
