//! The small model's pass with plain loops in f64: no recording, no slots, no states.

use coli_shaders::contract::{ExpertMatrix, WeightStore};
use coli_shaders::formats::WeightView;

use super::{CHOSEN, EPS, EXPERT_GROUP, EXPERTS, HEAD, HEADS, Layer, Parts, THETA};

type Row = Vec<f64>;

/// What a conversation's tokens give.
pub(crate) struct Pass {
    /// The stream of every row after the embedding and after each layer.
    pub streams: Vec<Vec<Row>>,
    /// The logits of every row.
    pub logits: Vec<Row>,
}

pub(crate) fn pass(parts: &Parts, store: &dyn WeightStore, tokens: &[u32]) -> Pass {
    let weight = |id| store.weight(id).unwrap();
    let table = weight(parts.embed.id);
    let mut streams: Vec<Vec<Row>> = vec![tokens.iter().map(|token| matrix_row(&table, *token as usize)).collect()];
    for (index, layer) in parts.layers.iter().enumerate() {
        let next = layer_pass(layer, index as u32, store, &streams[index]);
        streams.push(next);
    }
    let norm = matrix_row(&weight(parts.norm.id), 0);
    let last = &streams[parts.layers.len()];
    let logits = last.iter().map(|h| product(&weight(parts.head.id), &rms(h, &norm))).collect();
    Pass { streams, logits }
}

fn layer_pass(layer: &Layer, index: u32, store: &dyn WeightStore, stream: &[Row]) -> Vec<Row> {
    let weight = |at: coli_plugin_api::describe::WeightRef| store.weight(at.id).unwrap();
    let (attention_norm, mlp_norm) = (matrix_row(&weight(layer.attention_norm), 0), matrix_row(&weight(layer.mlp_norm), 0));
    let (mut keys, mut values): (Vec<Row>, Vec<Row>) = (vec![], vec![]);
    let row = |(pos, h): (usize, &Row)| {
        let x = rms(h, &attention_norm);
        keys.push(rope(&product(&weight(layer.k), &x), pos));
        values.push(product(&weight(layer.v), &x));
        let q = rope(&product(&weight(layer.q), &x), pos);
        let heads = (0..HEADS as usize).flat_map(|head| attend(&q[head * HEAD as usize..][..HEAD as usize], &keys, &values));
        let h = sum(h, &product(&weight(layer.o), &heads.collect::<Row>()));
        let x = rms(&h, &mlp_norm);
        let routed = routed(&product(&weight(layer.router), &x), index, store, &x);
        let shared = gated(&weight(layer.gate), &weight(layer.up), &weight(layer.down), &x);
        sum(&h, &sum(&routed, &shared))
    };
    stream.iter().enumerate().map(row).collect()
}

fn matrix_row(view: &WeightView<'_>, index: usize) -> Row {
    view.decode()[index * view.cols()..][..view.cols()].iter().map(|number| f64::from(*number)).collect()
}

fn product(view: &WeightView<'_>, x: &Row) -> Row {
    (0..view.rows()).map(|row| matrix_row(view, row).iter().zip(x).map(|(w, x)| w * x).sum()).collect()
}

fn sum(a: &Row, b: &Row) -> Row {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn rms(x: &Row, weight: &Row) -> Row {
    let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    x.iter().zip(weight).map(|(x, w)| x / (mean + f64::from(EPS)).sqrt() * w).collect()
}

fn rope(x: &Row, pos: usize) -> Row {
    let (width, pairs) = (HEAD as usize, HEAD as usize / 2);
    let mut y = x.clone();
    for head in (0..x.len()).step_by(width) {
        for pair in 0..pairs {
            let angle = pos as f64 * THETA.powf(-(pair as f64) / pairs as f64);
            let (u, v) = (x[head + pair], x[head + pair + pairs]);
            y[head + pair] = u * angle.cos() - v * angle.sin();
            y[head + pair + pairs] = v * angle.cos() + u * angle.sin();
        }
    }
    y
}

fn softmax(scores: &Row) -> Row {
    let total: f64 = scores.iter().map(|score| score.exp()).sum();
    scores.iter().map(|score| score.exp() / total).collect()
}

fn attend(q: &[f64], keys: &[Row], values: &[Row]) -> Row {
    let scores = keys.iter().map(|key| 0.5 * q.iter().zip(key).map(|(q, k)| q * k).sum::<f64>());
    let weights = softmax(&scores.collect());
    (0..HEAD as usize).map(|column| weights.iter().zip(values).map(|(weight, value)| weight * value[column]).sum()).collect()
}

fn gated(gate: &WeightView<'_>, up: &WeightView<'_>, down: &WeightView<'_>, x: &Row) -> Row {
    let inner = product(gate, x).iter().zip(product(up, x)).map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up).collect();
    product(down, &inner)
}

fn routed(scores: &Row, layer: u32, store: &dyn WeightStore, x: &Row) -> Row {
    let shares = softmax(scores);
    let mut ids: Vec<usize> = (0..EXPERTS as usize).collect();
    ids.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]));
    ids.truncate(CHOSEN as usize);
    let total: f64 = ids.iter().map(|id| shares[*id]).sum();
    let mut y = vec![0.0; x.len()];
    for id in ids {
        let matrix = |which| store.expert(EXPERT_GROUP, layer, id as u32, which).unwrap();
        let row = gated(&matrix(ExpertMatrix::Gate), &matrix(ExpertMatrix::Up), &matrix(ExpertMatrix::Down), x);
        y.iter_mut().zip(row).for_each(|(y, row)| *y += shares[id] / total * row);
    }
    y
}
