//! Stages on the small model: the bits of one executor whatever the cut, and none where something that crosses is withheld.

use coli_plugin_api::describe::{Keep, RowPart, SegmentName, State};
use coli_plugin_api::program::{Builtin, Input, InputSource, Recording, Ty, ports};
use coli_plugin_api::recorder::{Operand, Recorder};
use coli_shaders::contract::Sampling;
use coli_shaders::ops::attend::AttendParams;
use coli_shaders::ops::{append, attend, ew, gather, matmul, take};

use super::*;
use crate::Row;
use crate::small_model::{CONTEXT, HIDDEN, Numbers, Parts};

const TOKENS: [u32; 12] = [3, 1, 4, 1, 5, 0, 2, 6, 10, 8, 7, 3];

/// A small model with all that can cross. Layer 0 writes a shared state of stride 2, which layer 2 reads. Layer 0 also gives a port of its
/// own to layer 2, past layer 1. Layer 2 reads table rows by the last two tokens. A draft head follows.
fn parts() -> Parts {
    let mut parts = Parts::new(3);
    let d = &mut parts.description;
    let rows = |stride| StateKind::Rows { parts: vec![RowPart { width: HIDDEN, may_round: false }], stride, keep: Keep::All };
    let shared = d.state(State { role: "shared".into(), owner: SegmentName::Layer(0), shared: true, kind: rows(2) });
    let drafts = d.state(State { role: "drafts".into(), owner: SegmentName::Draft(0), shared: false, kind: rows(1) });
    d.segments.push(SegmentName::Draft(0));
    *parts.segment(SegmentName::Layer(0)) = recorded(|r, h| {
        append::record(r, &[h], shared);
        let side = ew::add(r, h, h);
        r.port_out("side", side);
        ew::add(r, side, h)
    });
    let table = parts.embed;
    *parts.segment(SegmentName::Layer(2)) = recorded(|r, h| {
        let side = r.port_in("side", h.domain, Ty::F32, HIDDEN);
        let h = ew::add(r, h, side);
        let mut seen = AttendParams::complete(1, 1, HIDDEN, HIDDEN, 0.3);
        seen.first.v_col0 = 0;
        let seen = attend::record(r, h, shared, seen);
        let h = ew::add(r, h, seen);
        let source = InputSource::Ids { window: 2 };
        let ids = r.input(Input { name: "pair".into(), domain: h.domain, ty: Ty::I32, width: 1, source });
        let row = gather::record(r, ids, table);
        ew::add(r, h, row)
    });
    parts.recordings.push((SegmentName::Draft(0), draft(&parts, drafts)));
    parts
}

/// A segment from stream to stream.
fn recorded(record: impl Fn(&mut Recorder, Operand) -> Operand) -> Recording {
    let mut r = Recorder::default();
    let tokens = r.tokens();
    let h = r.port_in(ports::STREAM, tokens, Ty::F32, HIDDEN);
    let h = record(&mut r, h);
    r.port_out(ports::STREAM, h);
    r.finish().unwrap()
}

/// A draft head: the stream and the next token's row, then attention over all of these.
fn draft(parts: &Parts, state: StateId) -> Recording {
    let mut r = Recorder::default();
    let tokens = r.tokens();
    let h = r.port_in(ports::STREAM, tokens, Ty::F32, HIDDEN);
    let next = r.builtin(tokens, Builtin::NextToken, 1);
    let row = gather::record(&mut r, next, parts.embed);
    let x = ew::add(&mut r, h, row);
    append::record(&mut r, &[x], state);
    let mut params = AttendParams::causal(1, 1, HIDDEN, HIDDEN, 0.3);
    params.first.v_col0 = 0;
    let x = attend::record(&mut r, x, state, params);
    let wanted = take::record(&mut r, x);
    let logits = matmul::record(&mut r, wanted, parts.head);
    r.port_out(ports::DRAFT_LOGITS, logits);
    r.finish().unwrap()
}

/// Ids that depend on the last two tokens.
struct LastTwo;

impl IdSource for LastTwo {
    fn ids(&self, input: &str, window: &[u32]) -> Result<Vec<i64>> {
        assert_eq!(input, "pair");
        assert!((1..=2).contains(&window.len()));
        Ok(vec![window.iter().map(|token| i64::from(*token)).sum::<i64>() % 11])
    }
}

fn cutting(cuts: &[usize], tokens_max: usize, ids: Option<Arc<dyn IdSource>>) -> Cutting {
    let cuts = cuts.into();
    Cutting { cuts, tokens_max, outs_max: 2, page_positions: 4, context: CONTEXT, ids, crew: alone(), fast: None, device: None }
}

fn relay(cuts: &[usize]) -> Relay {
    let program = Arc::new(parts().build().unwrap());
    let weights: Arc<dyn WeightStore> = Arc::new(Numbers::of(program.description()));
    let ids: Option<Arc<dyn IdSource>> = Some(Arc::new(LastTwo));
    let cutting = cutting(cuts, 16, ids);
    let mut relay = Relay::new(program, &weights, &cutting).unwrap();
    relay.poison_scratch();
    relay
}

/// The bits of logits and of the draft's, of all tokens, appended in steps of these sizes.
fn append_all(relay: &mut Relay, conv: ConvId, tokens: &[u32], steps: &[usize]) -> Result<[Vec<u32>; 2]> {
    let mut bits = [vec![], vec![]];
    let mut rest = tokens;
    for count in steps.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (now, later) = rest.split_at((*count).min(rest.len()));
        let start = relay.len(conv).unwrap();
        let row = |(index, token): (usize, &u32)| Row {
            next: rest.get(index + 1).copied(),
            ..Row::text(conv, start + index as u32, *token, Some(Sampling::GREEDY))
        };
        relay.run(&Step::prompt(now.iter().enumerate().map(row).collect()), |ports| {
            for (name, bits) in [ports::LOGITS, ports::DRAFT_LOGITS].into_iter().zip(&mut bits) {
                let Some((columns, rows)) = ports.get(name) else { continue };
                bits.extend((0..rows).flat_map(|row| columns.row(row)).map(|number| number.to_bits()));
            }
            Ok(())
        })?;
        rest = later;
    }
    Ok(bits)
}

fn run(relay: &mut Relay, steps: &[usize]) -> Result<[Vec<u32>; 2]> {
    let conv = relay.open();
    append_all(relay, conv, &TOKENS, steps)
}

fn finite(bits: &[Vec<u32>; 2]) -> bool {
    bits.iter().flatten().all(|bits| f32::from_bits(*bits).is_finite())
}

#[test]
fn any_cut_gives_the_bits_of_one_executor() {
    let whole = run(&mut relay(&[]), &[12]).unwrap();
    assert!(finite(&whole) && whole.iter().all(|bits| bits.len() == 12 * 11));
    for cuts in [vec![1], vec![2], vec![3], vec![4], vec![5], vec![1, 2, 3, 4, 5], vec![2, 4]] {
        for steps in [vec![12], vec![1], vec![5, 1, 2]] {
            assert_eq!(run(&mut relay(&cuts), &steps).unwrap(), whole, "cuts {cuts:?}, steps {steps:?}");
        }
    }
}

#[test]
fn segments_in_tiles_give_the_bits_of_whole_ones() {
    let whole = run(&mut relay(&[]), &[12]).unwrap();
    for tile in [1, 5] {
        let mut relay = relay(&[2]);
        relay.set_tile(tile);
        assert_eq!(run(&mut relay, &[12]).unwrap(), whole);
    }
}

#[test]
fn what_crosses_is_what_is_needed() {
    let whole = run(&mut relay(&[]), &[12]).unwrap();
    let (mut ports, mut states) = (0, 0);
    for cut in 1..6 {
        let full = relay(&[cut]).crossings().nth(1).unwrap().clone();
        for withheld in 0..full.ports.len() + full.states.len() {
            let mut relay = relay(&[cut]);
            let crossing = relay.crossing_mut(1);
            if withheld < full.ports.len() {
                crossing.ports.remove(withheld);
                ports += 1;
            } else {
                crossing.states.remove(withheld - full.ports.len());
                states += 1;
            }
            let without = run(&mut relay, &[7, 5]);
            assert!(without.is_err() || without.is_ok_and(|bits| bits != whole), "cut {cut} of {full:?} does not need {withheld}");
        }
    }
    // The stream at five cuts, the side port at two (before layers 1 and 2), the shared state at the same two.
    assert_eq!((ports, states), (7, 2));
}

#[test]
fn stages_rewind_and_restore_together() {
    let whole = run(&mut relay(&[]), &[12]).unwrap();
    let mut relay = relay(&[2, 3]);
    let conv = relay.open();
    append_all(&mut relay, conv, &TOKENS[..7], &[7]).unwrap();
    let snapshot = relay.snapshot(conv).unwrap();
    append_all(&mut relay, conv, &[9, 9, 9], &[2]).unwrap();
    let restored = relay.restore(&snapshot);
    relay.rewind(conv, 7).unwrap();
    for conv in [conv, restored] {
        // The draft's row at the end of the first seven was made from another next token, so only logits are compared.
        let tail = append_all(&mut relay, conv, &TOKENS[7..], &[3]).unwrap();
        assert_eq!(tail[0], whole[0][7 * 11..]);
    }
    assert!(relay.rewind(conv, 13).is_err());
    relay.close(conv);
    assert_eq!(relay.len(conv), None);
}

#[test]
fn a_step_that_fails_on_a_later_stage_leaves_no_trace() {
    let whole = run(&mut relay(&[]), &[12]).unwrap();
    let mut relay = relay(&[3]);
    let conv = relay.open();
    append_all(&mut relay, conv, &TOKENS[..5], &[5]).unwrap();
    // Without a wanted row nobody samples, so the draft does not know the next token.
    let error = relay.run(&Step::prompt(vec![Row::text(conv, 5, 1, None)]), |_| Ok(())).unwrap_err();
    assert_eq!(error.text, "draft.0: the token after row 0 of the step is not known");
    assert_eq!(relay.len(conv), Some(5));
    assert_eq!(append_all(&mut relay, conv, &TOKENS[5..], &[7]).unwrap()[0], whole[0][5 * 11..]);
}

#[test]
fn cuts_stand_between_segments() {
    let program = Arc::new(parts().build().unwrap());
    let weights: Arc<dyn WeightStore> = Arc::new(Numbers::of(program.description()));
    for cuts in [vec![0], vec![6], vec![7], vec![2, 2], vec![3, 1]] {
        let cutting = cutting(&cuts, 4, None);
        assert!(Relay::new(program.clone(), &weights, &cutting).is_err());
    }
}

#[test]
fn ids_are_asked_for_and_checked() {
    struct Given(Vec<i64>);
    impl IdSource for Given {
        fn ids(&self, _: &str, _: &[u32]) -> Result<Vec<i64>> {
            Ok(self.0.clone())
        }
    }
    let program = Arc::new(parts().build().unwrap());
    let weights: Arc<dyn WeightStore> = Arc::new(Numbers::of(program.description()));
    let fault = |ids: Option<Vec<i64>>| {
        let ids = ids.map(|ids| Arc::new(Given(ids)) as Arc<dyn IdSource>);
        let cutting = cutting(&[], 12, ids);
        let mut relay = Relay::new(program.clone(), &weights, &cutting).unwrap();
        run(&mut relay, &[12]).unwrap_err().text
    };
    assert_eq!(fault(None), "nobody gives the ids of input `pair`");
    assert_eq!(fault(Some(vec![1, 2])), "the plugin gives 2 ids for input `pair`, its recording says 1");
    for id in [-2, 1 << 31, i64::MIN] {
        assert_eq!(fault(Some(vec![id])), "the plugin gives an id outside any table for input `pair`");
    }
    assert!(fault(Some(vec![11])).contains("layer.2 op"), "{}", fault(Some(vec![11])));
}

fn alone() -> Arc<Crew> {
    Arc::new(Crew::new(1).unwrap())
}
