#!/usr/bin/env python3
"""Write cases.json of short_conv, delta, pool and index_topk, as make_cases.py does for the others.

The libraries compute in float32 whatever they are given. `doubled` has their own code compute in
float64: within it, `torch.float32` and `Tensor.float` mean float64.
"""
import contextlib
import importlib
import importlib.util
import json
import sys
import types
from importlib.metadata import version
from types import SimpleNamespace
from unittest import mock

import make_cases as m
import numpy as np
import torch
import torch.nn.functional as F
import jax
import jax.numpy as jnp
import mlx.core as mx
from make_cases import case, dyadic, lib, normal, number, rng, t32, t64
from transformers.models.deepseek_v4 import modeling_deepseek_v4 as v4
from transformers.models.glm5_next import modeling_glm5_next as glm5
from transformers.models.glm_moe_dsa import modeling_glm_moe_dsa as dsa
from transformers.models.kimi_linear import modeling_kimi_linear as kimi
from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe as qwen
from transformers.models.qwen4_exp import modeling_qwen4_exp as qwen4

m.PINS["mlx-vlm"] = "0.7.10"


def mlx_vlm_v41():
    """One module of mlx-vlm, without its package's own imports."""
    root = importlib.util.find_spec("mlx_vlm").submodule_search_locations[0]
    for path in ["", "/models", "/models/deepseek_v4", "/models/deepseek_v41"]:
        package = types.ModuleType("mlx_vlm" + path.replace("/", "."))
        package.__path__ = [root + path]
        sys.modules[package.__name__] = package
    return importlib.import_module("mlx_vlm.models.deepseek_v41.language")


v41 = mlx_vlm_v41()


@contextlib.contextmanager
def doubled():
    with mock.patch.object(torch, "float32", torch.float64), \
            mock.patch.object(torch.Tensor, "float", torch.Tensor.double):
        yield


def conversations(*parts):
    """Rows (conversation, position) of parts (first position, count), and the range of each."""
    rows, ranges = [], []
    for conv, (start, count) in enumerate(parts):
        ranges.append(slice(len(rows), len(rows) + count))
        rows += [(conv, start + i) for i in range(count)]
    return np.array(rows, np.int32), ranges


def sigmoid(x):
    return 0.5 * (1 + np.tanh(x / 2))


# ---------------------------------------------------------------- short_conv

def short_conv():
    plain = lib("transformers", "models.qwen3_5_moe causal_conv1d_fn (float64)")
    dilated = lib("torch", "torch.nn.functional.conv1d, silu (float64)")
    for name, parts, w, taps, dilation, act, residual, fmt in [
        ("silu", [(0, 7)], 8, 4, 1, "silu", False, "f32"),
        ("no_act", [(0, 6)], 5, 4, 1, "none", False, "f32"),
        ("residual", [(0, 6)], 5, 4, 1, "none", True, "f32"),
        ("silu_residual", [(0, 5)], 3, 3, 1, "silu", True, "f32"),
        ("one_row", [(0, 1)], 9, 4, 1, "silu", False, "f32"),
        ("two_rows", [(0, 2)], 9, 4, 1, "silu", False, "f32"),
        ("one_tap", [(5, 3), (0, 1)], 4, 1, 1, "silu", False, "f32"),
        ("two_taps", [(0, 4)], 4, 2, 1, "none", False, "f32"),
        ("one_column", [(0, 9)], 1, 4, 1, "silu", False, "f32"),
        ("dilated", [(0, 14)], 6, 4, 3, "silu", False, "f32"),
        ("dilated_residual", [(0, 12)], 3, 3, 5, "none", True, "f32"),
        ("dilated_beyond", [(0, 4)], 3, 4, 7, "silu", False, "f32"),
        ("many_taps", [(0, 40)], 2, 35, 1, "none", False, "f32"),
        ("conversations", [(0, 5), (0, 1), (0, 3)], 7, 4, 1, "silu", False, "f32"),
        ("conversations_dilated", [(0, 9), (0, 4)], 3, 3, 3, "silu", False, "f32"),
        ("wide", [(0, 3)], 67, 4, 1, "silu", False, "f32"),
        ("bf16", [(0, 6)], 6, 4, 1, "silu", False, "bf16"),
        ("exact", [(0, 6)], 5, 4, 1, "none", True, "f32"),
    ]:
        r = rng("short_conv", name)
        make = dyadic if name == "exact" else normal
        rows, ranges = conversations(*parts)
        x, weight = make(r, len(rows), w), make(r, w, taps)
        if fmt == "bf16":
            weight = t32(weight).to(torch.bfloat16).to(torch.float32).numpy()
        y, ref, second = (np.zeros((len(rows), w)) for _ in range(3))
        back = (taps - 1) * dilation
        for part in ranges:
            a = x[part]
            if dilation == 1:
                out = qwen.causal_conv1d_fn(t64(a).T[None], t64(weight), None,
                                            None if act == "none" else act)
            else:
                out = F.conv1d(F.pad(t64(a).T[None], (back, 0)), t64(weight)[:, None], groups=w,
                               dilation=dilation)
                out = F.silu(out) if act == "silu" else out
            y[part] = out[0].T + (t64(a) if residual else 0)
            padded = np.concatenate([np.zeros((back, w)), a.astype(np.float64)])
            z = sum(padded[j * dilation:][:len(a)] * weight[:, j].astype(np.float64)
                    for j in range(taps))
            z = z * sigmoid(z) if act == "silu" else z
            ref[part] = z + a if residual else z
            z = jax.lax.conv_general_dilated(
                jnp.asarray(a.T[None]), jnp.asarray(weight[:, None]), (1,), [(back, 0)],
                rhs_dilation=(dilation,), feature_group_count=w)[0].T
            assert z.dtype == jnp.float32
            z = jax.nn.silu(z) if act == "silu" else z
            second[part] = z + a if residual else z
        case("short_conv", name, plain if dilation == 1 else dilated,
             {"taps": taps, "dilation": dilation, "act": act, "residual": residual, "format": fmt},
             {"rows": rows, "x": x, "w": weight}, {"y": y}, 0.0 if name == "exact" else 2e-6,
             {"y": ref}, {"y": second})


# ---------------------------------------------------------------- delta

def forget_gate(cls, gate, a, dt, heads, bound):
    """The library's own law on a gate that is already projected."""
    same = lambda h: h
    own = SimpleNamespace(f_a_proj=same, f_b_proj=same, dt_bias=t64(dt), A_log=t64(a[:heads]),
                          num_heads=heads, head_dim=gate.shape[-1] // heads,
                          safe_gate_lower_bound=bound)
    if cls is kimi.KimiLinearForgetGate:
        own.A_log = own.A_log.view(1, 1, heads, 1)
    return cls.forward(own, t64(gate)[None])


def delta():
    rule = {False: "models.qwen3_5_moe torch_recurrent_gated_delta_rule",
            True: "models.glm5_next recurrent_kimi_delta_attention"}
    for name, parts, key_heads, heads, dk, dv, decay, bound, channel, tiled in [
        ("one_head", [(0, 5)], 1, 1, 4, 4, "softplus", 0.0, False, False),
        ("grouped", [(0, 5)], 2, 4, 6, 5, "softplus", 0.0, False, False),
        ("tiled", [(0, 5)], 2, 4, 6, 5, "softplus", 0.0, False, True),
        ("grouped_by_three", [(0, 3)], 2, 6, 4, 3, "softplus", 0.0, False, False),
        ("tiled_by_three", [(0, 3)], 2, 6, 4, 3, "softplus", 0.0, False, True),
        ("one_row", [(0, 1)], 2, 2, 4, 6, "softplus", 0.0, False, False),
        ("wide_keys", [(0, 4)], 1, 2, 41, 3, "softplus", 0.0, False, False),
        ("wide_values", [(0, 3)], 1, 1, 3, 40, "softplus", 0.0, False, False),
        ("one_number", [(0, 4)], 1, 1, 1, 1, "softplus", 0.0, False, False),
        ("long", [(0, 66)], 1, 1, 2, 2, "softplus", 0.0, False, False),
        ("channels", [(0, 5)], 3, 3, 5, 4, "softplus", 0.0, True, False),
        ("channels_grouped", [(0, 3)], 2, 4, 4, 3, "softplus", 0.0, True, False),
        ("bounded_channels", [(0, 5)], 3, 3, 6, 5, "bounded", -5.0, True, False),
        ("bounded_channels_long", [(0, 20)], 1, 1, 4, 3, "bounded", -5.0, True, False),
        ("bounded_long_a", [(0, 5)], 2, 2, 4, 4, "bounded", -5.0, True, False),
        ("bounded_heads", [(0, 5)], 2, 4, 4, 3, "bounded", -2.5, False, True),
        ("edges", [(0, 8)], 1, 2, 4, 3, "softplus", 0.0, False, False),
        ("bounded_edges", [(0, 8)], 2, 2, 4, 3, "bounded", -5.0, True, False),
        ("conversations", [(0, 4), (0, 1), (9, 3)], 2, 4, 4, 3, "softplus", 0.0, False, False),
        ("conversations_channels", [(3, 2), (0, 4)], 2, 2, 5, 4, "bounded", -5.0, True, False),
    ]:
        r = rng("delta", name)
        rows, ranges = conversations(*parts)
        t, wide = len(rows), heads * dk if channel else heads

        def keys(scale):
            a = r.standard_normal((t, key_heads, dk))
            a = a / np.sqrt((a * a).sum(-1, keepdims=True) + 1e-6) * scale
            return np.round(a.reshape(t, -1), 4).astype(np.float32)

        q, k, v = keys(dk**-0.5), keys(1.0), normal(r, t, heads * dv)
        gate, beta = normal(r, t, wide), normal(r, t, heads)
        a = normal(r, heads + (5 if name == "bounded_long_a" else 0), scale=0.7)
        dt = normal(r, wide)
        if name.endswith("edges"):  # nothing forgotten, all forgotten, nothing learned, all learned
            gate[1], gate[3], gate[5], gate[6] = -60.0, 60.0, -200.0, 200.0
            beta[2], beta[4], beta[6] = 40.0, -40.0, -200.0
        at = np.arange(heads) % key_heads if tiled else np.arange(heads) // (heads // key_heads)

        with doubled():
            if not channel and decay == "softplus":
                g = -t64(a[:heads]).exp() * F.softplus(t64(gate) + t64(dt))
                law = lib("torch", "softplus")
            elif not channel:
                g = bound * torch.sigmoid(t64(a).exp() * (t64(gate) + t64(dt)))
                law = lib("torch", "sigmoid")
            else:
                cls = glm5.Glm5NextTextForgetGate if bound else kimi.KimiLinearForgetGate
                g = forget_gate(cls, gate, a, dt, heads, bound or None)[0].reshape(t, heads, dk)
                law = f"{cls.__name__}.forward"
            y = np.zeros((t, heads, dv))
            for part in ranges:
                args = [t64(z[part]).reshape(1, -1, key_heads, dk)[:, :, at] for z in (q, k)]
                args[0] = args[0] * dk**0.5
                args += [t64(v[part]).reshape(1, -1, heads, dv), g[part][None],
                         torch.sigmoid(t64(beta[part]))[None]]
                if channel:
                    y[part] = glm5.recurrent_kimi_delta_attention(*args, None, False)[0][0]
                else:
                    y[part] = qwen.torch_recurrent_gated_delta_rule(*args)[0][0]
        # The same rule by chunks of 64 rows, in float32.
        second = np.zeros((t, heads, dv), np.float32)
        for part in ranges:
            args = [t32(z[part]).reshape(1, -1, key_heads, dk)[:, :, at] for z in (q, k)]
            args[0] = args[0] * dk**0.5
            args += [t32(v[part]).reshape(1, -1, heads, dv), g[part][None].to(torch.float32),
                     torch.sigmoid(t32(beta[part]))[None]]
            chunk = glm5.chunk_kimi_delta_attention if channel else qwen.torch_chunk_gated_delta_rule
            second[part] = chunk(*args)[0][0]

        ref = np.zeros((t, heads, dv))
        q64, k64, v64, gate64, beta64, a64, dt64 = (
            z.astype(np.float64) for z in (q, k, v, gate, beta, a, dt))
        for part in ranges:
            S = np.zeros((heads, dk, dv))
            for row in range(part.start, part.stop):
                x = (gate64[row] + dt64).reshape(heads, -1)
                rate = np.exp(a64[:heads])[:, None]
                law64 = bound * sigmoid(rate * x) if bound else -rate * np.logaddexp(0, x)
                for h in range(heads):
                    key, query = (z[row].reshape(key_heads, dk)[at[h]] for z in (k64, q64))
                    S[h] *= np.exp(law64[h])[:, None]
                    change = sigmoid(beta64[row, h]) * (v64[row].reshape(heads, dv)[h] - S[h].T @ key)
                    S[h] += np.outer(key, change)
                    ref[row, h] = S[h].T @ query
        params = {"key_heads": key_heads, "head_map": "tiled" if tiled else "grouped",
                  "decay": decay, "bound": bound, "per_channel": channel}
        case("delta", name, f"{lib('transformers', rule[channel])} (float64); {law}", params,
             {"rows": rows, "q": q, "k": k, "v": v, "gate": gate, "beta": beta, "a": a, "dt": dt},
             {"y": y.reshape(t, -1)}, 1e-5, {"y": ref.reshape(t, -1)},
             {"y": second.reshape(t, -1)})


# ---------------------------------------------------------------- pool

def compressed(kv, gate, ape, ratio, overlap):
    """Complete groups of one conversation by DeepSeek V4's compressors, without norm and rope."""
    same = lambda a, *_, **__: a
    own = SimpleNamespace(
        compress_rate=ratio, head_dim=kv.shape[1] // (2 if overlap else 1),
        kv_proj=lambda _: t64(kv)[None], gate_proj=lambda _: t64(gate)[None],
        position_bias=t64(ape), kv_norm=same, rotary_emb=lambda *_, **__: (None, None),
        rope_layer_type="compress",
        indexer=lambda *_: torch.zeros((1, len(kv), 1), dtype=torch.int64))
    cls = v4.DeepseekV4CSACompressor if overlap else v4.DeepseekV4HCACompressor
    with doubled(), mock.patch.object(v4, "apply_rotary_pos_emb", same):
        rows, _ = cls.forward(own, torch.zeros((1, len(kv), 1)), None,
                              torch.arange(len(kv))[None], None, 0)
    return rows[0, 0].numpy()


def kpooled(kv, gate, ape, ratio):
    own = SimpleNamespace(head_dim=kv.shape[1], index_kpool=ratio,
                          index_kpool_compress_ape=t64(ape))
    packed = torch.cat([t64(kv), t64(gate), torch.ones((len(kv), 1), dtype=torch.float64)], -1)
    with doubled():
        rows, _, _ = glm5.Glm5NextTextIndexer.get_pooled_states(own, packed[None])
    return rows[0].numpy()


def pool():
    for name, parts, d, ratio, kind in [
        ("softmax", [(0, 9)], 6, 4, "hca"),
        ("softmax_pairs", [(0, 7)], 5, 2, "hca no ape"),
        ("softmax_one", [(0, 3)], 5, 1, "hca"),
        ("softmax_odd", [(0, 10)], 3, 3, "hca"),
        ("softmax_long", [(0, 75)], 2, 37, "hca"),
        ("softmax_far", [(0, 8)], 4, 4, "hca"),
        ("keys", [(0, 9)], 6, 4, "kpool"),
        ("keys_of_sixteen", [(0, 33)], 3, 16, "kpool"),
        ("no_group_yet", [(0, 3)], 4, 4, "hca"),
        ("overlap", [(0, 14)], 4, 4, "csa"),
        ("overlap_one", [(0, 4)], 3, 1, "csa"),
        ("overlap_odd", [(0, 11)], 5, 3, "csa"),
        ("overlap_one_column", [(0, 9)], 1, 4, "csa"),
        ("overlap_no_ape", [(0, 9)], 3, 4, "csa no ape"),
        ("overlap_far", [(0, 12)], 3, 4, "csa"),
        ("mean", [(0, 9)], 5, 4, "mean"),
        ("mean_of_one", [(0, 4), (7, 2)], 5, 1, "mean"),
        ("mean_of_three", [(0, 7)], 4, 3, "mean"),
        ("mean_long", [(0, 72)], 2, 36, "mean"),
        ("conversations", [(0, 5), (0, 3), (8, 9)], 4, 4, "hca"),
        ("conversations_overlap", [(0, 5), (0, 1), (0, 8)], 3, 4, "csa"),
        ("conversations_mean", [(4, 5), (0, 2), (12, 4)], 3, 4, "mean"),
    ]:
        r = rng("pool", name)
        rows, ranges = conversations(*parts)
        overlap, t = kind.startswith("csa"), len(rows)
        w = d * (2 if overlap else 1)
        kv, gate = normal(r, t, w), normal(r, t, w)
        ape = np.zeros((ratio, w), np.float32) if "no ape" in kind else normal(r, ratio, w)
        if name.endswith("far"):  # exp alone overflows or vanishes, and one row outweighs the rest
            gate = (gate * 10 + np.where(np.arange(t) < 5, 300, -300)[:, None]).astype(np.float32)
        y, ref, second = (np.zeros((t, d)) for _ in range(3))
        for part in ranges:
            a, b = kv[part], gate[part]
            n = len(a) // ratio
            if n == 0:
                continue
            ends = part.start + ratio * (1 + np.arange(n)) - 1
            if kind == "mean":
                y[ends] = t64(a[:n * ratio]).reshape(n, ratio, w).mean(1)
            elif kind == "kpool":
                y[ends] = kpooled(a, b, ape, ratio)
            else:
                y[ends] = compressed(a, b, ape, ratio, overlap)
            for group, end in enumerate(ends):
                entries = [(j, 0 if j < group * ratio or not overlap else d)
                           for j in range(max(group - overlap, 0) * ratio, (group + 1) * ratio)]
                x = np.array([a[j, c:c + d] for j, c in entries], np.float64)
                z = np.array([b[j, c:c + d].astype(np.float64) + ape[j % ratio, c:c + d]
                              for j, c in entries])
                z = np.zeros_like(z) if kind == "mean" else z
                p = np.exp(z - z.max(0))
                ref[end] = (p / p.sum(0) * x).sum(0)
                z = jax.nn.softmax(jnp.asarray(z, jnp.float32), 0)
                second[end] = (z * jnp.asarray(x, jnp.float32)).sum(0)
        source = {"mean": lib("torch", "torch.mean (float64)"),
                  "kpool": lib("transformers", "Glm5NextTextIndexer.get_pooled_states (float64)"),
                  "hca": lib("transformers", "DeepseekV4HCACompressor.forward (float64)"),
                  "csa": lib("transformers", "DeepseekV4CSACompressor.forward (float64)")}
        tensors = {"rows": rows, "kv": kv}
        if kind != "mean":
            tensors["gate"] = gate
            if "no ape" not in kind:
                tensors["ape"] = ape
        case("pool", name, source[kind.split()[0]],
             {"mode": "mean" if kind == "mean" else "softmax", "ratio": ratio, "overlap": overlap},
             tensors, {"y": y}, 2e-6, {"y": ref}, {"y": second})


# ---------------------------------------------------------------- index_topk

def seen_scores(q, keys, w, scale, stride, heads):
    """Per row its scores of the rows that it sees; keys are those of complete groups."""
    q = q.astype(np.float64).reshape(len(q), heads, -1)
    s = np.maximum(np.einsum("thd,jd->thj", q, keys.astype(np.float64)) * scale, 0)
    w = np.ones((len(q), heads)) if w is None else w.astype(np.float64)
    return np.einsum("thj,th->tj", s, w)


def listed(rows, pos, seen, stride, expand, width):
    rows = sorted(int(j) for j in rows)
    if expand:
        rows = [p for j in rows for p in range(j * stride, (j + 1) * stride)]
        rows += range(seen * stride, pos + 1)
    assert len(rows) <= width
    return rows + [-1] * (width - len(rows))


def best(scores, k):
    """Of pairs (score, id) the ids of the k best, and how far the k-th is from the next."""
    order = sorted(scores, key=lambda pair: (-pair[0], pair[1]))
    margin = order[k - 1][0] - order[k][0] if len(order) > k else np.inf
    return [j for _, j in order[:k]], margin


def by_formula(s, c, cand, t):
    """The list and the candidates of row t of one conversation, and the margins of the choices."""
    seen = (t + 1) // c.stride
    mine = [(s[t, j], j) for j in range(seen) if cand is None or j // c.block in cand[t]]
    rows, margin = best(mine, c.k)
    out = []
    if c.out and seen:
        top = {}
        for score, j in mine:
            top[j // c.block] = max(top.get(j // c.block, -np.inf), score)
        top[(seen - 1) // c.block] = np.inf
        out, other = best([(score, j) for j, score in top.items()], c.out)
        margin = min(margin, other)
    return listed(rows, t, seen, c.stride, c.expand, c.width), sorted(out), margin


def by_dsa(q, keys, w, c):
    own = SimpleNamespace(
        n_heads=c.heads, head_dim=c.d, qk_rope_head_dim=0, softmax_scale=c.scale,
        index_topk=c.k, wq_b=lambda _: t64(q)[None], wk=lambda _: t64(keys)[None],
        k_norm=lambda a: a)
    own.weights_proj = Given(t64(w)[None] * c.heads**0.5)
    mask = torch.ones((len(q), len(q)), dtype=torch.bool).tril()[None]
    same = lambda a, b, *_, **__: (a, b)
    with doubled(), mock.patch.object(dsa, "apply_rotary_pos_emb_interleave", same):
        top = dsa.GlmMoeDsaIndexer.forward(own, torch.zeros((1, len(q), 1)), None, (None, None),
                                           mask, None)[0]
    return [[j for j in row.tolist() if j <= t] for t, row in enumerate(top)]


class Given:
    """Stands for a projection whose result is given."""

    def __init__(self, result):
        self.result, self.weight = result, result

    def __call__(self, _):
        return self.result


def by_kpool(q, keys, w, c):
    """Of each pool the last key alone has a gate that counts, so that it is the pool's key."""
    ape = torch.full((c.stride, c.d), -1e30, dtype=torch.float64)
    ape[-1] = 0
    cls = glm5.Glm5NextTextIndexer
    own = SimpleNamespace(
        n_heads=c.heads, head_dim=c.d, softmax_scale=c.scale, index_topk=c.k * c.stride,
        index_kpool=c.stride, index_kpool_always_select_tail=True, wq_b=lambda _: t64(q)[None],
        wk=lambda _: t64(keys)[None], k_norm=lambda a: a, index_kpool_compress_ape=ape,
        index_kpool_compress_gate=torch.zeros((c.d, 1), dtype=torch.float64))
    own.weights_proj = Given(t64(w)[None] * c.heads**0.5)
    for name in ["get_visible_tokens", "get_pooled_states", "append_visible_tail"]:
        setattr(own, name, types.MethodType(getattr(cls, name), own))
    with doubled():
        top = cls.forward(own, torch.zeros((1, len(q), 1), dtype=torch.float64), None,
                          torch.ones((1, len(q)), dtype=torch.bool), None)[0]
    return [[j for j in row.tolist() if j >= 0] for row in top]


def by_csa(q, keys, w, c):
    bias = torch.full((c.stride, 2 * c.d), -1e30, dtype=torch.float64)
    bias[-1, c.d:] = 0
    zero, same = torch.zeros((1, len(q), 1)), lambda a, *_, **__: a
    scorer = SimpleNamespace(softmax_scale=c.scale, weights_scaling=1.0,
                             weights_proj=Given(t64(w)[None]))
    own = SimpleNamespace(
        compress_rate=c.stride, num_heads=c.heads, head_dim=c.d, index_topk=c.k,
        kv_proj=lambda _: torch.cat([t64(keys) * 0, t64(keys)], -1)[None],
        gate_proj=lambda _: torch.zeros((1, len(q), 2 * c.d), dtype=torch.float64),
        position_bias=bias, kv_norm=same, q_b_proj=lambda _: t64(q)[None],
        rotary_emb=lambda *_, **__: (None, None), rope_layer_type="compress",
        scorer=lambda *a: v4.DeepseekV4IndexerScorer.forward(scorer, *a))
    with doubled(), mock.patch.object(v4, "apply_rotary_pos_emb", same):
        top = v4.DeepseekV4Indexer.forward(own, zero, None, torch.arange(len(q))[None], None, 0)[0]
    return [[j for j in row.tolist() if j >= 0] for row in top]


def by_qsa(q, keys, w, c):
    """All keys of a block are its last one's, so that their mean is."""
    own = SimpleNamespace(
        index_head_dim=c.d, index_n_heads=c.heads, index_kv_heads=1, compress_ratio=c.stride,
        token_budget=c.k * c.stride, block_topk=c.k, layer_idx=0, q_layernorm=lambda a: a,
        k_layernorm=lambda a: a)
    last = np.minimum(np.arange(len(q)) // c.stride * c.stride + c.stride - 1, len(q) - 1)
    own.index_qk_proj = lambda _: torch.cat([t64(q), t64(keys[last])], -1)[None]
    same = lambda q, k=None, *_, **__: q
    mask = torch.ones((len(q), len(q)), dtype=torch.bool).tril()[None, None]
    ones = torch.ones((1, len(q), c.d))
    assert c.scale == number(c.d**-0.5)
    with doubled(), mock.patch.object(qwen4, "apply_rotary_pos_emb", same):
        top = qwen4.Qwen4ExpTextQSAIndexer.forward(own, torch.zeros((1, len(q), 1)), (ones, ones),
                                                   mask, None)[0, 0]
    return [torch.nonzero(row).flatten().tolist() for row in top]


def by_v41(q, keys, w, c, cand):
    """mlx-vlm's two levels: scores, candidate blocks, and the choice within blocks that are given."""
    lens = (mx.arange(1, len(q) + 1) // c.stride)[:, None]
    grouped = keys[c.stride - 1::c.stride]
    mask = None
    if cand is not None:
        mask = np.array([[j // c.block in row for j in range(len(grouped))] for row in cand])
        mask = mx.array(mask)[None]
    scores = v41._index_scores(mx.array(q.reshape(1, len(q), c.heads, c.d)), mx.array(grouped)[None],
                               mx.array(w)[None] * c.scale, lens, mask)
    order = np.array(mx.argsort(-scores, axis=-1))[0][:, :c.k]
    s = np.array(scores)[0]
    rows = [[j for j in row if np.isfinite(s[t, j])] for t, row in enumerate(order.tolist())]
    if not c.out:
        return rows, None
    kept = np.array(v41.select_candidate_blocks(scores, lens, c.out, c.block))[0]
    return rows, [sorted({j // c.block for j in np.flatnonzero(row)}) for row in kept]


def by_jax(s, c, cand):
    """The lower of equal scores first."""
    rows, out = [], []
    for t in range(len(s)):
        seen = (t + 1) // c.stride
        mine = np.array([j for j in range(seen) if cand is None or j // c.block in cand[t]], int)
        if len(mine):
            top = jax.lax.top_k(jnp.asarray(s[t, mine]), min(c.k, len(mine)))[1]
            rows.append(mine[np.asarray(top)].tolist())
        else:
            rows.append([])
        blocks = sorted({j // c.block for j in mine.tolist()} | {(seen - 1) // c.block}) \
            if seen and c.block else []
        top = [max([s[t, j] for j in mine.tolist() if j // c.block == block], default=np.inf)
               for block in blocks]
        if blocks:
            top[-1] = np.inf
            top = jax.lax.top_k(jnp.asarray(top), min(c.out, len(blocks)))[1]
            out.append(sorted(np.array(blocks)[np.asarray(top)].tolist()))
        else:
            out.append([])
    return rows, out


SOURCES = {
    "dsa": lib("transformers", "GlmMoeDsaIndexer.forward (float64)"),
    "kpool": lib("transformers", "Glm5NextTextIndexer.forward (float64)"),
    "csa": lib("transformers", "DeepseekV4Indexer.forward (float64)"),
    "qsa": lib("transformers", "Qwen4ExpTextQSAIndexer.forward (float64)"),
    "v41": lib("mlx-vlm", "models.deepseek_v41 _index_scores, select_candidate_blocks"),
    "jax": lib("jax", "jax.lax.top_k of exact scores (the lower of equals first)"),
}


def index_topk():
    for name, counts, heads, d, k, stride, kind, block, out, given in [
        ("rows", [14], 3, 4, 5, 1, "dsa", 0, 0, None),
        ("one_kept", [7], 3, 4, 1, 1, "dsa", 0, 0, None),
        ("all_fit", [6], 3, 4, 9, 1, "dsa", 0, 0, None),
        ("wide", [5], 1, 67, 2, 1, "dsa", 0, 0, None),
        ("pools", [19], 3, 4, 2, 4, "kpool", 0, 0, None),
        ("pools_of_three", [14], 3, 4, 2, 3, "kpool", 0, 0, None),
        ("pools_all_fit", [11], 3, 4, 3, 4, "kpool", 0, 0, None),
        ("groups", [23], 3, 4, 3, 4, "csa", 0, 0, None),
        ("groups_of_two", [13], 3, 4, 2, 2, "csa", 0, 0, None),
        ("no_weights", [19], 3, 4, 2, 4, "qsa", 0, 0, None),
        ("candidates_out", [25], 3, 4, 4, 1, "v41", 3, 3, None),
        ("candidates_out_of_two", [26], 3, 4, 3, 2, "v41", 4, 2, None),
        ("newest_block_alone", [9], 3, 4, 2, 1, "v41", 2, 1, None),
        ("candidates_given", [20], 3, 4, 3, 1, "v41", 3, 0, 3),
        ("candidates_given_of_two", [22], 3, 4, 2, 2, "v41", 3, 0, 2),
        ("candidates_given_and_out", [18], 3, 4, 3, 1, "jax", 3, 2, 3),
        ("candidates_foreign", [12], 2, 4, 2, 1, "jax", 2, 2, 2),
        ("ties", [16], 2, 4, 5, 1, "jax", 0, 0, None),
        ("ties_at_zero", [14], 3, 4, 4, 1, "jax", 0, 0, None),
        ("ties_at_zero_in_groups", [22], 2, 4, 2, 4, "jax expand", 0, 0, None),
        ("ties_of_blocks", [20], 2, 4, 3, 1, "jax", 3, 3, None),
        ("all_equal", [9], 2, 3, 4, 1, "jax", 2, 2, None),
        ("negative_weights", [12], 2, 4, 3, 1, "jax", 0, 0, None),
        ("conversations", [9, 1, 7], 3, 4, 3, 1, "dsa", 0, 0, None),
        ("conversations_pools", [9, 3, 10], 3, 4, 1, 4, "kpool", 0, 0, None),
        ("conversations_candidates", [11, 8], 3, 4, 2, 1, "v41", 2, 2, None),
    ]:
        r = rng("index_topk", name)
        rows, ranges = conversations(*((0, count) for count in counts))
        t, exact = len(rows), kind.startswith("jax")
        expand = kind in ("kpool", "qsa", "jax expand")
        scale = number(0.5 if exact else d**-0.5)
        c = SimpleNamespace(heads=heads, d=d, k=k, stride=stride, scale=scale, block=block, out=out,
                            expand=expand, width=k * stride + stride - 1 if expand else k)
        while True:
            small = lambda *shape: dyadic(r, *shape, step=1, span=2)
            make = small if exact else lambda *shape: np.round(normal(r, *shape), 2)
            q, keys, w = make(t, heads * d), make(t, d), make(t, heads)
            if kind in ("qsa",):
                w = None
            elif name != "negative_weights":
                w = np.abs(w)
            if name.startswith("ties_at_zero"):  # keys and queries of opposite signs, but for a few
                q, keys = np.abs(q), -np.abs(keys)
                keys[4], keys[11] = 1, 1
            if name == "all_equal":
                keys[:] = keys[0]
            cand = None
            if given:
                cand = np.full((t, given), -1, np.int32)
                for row in range(t):
                    n = -(-((row + 1) // stride) // block)
                    some = r.permutation(n)[:given] if n else []
                    cand[row, :len(some)] = some
                if name == "candidates_foreign":  # blocks not seen yet, none, and one twice
                    cand[3], cand[5], cand[7], cand[9] = [9, 0], [-1, -1], [2, 2], [-7, 1]
            lists, cands, margin, got, got_cands = [], [], np.inf, [], []
            for part in ranges:
                a, b, x = q[part], keys[part], None if w is None else w[part]
                near = None if cand is None else cand[part]
                s = seen_scores(a, b[stride - 1::stride], x, scale, stride, heads)
                for row in range(len(a)):
                    one, blocks, edge = by_formula(s, c, near, row)
                    lists.append(one)
                    cands.append(blocks + [-1] * (out - len(blocks)))
                    margin = min(margin, edge)
                library = {"dsa": by_dsa, "kpool": by_kpool, "csa": by_csa, "qsa": by_qsa}
                if kind == "v41":
                    found, blocks = by_v41(a, b, x, c, near)
                elif exact:
                    found, blocks = by_jax(s, c, near)
                else:
                    found, blocks = library[kind](a, b, x, c), None
                for row, one in enumerate(found):
                    if kind in ("kpool", "qsa"):  # positions already
                        one = sorted(one) + [-1] * (c.width - len(one))
                    else:
                        one = listed(one, row, (row + 1) // stride, stride, expand, c.width)
                    got.append(one)
                if out:
                    got_cands += [one + [-1] * (out - len(one)) for one in blocks]
            if exact or margin > 1e-3:  # far enough apart that float32 keeps the order
                break
        if name.startswith("ties"):
            assert margin == 0, name
        params = {"heads": heads, "k": k, "scale": scale, "stride": stride, "expand": expand,
                  "cand_block": block, "cand_out": out}
        tensors = {"rows": rows, "q": q, "keys": keys}
        tensors |= {} if w is None else {"w": w}
        tensors |= {} if cand is None else {"cand": cand}
        outputs, ref = {"list": np.array(got, np.int32)}, {"list": np.array(lists, np.int32)}
        if out:
            outputs["cand_out"] = np.array(got_cands, np.int32)
            ref["cand_out"] = np.array(cands, np.int32)
        case("index_topk", name, SOURCES[kind.split()[0]], params, tensors, outputs, 0.0, ref)


def main():
    for package in ["numpy", "torch", "jax", "mlx", "transformers", "mlx-vlm"]:
        assert version(package).split("+")[0] == m.PINS[package], package
    for make in [short_conv, delta, pool, index_topk]:
        make()
    for op, rows in m.CASES.items():
        text = "[\n" + ",\n".join(json.dumps(r, separators=(",", ":"), allow_nan=False)
                                  for r in rows) + "\n]\n"
        worst = max(r["f64_diff"] for r in rows)
        print(f"{op:10} {len(rows):3} cases {len(text):6} bytes, f64_diff up to {worst}")
        assert len(text) <= m.MAX_BYTES, op
        (m.OPS / op / "cases.json").write_text(text)


if __name__ == "__main__":
    main()
