//! Cases of `concat@1`.

use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let ids = b.text("type") == "i32";
        let read = |b: &mut CaseBuilder, key: &str| if ids { b.ints(key) } else { b.values(key) };
        let known: Vec<_> = (0..b.count("operands")).map(|index| read(b, &format!("x{index}"))).collect();
        // `order` names the operands by a digit each, as often as they come.
        let order: Vec<usize> = b.text("order").bytes().map(|digit| usize::from(digit - b'0')).collect();
        let parts: Vec<_> = order.into_iter().map(|index| known[index]).collect();
        let y = super::record(b.recorder(), &parts);
        b.output("y", y);
    })
}
