//! Device form. Few rows: a dispatch for the gates and values of all pairs of a row and a rank, and one for the last matrix and the sum by
//! rank. Many: pairs in the order of their experts first, so that they share what is read of an expert.

use super::Moe;
use crate::contract::RowClass;
use crate::device::{Arg, Dispatch, ExpertShape, Extent, KernelText, Per, Plan, PlanCall, Scratch};
use crate::ops::matmul::product::{Chosen, GEMM, GEMM_MATRIX, GEMV, Gated, MOST_ROWS, Pick, Product, TILE, alike, scratch};

const GROUP: KernelText = KernelText { name: "moe_group", text: include_str!("moe_group.comp"), per: Per::One };
const SUM: KernelText = KernelText { name: "moe_sum", text: include_str!("moe_sum.comp"), per: Per::One };

pub(super) const KERNELS: &[KernelText] = &[GEMV, GEMM, GEMM_MATRIX, GROUP, SUM];

const FAULTS: &[&str] = &["there is no expert {detail}", "expert {detail} is not on the device"];

/// Experts that `moe_group` counts, at most.
const MOST_EXPERTS: u32 = 1024;
/// Rows of a step, at most, whose pairs are not put in order.
const FEW: u32 = 16;

/// Scratch: what is between the matrices, a row of each pair; what is to be added, likewise; groups; pairs in their order.
const HIDDEN: usize = 0;
const PARTS: usize = 1;
const GROUPS: usize = 2;
const PAIRS: usize = 3;

pub(super) fn plan(moe: &Moe, call: &PlanCall<'_>) -> Result<Plan, String> {
    let experts = call.facts.experts(call.groups[0], moe.layer);
    let experts = experts.ok_or_else(|| format!("experts of layer {} differ in shape or format", moe.layer))?;
    let ranks = call.ins[1].width;
    if ranks == 0 {
        return Err("rows choose no expert".into());
    }
    let pairs = call.cap.checked_mul(ranks).ok_or_else(|| format!("{} rows of {ranks} ranks are too many", call.cap))?;
    let (pick, grouped) = pick(&experts, pairs, call);
    let build = Build { moe, call, experts, ranks, pick };
    let mut dispatches = vec![];
    if grouped > 0 {
        dispatches.push(build.group(grouped));
    }
    build.gate_and_up(&mut dispatches)?;
    build.down(&mut dispatches)?;
    let words = |count: u32, width: u32| Scratch { words: u64::from(count) * u64::from(width) };
    let groups = if let Pick::Groups { groups, .. } = pick { groups } else { 0 };
    let scratch = vec![
        words(pairs, experts.gate.rows),
        words(if build.sums() { 1 } else { pairs }, experts.down.rows),
        Scratch { words: 1 + 3 * u64::from(groups) },
        words(if grouped > 0 { pairs } else { 1 }, 1),
    ];
    Ok(Plan { dispatches, scratch, faults: FAULTS, ..Plan::default() })
}

/// How pairs are picked, and how many are in a group at most; 0 where they are not put in order.
fn pick(experts: &ExpertShape, pairs: u32, call: &PlanCall<'_>) -> (Pick, u32) {
    let tiles = call.fast && call.class == RowClass::Prompt;
    if experts.count > MOST_EXPERTS || (call.cap <= FEW && !tiles) {
        return (Pick::Pairs, 0);
    }
    let mean = pairs.div_ceil(experts.count.max(1));
    let per = if tiles { TILE } else { mean.next_power_of_two().clamp(4, MOST_ROWS) };
    let groups = (pairs / per + experts.count).min(pairs);
    (Pick::Groups { groups, per }, per)
}

struct Build<'a> {
    moe: &'a Moe,
    call: &'a PlanCall<'a>,
    experts: ExpertShape,
    ranks: u32,
    pick: Pick,
}

impl Build<'_> {
    /// Whether the last matrix's dispatch adds the ranks too.
    fn sums(&self) -> bool {
        self.pick == Pick::Pairs && self.product(2).sums_ranks(self.call)
    }

    /// A product of pairs by matrix `which` of their experts.
    fn product(&self, which: u32) -> Product {
        let (matrix, share_x) = match which {
            0 => (self.experts.gate, self.ranks),
            1 => (self.experts.up, self.ranks),
            _ => (self.experts.down, 1),
        };
        let hidden = scratch(HIDDEN, self.experts.gate.rows);
        let (x, y) = if which < 2 { (vec![Arg::In(0)], hidden) } else { (hidden, scratch(PARTS, matrix.rows)) };
        Product {
            pick: self.pick,
            chosen: Chosen { ranks: self.ranks, share_x, experts: self.experts.count, which },
            glu: self.moe.act.kind as u32,
            limit: self.moe.act.limit,
            ids: vec![Arg::In(1)],
            groups: if self.pick == Pick::Pairs { [Arg::Null; 2] } else { [Arg::Scratch(GROUPS), Arg::Scratch(PAIRS)] },
            ..Product::new(matrix, x, y, Arg::Experts(0, self.moe.layer))
        }
    }

    /// `hidden` becomes `glu(gate x, up x)` for each pair: at once where both matrices are alike and sums are not made by tiles.
    fn gate_and_up(&self, dispatches: &mut Vec<Dispatch>) -> Result<(), String> {
        let up = self.product(1);
        if self.pick == Pick::Pairs && alike(self.experts.gate, self.experts.up) {
            dispatches.push(Product { gated: Gated::Both, ..up }.gemv(self.call)?);
            return Ok(());
        }
        dispatches.push(self.sums_of(&self.product(0))?);
        dispatches.push(self.sums_of(&Product { gated: Gated::Held, ..up })?);
        Ok(())
    }

    /// y becomes the sum of `down hidden` over the ranks.
    fn down(&self, dispatches: &mut Vec<Dispatch>) -> Result<(), String> {
        let down = self.product(2);
        if self.sums() {
            let summed = Product { y: vec![Arg::Out(0)], weights: Some(vec![Arg::In(2)]), ..down };
            dispatches.push(summed.gemv(self.call)?);
            return Ok(());
        }
        dispatches.push(self.sums_of(&down)?);
        let width = self.experts.down.rows;
        dispatches.push(Dispatch {
            kernel: SUM.name.into(),
            constants: vec![64, width, self.ranks],
            args: [scratch(PARTS, width), vec![Arg::In(2), Arg::Out(0)]].concat(),
            grid: [Extent::of(width, 64), Extent::ROWS, Extent::Fixed(1)],
        });
        Ok(())
    }

    /// By the kernels of the mode and the class; pairs that are not in order have those of exact mode alone.
    fn sums_of(&self, product: &Product) -> Result<Dispatch, String> {
        if self.pick == Pick::Pairs { product.gemv(self.call) } else { product.dispatch(self.call, false) }
    }

    /// Puts the pairs in order, in groups of `per`.
    fn group(&self, per: u32) -> Dispatch {
        let invocations = self.call.device.invocations.min(256);
        let own = self.experts.count.div_ceil(invocations);
        Dispatch {
            kernel: GROUP.name.into(),
            constants: vec![invocations, self.experts.count, self.ranks, per, own],
            args: vec![Arg::In(1), Arg::Scratch(GROUPS), Arg::Scratch(PAIRS)],
            grid: [Extent::Fixed(1), Extent::Fixed(1), Extent::Fixed(1)],
        }
    }
}
