//! Attention: near the sums in f64, the same bits at every level, and however a prompt is cut.

use std::ops::Range;

use super::attend::{Heads, Row, Scratch, Seen, Source, prompt};
use super::attend_step::{Part, join, part, parts, units};
use super::gemm::Unit;
use super::gemm_tests::{Random, assert_same, levels};
use super::{Level, Pane};
use crate::contract::Stored;

/// Stored rows of a state: pages of `page` rows, as f32 and as halves.
struct State {
    width: usize,
    page: usize,
    whole: Vec<Vec<f32>>,
    half: Vec<Vec<u16>>,
}

impl State {
    /// Numbers that halves hold, so that both forms are one state.
    fn new(random: &mut Random, rows: usize, width: usize, page: usize) -> Self {
        let number = |random: &mut Random| half::f16::from_f32(random.number());
        let half: Vec<Vec<u16>> = (0..rows.div_ceil(page))
            .map(|index| (0..page.min(rows - index * page) * width).map(|_| number(random).to_bits()).collect())
            .collect();
        let whole = half.iter().map(|page| page.iter().map(|bits| half::f16::from_bits(*bits).to_f32()).collect()).collect();
        Self { width, page, whole, half }
    }

    fn pages(&self, halves: bool) -> Vec<Stored<'_>> {
        if halves {
            self.half.iter().map(|page| Stored::Half(page)).collect()
        } else {
            self.whole.iter().map(|page| Stored::Whole(page)).collect()
        }
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.whole[row / self.page][row % self.page * self.width..][..self.width]
    }

    fn source<'a>(&self, pages: &'a [Stored<'a>], heads: &Heads) -> Source<'a> {
        Source { pages, page: self.page, width: self.width, k_col: 3, v_col: self.width - heads.v_width }
    }
}

/// What a test attends to.
struct Case {
    heads: Heads,
    states: [State; 2],
    sinks: Vec<f32>,
    q: Vec<Vec<f32>>,
    seen: Vec<[Seen<'static>; 2]>,
}

impl Case {
    fn rows(&self, range: Range<usize>) -> Vec<Row<'_>> {
        range.map(|row| Row { q: &self.q[row], seen: self.seen[row].clone() }).collect()
    }

    fn with_sources<T>(&self, halves: bool, run: impl FnOnce(&[Source<'_>]) -> T) -> T {
        let pages = self.states.each_ref().map(|state| state.pages(halves));
        run(&[self.states[0].source(&pages[0], &self.heads), self.states[1].source(&pages[1], &self.heads)])
    }

    /// By [`prompt`], range after range of rows.
    fn prompt(&self, level: Level, halves: bool, cuts: &[Range<usize>], scratch: &mut Scratch) -> Vec<f32> {
        let width = self.heads.heads * self.heads.v_width;
        let mut out = vec![f32::NAN; self.q.len() * width];
        self.with_sources(halves, |sources| {
            for cut in cuts {
                let mut pane = Pane::new(&mut out[cut.start * width..cut.end * width], width);
                prompt(level, &self.heads, sources, &self.rows(cut.clone()), &self.sinks, scratch, &mut pane);
            }
        });
        out
    }

    /// All rows together.
    fn whole(&self, level: Level, halves: bool, scratch: &mut Scratch) -> Vec<f32> {
        self.prompt(level, halves, std::slice::from_ref(&(0..self.q.len())), scratch)
    }

    /// By parts, the last of them first.
    fn steps(&self, level: Level, halves: bool, scratch: &mut Scratch) -> Vec<f32> {
        let width = self.heads.heads * self.heads.v_width;
        let mut out = vec![f32::NAN; self.q.len() * width];
        self.with_sources(halves, |sources| {
            for ((q, seen), out) in self.q.iter().zip(&self.seen).zip(out.chunks_exact_mut(width)) {
                let all: Vec<Part> = parts(seen).collect();
                let each = units(&self.heads);
                let mut results = vec![Unit::ZERO; all.len() * each];
                for (of, result) in all.iter().zip(results.chunks_exact_mut(each)).rev() {
                    part(level, &self.heads, sources, (seen, of), q, scratch, result);
                }
                join(level, &self.heads, &results, &self.sinks, out);
            }
        });
        out
    }

    /// In f64, by the formula.
    fn exact(&self) -> Vec<f64> {
        let heads = &self.heads;
        let mut out = vec![];
        for (q, seen) in self.q.iter().zip(&self.seen) {
            let rows: Vec<&[f32]> =
                seen.iter().zip(&self.states).flat_map(|(seen, state)| listed(seen).map(|row| state.row(row))).collect();
            for (head, q) in q.chunks_exact(heads.k_width).enumerate() {
                let dot = |row: &[f32]| q.iter().zip(&row[3..]).map(|(q, k)| f64::from(*q) * f64::from(*k)).sum::<f64>();
                let scores: Vec<f64> = rows.iter().map(|row| dot(row) * f64::from(heads.scale)).collect();
                let sink = self.sinks.get(head).map_or(f64::NEG_INFINITY, |sink| f64::from(*sink));
                let max = scores.iter().copied().fold(sink, f64::max);
                let total: f64 = scores.iter().map(|score| (score - max).exp()).sum::<f64>() + (sink - max).exp();
                for col in 0..heads.v_width {
                    let v = |row: &[f32]| f64::from(row[row.len() - heads.v_width + col]);
                    let sum: f64 = rows.iter().zip(&scores).map(|(row, score)| (score - max).exp() * v(row)).sum();
                    out.push(if rows.is_empty() { 0.0 } else { sum / total });
                }
            }
        }
        out
    }
}

fn listed(seen: &Seen<'_>) -> impl Iterator<Item = usize> {
    let rows: Vec<usize> = match seen {
        Seen::Rows(rows) => rows.clone().collect(),
        Seen::List(list) => list.iter().filter(|row| **row >= 0).map(|row| *row as usize).collect(),
    };
    rows.into_iter()
}

/// Rows at positions of which each sees those up to its own, of both states.
fn causal(random: &mut Random, heads: Heads, positions: Range<usize>, window: usize) -> Case {
    let width = 3 + heads.k_width + heads.v_width;
    let states = [State::new(random, positions.end, width, 64), State::new(random, positions.end / 4 + 1, width, 16)];
    let q = positions.clone().map(|_| random.numbers(heads.heads * heads.k_width)).collect();
    let seen = |pos: usize| [Seen::Rows((pos + 1).saturating_sub(window)..pos + 1), Seen::Rows(0..pos.div_ceil(4))];
    Case { heads, states, sinks: vec![], q, seen: positions.map(seen).collect() }
}

/// Cases of all kinds: causal, with windows, with lists, with sinks.
fn cases(random: &mut Random) -> Vec<Case> {
    let heads = |heads, k_width, v_width| Heads { heads, k_width, v_width, scale: 1.0 / (k_width as f32).sqrt() };
    let mut cases = vec![
        causal(random, heads(1, 128, 128), 0..150, usize::MAX),
        causal(random, heads(4, 64, 32), 500..530, usize::MAX),
        causal(random, heads(3, 17, 5), 0..90, 20),
        causal(random, heads(8, 40, 100), 190..203, 70),
        causal(random, heads(1, 1, 1), 0..3, 1),
    ];
    let mut listed = causal(random, heads(7, 24, 16), 100..120, 33);
    for (row, seen) in listed.seen.iter_mut().enumerate() {
        let entries = (0..row * 37).map(|_| random.below(27) as i32 - 1).collect::<Vec<i32>>();
        seen[1] = Seen::List(entries.leak());
    }
    listed.sinks = random.numbers(7);
    listed.seen[3] = [Seen::Rows(0..0), Seen::List(&[-1, -1])];
    listed.seen[4] = [Seen::Rows(9..9), Seen::List(&[])];
    cases.push(listed);
    let mut sunk = causal(random, heads(2, 32, 48), 60..130, 64);
    sunk.sinks = vec![0.5, 30.0];
    cases.push(sunk);
    cases
}

#[test]
fn both_forms_are_near_the_sums_in_f64() {
    let mut random = Random(11);
    for (index, case) in cases(&mut random).iter().enumerate() {
        let want = case.exact();
        for level in levels() {
            let scratch = &mut Scratch::default();
            for got in [case.whole(level, true, scratch), case.steps(level, true, scratch)] {
                let worst = got.iter().zip(&want).fold(0f64, |worst, (got, want)| worst.max((f64::from(*got) - want).abs()));
                assert!(worst < 1e-6, "case {index}, {level:?}: off by {worst}");
                assert!(got.iter().all(|y| y.is_finite()));
            }
        }
    }
}

#[test]
fn levels_forms_and_cuts_change_no_bit() {
    let mut random = Random(12);
    let scratch = &mut Scratch::default();
    for (index, case) in cases(&mut random).iter().enumerate() {
        let rows = case.q.len();
        let (want, want_steps) = (case.whole(Level::Portable, false, scratch), case.steps(Level::Portable, false, scratch));
        for level in levels() {
            for halves in [false, true] {
                let what = format!("case {index}, {level:?}, halves {halves}");
                assert_same(&case.whole(level, halves, scratch), &want, &what);
                assert_same(&case.steps(level, halves, scratch), &want_steps, &what);
                let (a, b) = (random.below(rows + 1), random.below(rows + 1));
                let cuts = [a.min(b), a.max(b), rows];
                let ranges: Vec<Range<usize>> = [0, cuts[0], cuts[1]].into_iter().zip(cuts).map(|(from, to)| from..to).collect();
                let ranges: Vec<Range<usize>> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
                assert_same(&case.prompt(level, halves, &ranges, scratch), &want, &what);
            }
        }
    }
}

/// A later row may hold anything, and so may a row that was let go.
#[test]
fn what_is_not_seen_is_not_touched() {
    let mut random = Random(13);
    let scratch = &mut Scratch::default();
    for odd in [f32::NAN, f32::INFINITY] {
        let heads = Heads { heads: 2, k_width: 20, v_width: 20, scale: 0.3 };
        let mut case = causal(&mut random, heads, 64..192, 50);
        case.seen.iter_mut().for_each(|seen| seen[1] = Seen::Rows(0..0));
        let rows = case.q.len();
        let want = case.whole(Level::Portable, false, scratch);
        // Position 100 turns odd: the rows before it do not see it, nor those from 150 on.
        case.states[0].whole[1][36 * 43..][..43].fill(odd);
        case.states[0].whole[0][..14 * 43].fill(f32::NAN);
        let width = 40;
        for level in levels() {
            let (got, steps) = (case.whole(level, false, scratch), case.steps(level, false, scratch));
            for row in 0..rows {
                let (of, sees) = (row * width..(row + 1) * width, (36..86).contains(&row));
                assert!(got[of.clone()].iter().chain(&steps[of.clone()]).all(|y| y.is_nan() == sees), "{level:?}, row {row}");
                if !sees {
                    assert_same(&got[of.clone()], &want[of], "a row beside an odd one");
                }
            }
        }
        case.states[0].whole[0].clear();
        case.states[0].half[0].clear();
        let late = case.prompt(Level::best(), false, std::slice::from_ref(&(rows - 20..rows)), scratch);
        assert_same(&late[(rows - 20) * width..], &want[(rows - 20) * width..], "without the first page");
    }
}

/// Scores far apart, and infinite ones: the same bits, and faults that show.
#[test]
fn extremes_are_the_same_at_every_level() {
    let mut random = Random(14);
    let scratch = &mut Scratch::default();
    for scale in [1e4, 1e38, f32::INFINITY, 0.0] {
        let heads = Heads { heads: 1, k_width: 33, v_width: 7, scale };
        let case = causal(&mut random, heads, 0..130, usize::MAX);
        let (want, want_steps) = (case.whole(Level::Portable, true, scratch), case.steps(Level::Portable, true, scratch));
        for level in levels() {
            assert_same(&case.whole(level, true, scratch), &want, &format!("{level:?} {scale}"));
            assert_same(&case.steps(level, true, scratch), &want_steps, &format!("{level:?} {scale}"));
        }
        assert!(scale > 1e30 || want.iter().chain(&want_steps).all(|y| y.is_finite()));
    }
}

/// K/V heads that are taken together give the bits that each gives alone.
#[test]
fn heads_are_taken_together_or_alone() {
    let mut random = Random(16);
    let scratch = &mut Scratch::default();
    let (kv_heads, rows) = (3, 300);
    for (k_width, v_width, each) in [(32, 16, 1), (20, 9, 5)] {
        let heads = Heads { heads: each, k_width, v_width, scale: 0.2 };
        let state = State::new(&mut random, rows, kv_heads * (k_width + v_width), 32);
        let q = random.numbers(kv_heads * each * k_width);
        let seen = [Seen::Rows(11..rows), Seen::Rows(0..0)];
        for level in levels() {
            for halves in [false, true] {
                let pages = state.pages(halves);
                let source = |kv_head: usize| {
                    let (k_col, v_col) = (kv_head * k_width, kv_heads * k_width + kv_head * v_width);
                    Source { pages: &pages, page: 32, width: state.width, k_col, v_col }
                };
                for of in parts(&seen) {
                    let mut together = vec![Unit::ZERO; kv_heads * units(&heads)];
                    part(level, &heads, &[source(0)], (&seen, &of), &q, scratch, &mut together);
                    for (kv_head, together) in together.chunks_exact(units(&heads)).enumerate() {
                        let mut alone = vec![Unit::ZERO; units(&heads)];
                        let q = &q[kv_head * each * k_width..][..each * k_width];
                        part(level, &heads, &[source(kv_head)], (&seen, &of), q, scratch, &mut alone);
                        assert_eq!(alone, together, "{level:?}, head {kv_head}");
                    }
                }
            }
        }
    }
}

#[test]
fn parts_are_cut_at_multiples() {
    let seen = [Seen::Rows(250..520), Seen::List(&[0; 257])];
    let all: Vec<(usize, Range<usize>)> = parts(&seen).map(|part| (part.source, part.range)).collect();
    assert_eq!(all, [(0, 250..256), (0, 256..512), (0, 512..520), (1, 0..256), (1, 256..257)]);
    assert_eq!(parts(&[Seen::Rows(300..300), Seen::List(&[])]).count(), 0);
}

#[test]
#[should_panic(expected = "source 0: row 64 is seen and not stored")]
fn a_row_that_is_not_stored_is_refused() {
    let mut random = Random(15);
    let heads = Heads { heads: 1, k_width: 4, v_width: 4, scale: 1.0 };
    let mut case = causal(&mut random, heads, 0..65, usize::MAX);
    case.states[0].whole.pop();
    case.whole(Level::Portable, false, &mut Scratch::default());
}
