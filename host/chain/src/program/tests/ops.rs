//! Every op's own rules, and what each version defines but no kernel does yet, refused by name through the whole path.

use coli_plugin_api::program::{DomainId, GroupId, OperandRef, Source, Ty, ValueId, WeightId};
use coli_shaders::ops::append::{AppendParams, Rounding};
use coli_shaders::ops::attend::{AttendKind, AttendMask, AttendParams};
use coli_shaders::ops::ew::{EwKind, EwParams, EwRepeat};
use coli_shaders::ops::glu::{GluKind, GluParams};
use coli_shaders::ops::moe::MoeParams;
use coli_shaders::ops::norm::{NormParams, Weighting};
use coli_shaders::ops::rope::{RopeParams, RopeScaling};
use coli_shaders::ops::route::{RouteBias, RouteParams};
use coli_shaders::ops::sample::SampleParams;
use coli_shaders::ops::take::{TakeBy, TakeParams};

use super::*;

fn norm(p: &mut Parts, change: fn(&mut NormParams)) {
    retune(p, LAYER, "norm@1", change);
}
fn rope(p: &mut Parts, change: fn(&mut RopeParams)) {
    retune(p, LAYER, "rope@1", change);
}
fn attend(p: &mut Parts, change: fn(&mut AttendParams)) {
    retune(p, LAYER, "attend@1", change);
}
fn ew(p: &mut Parts, change: fn(&mut EwParams)) {
    retune(p, LAYER, "ew@1", change);
}
fn route(p: &mut Parts, change: fn(&mut RouteParams)) {
    retune(p, LAYER, "route@1", change);
}
fn glu(p: &mut Parts, change: fn(&mut GluParams)) {
    retune(p, LAYER, "glu@1", change);
}

/// Another value of the segment, whole.
fn value(id: u32, ncols: u32) -> OperandRef {
    OperandRef { source: Source::Value(ValueId(id)), col0: 0, ncols }
}

#[test]
fn parameters_have_an_exact_length_and_known_codes() {
    all_refused(&[
        (|p| p.op(LAYER, "norm@1").params.push(0), "layer.0: op 0 norm@1: parameters are 17 bytes, this version has 16"),
        (|p| p.op(LAYER, "norm@1").params.truncate(15), "layer.0: op 0 norm@1: parameters are 15 bytes, this version has 16"),
        (|p| p.op(LAYER, "norm@1").params.clear(), "layer.0: op 0 norm@1: parameters are 0 bytes, this version has 16"),
        (|p| p.op(LAYER, "norm@1").params[0] = 7, "layer.0: op 0 norm@1: parameter `kind`: [7] is not a known NormKind"),
        (|p| p.op(LAYER, "norm@1").params[6] = 2, "layer.0: op 0 norm@1: parameter `zero_centred`: [2] is neither 0 nor 1"),
        (
            |p| p.op(LAYER, "attend@1").params[20] = 9,
            "layer.0: op 7 attend@1: parameter `first`: parameter `kind`: [9] is not a known AttendKind",
        ),
        (|p| p.op(HEAD, "take@1").params[0] = 255, "head: op 0 take@1: parameter `by`: [255] is not a known TakeBy"),
    ]);
}

#[test]
fn append_refuses() {
    all_refused(&[
        (
            |p| retune(p, LAYER, "append@1", |params: &mut AppendParams| params.rounding = Rounding::Bf16),
            "layer.0: op 6 append@1: rounding bf16 not implemented",
        ),
        (|p| p.op(LAYER, "append@1").ins.truncate(1), "op 6 append@1: inputs is 1, expected 2"),
        (|p| p.op(LAYER, "append@1").ins.clear(), "op 6 append@1: 0 inputs, expected 1 to 16"),
        (|p| p.op(LAYER, "append@1").ins[1] = value(2, 8), "op 6 append@1: input 1: width is 8, expected 4"),
        (|p| p.op(LAYER, "append@1").ins[1].ncols = 3, "op 6 append@1: input 1: width is 3, expected 4"),
    ]);
}

#[test]
fn attend_refuses_what_is_not_built() {
    all_refused(&[
        (|p| attend(p, |a| a.first.kind = AttendKind::None), "layer.0: op 7 attend@1: source none not implemented"),
        (|p| attend(p, |a| a.first.kind = AttendKind::List), "op 7 attend@1: parameter `mask`: causal with source list, expected all"),
        (|p| attend(p, |a| a.first.kind = AttendKind::Values), "layer.0: op 7 attend@1: source values not implemented"),
        (|p| attend(p, |a| a.second.kind = AttendKind::Rows), "op 7 attend@1: second source: source rows with mask all not implemented"),
        (|p| attend(p, |a| a.first.mask = AttendMask::Window), "op 7 attend@1: parameter `window`: 0 with mask window"),
        (|p| attend(p, |a| a.first.mask = AttendMask::Distance), "layer.0: op 7 attend@1: source rows with mask distance not implemented"),
        (|p| attend(p, |a| a.first.mask = AttendMask::All), "layer.0: op 7 attend@1: source rows with mask all not implemented"),
        (|p| attend(p, |a| a.sink = true), "op 7 attend@1: 0 weights, expected 1"),
    ]);
}

#[test]
fn attend_refuses_what_does_not_fit() {
    all_refused(&[
        (|p| attend(p, |a| a.first.window = 512), "op 7 attend@1: parameter `window`: 512 with mask causal"),
        (|p| attend(p, |a| a.second.window = 512), "op 7 attend@1: parameter `second`: numbers for a source of kind none"),
        (|p| attend(p, |a| a.kv_heads = 3), "op 7 attend@1: parameter `kv_heads`: 3 does not divide 2 heads"),
        (|p| attend(p, |a| a.heads = 0), "op 7 attend@1: parameter `heads`: 0 is outside 1..=65536"),
        (|p| attend(p, |a| a.kv_heads = 0), "op 7 attend@1: parameter `kv_heads`: 0 is outside 1..=65536"),
        (|p| attend(p, |a| a.heads = 4), "op 7 attend@1: input 0: width is 8, expected 16"),
        (
            |p| attend(p, |a| (a.heads, a.k_width, a.v_width) = (65_536, 65_536, 65_536)),
            "op 7 attend@1: input 0: width is 8, expected 4294967296",
        ),
        (|p| attend(p, |a| a.v_width = 3), "op 7 attend@1: output 0: width is 8, expected 6"),
        (|p| attend(p, |a| a.first.k_col0 = 5), "op 7 attend@1: K: columns 5..9 of a state row of 8"),
        (|p| attend(p, |a| a.first.v_col0 = u32::MAX), "op 7 attend@1: V: columns 4294967295..4294967299 of a state row of 8"),
        (|p| attend(p, |a| a.kv_heads = 2), "op 7 attend@1: V: columns 4..12 of a state row of 8"),
        (|p| attend(p, |a| a.scale = f32::INFINITY), "op 7 attend@1: parameter `scale`: inf is not a finite number"),
    ]);
}

#[test]
fn ew_refuses() {
    all_refused(&[
        (|p| ew(p, |e| e.kind = EwKind::Modulate), "layer.0: op 9 ew@1: 2 inputs, expected 3"),
        (|p| ew(p, |e| e.repeat = EwRepeat::Group), "layer.0: op 9 ew@1: input 1: width is 8, expected 1"),
        (|p| ew(p, |e| e.groups = 2), "op 9 ew@1: parameter `groups`: 2 with repeat none"),
        (|p| ew(p, |e| e.scale = f32::NAN), "op 9 ew@1: parameter `scale`: NaN is not a finite number"),
        (|p| p.op(LAYER, "ew@1").ins[1] = value(3, 4), "op 9 ew@1: input 1: width is 4, expected 8"),
        (|p| p.op(LAYER, "ew@1").ins.truncate(1), "op 9 ew@1: 1 inputs, expected 2"),
    ]);
}

#[test]
fn gather_refuses() {
    all_refused(&[
        (|p| p.op(EMBED, "gather@1").weights[0] = WeightId(10), "embed: op 0 gather@1: output 0: width is 8, expected 6"),
        (|p| p.op(EMBED, "gather@1").weights[0] = WeightId(99), "embed: op 0 gather@1: weight 99 of 23"),
        (|p| p.op(EMBED, "gather@1").weights.clear(), "embed: op 0 gather@1: 0 weights, expected 1"),
        (|p| p.op(HEAD, "norm@1").name = "gather@1".into(), "head: op 1 gather@1: parameters are 16 bytes, this version has 1"),
        (|p| p.segment(EMBED).values[0].ty = Ty::I32, "embed: op 0 gather@1: output 0: type I32, expected F32"),
    ]);
}

#[test]
fn glu_refuses() {
    all_refused(&[
        (|p| glu(p, |g| g.kind = GluKind::Situ), "layer.0: op 16 glu@1: kind situ not implemented"),
        (|p| glu(p, |g| g.limit = 7.0), "op 16 glu@1: parameter `limit`: 7 with kind silu"),
        (|p| glu(p, |g| g.kind = GluKind::SiluClamp), "op 16 glu@1: parameter `limit`: 0 with kind silu clamp"),
        (|p| glu(p, |g| g.limit = -1.0), "op 16 glu@1: parameter `limit`: -1 is outside 0"),
        (|p| p.op(LAYER, "glu@1").ins[1].ncols = 5, "op 16 glu@1: input 1: width is 5, expected 6"),
    ]);
}

#[test]
fn matmul_refuses() {
    all_refused(&[
        (|p| p.op(LAYER, "matmul@1").weights.push(WeightId(3)), "layer.0: op 1 matmul@1: weight 1 is 8x8, expected 1x8"),
        (|p| p.op(LAYER, "matmul@1").weights[0] = WeightId(10), "op 1 matmul@1: weight 0 is 8x6, expected 8x8"),
        (|p| p.op(LAYER, "matmul@1").weights[0] = WeightId(7), "op 1 matmul@1: output 0: width is 8, expected 4"),
        (|p| p.op(LAYER, "matmul@1").weights[0] = WeightId(23), "op 1 matmul@1: weight 23 of 23"),
        (|p| p.op(LAYER, "matmul@1").weights.clear(), "op 1 matmul@1: 0 weights, expected 1 to 2"),
        (|p| p.description.weights[3].shape = vec![8, 9], "op 1 matmul@1: weight 0 is 8x9, expected 8x8"),
        (|p| p.description.weights[3].shape = vec![8], "op 1 matmul@1: output 0: width is 8, expected 1"),
    ]);
}

#[test]
fn moe_refuses() {
    all_refused(&[
        (|p| retune(p, LAYER, "moe@1", |m: &mut MoeParams| m.layer = 2), "layer.0: op 13 moe@1: parameter `layer`: 2 of 2 in the group"),
        (|p| retune(p, LAYER, "moe@1", |m: &mut MoeParams| m.layer = u32::MAX), "op 13 moe@1: parameter `layer`: 4294967295 of 2"),
        (|p| p.op(LAYER, "moe@1").groups[0] = GroupId(1), "layer.0: op 13 moe@1: group 1 of 1"),
        (|p| p.op(LAYER, "moe@1").groups.clear(), "op 13 moe@1: 0 groups, expected 1"),
        (|p| p.op(LAYER, "norm@1").groups.push(GroupId(0)), "op 0 norm@1: 1 groups, expected 0"),
        (|p| p.op(LAYER, "moe@1").ins.swap(1, 2), "op 13 moe@1: input 1: type F32, expected I32"),
        (|p| p.op(LAYER, "moe@1").ins[2].ncols = 1, "op 13 moe@1: input 2: width is 1, expected 2"),
        (|p| p.op(LAYER, "moe@1").ins[0].ncols = 7, "op 13 moe@1: input 0: width is 7, expected 8"),
    ]);
}

#[test]
fn norm_refuses() {
    all_refused(&[
        (|p| norm(p, |n| n.groups = 3), "op 0 norm@1: parameter `groups`: 3 does not divide a width of 8"),
        (|p| norm(p, |n| n.groups = 0), "op 0 norm@1: parameter `groups`: 0 is outside 1..=1048576"),
        (|p| norm(p, |n| n.groups = 1 << 20), "op 0 norm@1: parameter `groups`: 1048576 does not divide a width of 8"),
        (|p| norm(p, |n| n.groups = 2), "op 0 norm@1: weight 0 is 1x8, expected 1x4"),
        (|p| norm(p, |n| n.eps = f32::NAN), "op 0 norm@1: parameter `eps`: NaN is not a finite number"),
        (|p| norm(p, |n| n.eps = 2.0), "op 0 norm@1: parameter `eps`: 2 is outside 0"),
        (|p| norm(p, |n| n.weighting = Weighting::None), "op 0 norm@1: 1 weights, expected 0"),
        (|p| p.op(LAYER, "norm@1").weights.push(WeightId(1)), "op 0 norm@1: 2 weights, expected 1"),
        (|p| p.op(LAYER, "norm@1").weights[0] = WeightId(3), "op 0 norm@1: weight 0 is 8x8, expected 1x8"),
        (|p| p.segment(LAYER).values[1].width = 9, "op 0 norm@1: output 0: width is 9, expected 8"),
    ]);
}

#[test]
fn rope_refuses() {
    fn turned(p: &mut Parts, range: (u32, u32)) {
        retune(p, LAYER, "rope@1", |r: &mut RopeParams| (r.start, r.end) = range);
    }
    all_refused(&[
        (
            |p| rope(p, |r| r.scaling = RopeScaling::Yarn),
            "op 4 rope@1: parameter `context_original`: 0 with scaling yarn, expected at least 1",
        ),
        (|p| rope(p, |r| r.factor = 4.0), "op 4 rope@1: parameter `factor`: 4 with scaling none, expected 1"),
        (
            |p| rope(p, |r| r.context_original = 4096),
            "op 4 rope@1: parameters `context_original`, `beta_fast`, `beta_slow`: numbers for yarn",
        ),
        (|p| rope(p, |r| r.beta_fast = 32.0), "op 4 rope@1: parameters `context_original`, `beta_fast`, `beta_slow`: numbers for yarn"),
        (|p| rope(p, |r| r.beta_slow = 1.0), "op 4 rope@1: parameters `context_original`, `beta_fast`, `beta_slow`: numbers for yarn"),
        (|p| rope(p, |r| r.axes = 3), "layer.0: op 4 rope@1: 3 axes not implemented"),
        (|p| rope(p, |r| r.axes = 5), "op 4 rope@1: parameter `axes`: 5 is outside 1..=4"),
        (|p| rope(p, |r| r.head_width = 3), "op 4 rope@1: parameter `head_width`: 3 does not divide a width of 8"),
        (|p| rope(p, |r| r.head_width = 1), "op 4 rope@1: parameter `head_width`: 1 is outside 2..=65536"),
        (|p| turned(p, (0, 3)), "op 4 rope@1: parameters `start`, `end`: 0..3 is not an even range inside a head of 4"),
        (|p| turned(p, (2, 2)), "op 4 rope@1: parameters `start`, `end`: 2..2 is not an even range"),
        (|p| turned(p, (4, 2)), "op 4 rope@1: parameters `start`, `end`: 4..2 is not an even range"),
        (|p| turned(p, (2, 6)), "op 4 rope@1: parameters `start`, `end`: 2..6 is not an even range"),
        (|p| turned(p, (1, u32::MAX)), "op 4 rope@1: parameters `start`, `end`: 1..4294967295 is not an even range"),
        (|p| rope(p, |r| r.theta = f64::NAN), "op 4 rope@1: parameter `theta`: NaN is not a finite number"),
        (|p| rope(p, |r| r.theta = 0.5), "op 4 rope@1: parameter `theta`: 0.5 is outside 1"),
        (|p| p.op(LAYER, "rope@1").ins[1] = value(2, 8), "op 4 rope@1: input 1: type F32, expected I32"),
    ]);
}

#[test]
fn route_refuses() {
    all_refused(&[
        (|p| route(p, |r| r.bias = RouteBias::Pick), "layer.0: op 12 route@1: 0 weights, expected 1"),
        (|p| route(p, |r| r.bias = RouteBias::ByModality), "layer.0: op 12 route@1: bias by modality not implemented"),
        (|p| route(p, |r| r.groups = 3), "layer.0: op 12 route@1: parameter `groups`: 3 does not divide 4 experts"),
        (|p| route(p, |r| r.groups_kept = 2), "layer.0: op 12 route@1: parameter `groups_kept`: 2 of 1 groups"),
        (|p| route(p, |r| r.given_ids = true), "layer.0: op 12 route@1: 1 inputs, expected 2"),
        (|p| route(p, |r| r.shared = 1), "layer.0: op 12 route@1: shared columns not implemented"),
        (|p| route(p, |r| r.k = 5), "op 12 route@1: parameter `k`: 5 of 4 experts"),
        (|p| route(p, |r| r.k = 0), "op 12 route@1: parameter `k`: 0 is outside 1..=1024"),
        (|p| route(p, |r| r.k = 3), "op 12 route@1: output 0: width is 2, expected 3"),
        (|p| route(p, |r| r.scale = f32::NEG_INFINITY), "op 12 route@1: parameter `scale`: -inf is not a finite number"),
        (|p| p.op(LAYER, "route@1").outs.swap(0, 1), "op 12 route@1: output 0: type F32, expected I32"),
        (|p| p.op(LAYER, "route@1").outs.truncate(1), "op 12 route@1: 1 outputs, expected 2"),
    ]);
}

#[test]
fn take_and_sample_refuse() {
    all_refused(&[
        (|p| retune(p, HEAD, "take@1", |t: &mut TakeParams| t.by = TakeBy::Index), "head: op 0 take@1: an index operand not implemented"),
        (|p| p.segment(HEAD).values[1].domain = DomainId(0), "head: op 0 take@1: rows of Tokens into rows of Tokens"),
        (|p| p.segment(HEAD).values[1].ty = Ty::I32, "head: op 0 take@1: output 0: type I32, expected F32"),
        (|p| retune(p, HEAD, "sample@1", |s: &mut SampleParams| s.vocab = 12), "head: op 3 sample@1: parameter `vocab`: 12 of 11 logits"),
        (
            |p| {
                p.op(HEAD, "sample@1").ins[0] = value(0, 8);
                p.segment(HEAD).values[4].domain = DomainId(0);
            },
            "head: op 3 sample@1: input 0: rows of Tokens, expected the wanted ones",
        ),
        (|p| p.segment(HEAD).values[4].ty = Ty::F32, "head: op 3 sample@1: output 0: type F32, expected I32"),
    ]);
}

/// The wrong direction, and rows of two kinds in one op.
#[test]
fn rows_of_two_domains_do_not_mix() {
    all_refused(&[
        (|p| p.op(HEAD, "norm@1").ins[0] = value(0, 8), "head: op 1 norm@1: operands of two domains, Tokens and Outs"),
        (|p| p.op(HEAD, "sample@1").ins[0] = value(0, 8), "head: op 3 sample@1: operands of two domains, Tokens and Outs"),
        (
            |p| {
                let mut take = p.op(HEAD, "take@1").clone();
                take.ins[0] = value(2, 8);
                let head = p.segment(HEAD);
                head.values.push(coli_plugin_api::program::ValueDef { domain: DomainId(0), ty: Ty::F32, width: 8 });
                take.outs[0] = ValueId(5);
                head.ops.insert(2, take);
            },
            "head: op 2 take@1: rows of Outs into rows of Tokens",
        ),
    ]);
}
