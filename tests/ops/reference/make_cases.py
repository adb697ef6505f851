#!/usr/bin/env python3
"""Write shaders/src/ops/<op>/cases.json: numbers the ops are compared with.

Every expected value comes from a published library's own function (mostly torch, jax or
transformers in float64). The same case is computed twice more, and the script stops if they
disagree: in numpy float64 by the plain formula (the difference is recorded as `f64_diff`), and
in float32 by another library (which shows that the tolerance can be met in float32).

README.md beside this file has the packages and the file format.
"""
import json
import os
import sys
import zlib
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.dont_write_bytecode = True

import numpy as np
import torch
import torch.nn.functional as F
import jax
import jax.numpy as jnp
import mlx.core as mx
import mlx.nn as mnn
from diffusers.models.embeddings import get_1d_rotary_pos_embed
from randomgen import Philox
from scipy.special import log_softmax as scipy_log_softmax
from transformers import OlmoeConfig
from transformers.generation.logits_process import (
    MinPLogitsWarper, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper)
from transformers.models.deepseek_v4.modeling_deepseek_v4 import DeepseekV4Experts
from transformers.models.glm.modeling_glm import apply_rotary_pos_emb as rope_pair
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as rope_half
from transformers.models.olmoe.modeling_olmoe import OlmoeExperts, OlmoeTopKRouter

jax.config.update("jax_enable_x64", True)
mx.set_default_device(mx.cpu)
torch.set_num_threads(1)
torch.set_grad_enabled(False)

OPS = Path(__file__).resolve().parents[3] / "shaders" / "src" / "ops"
PINS = {"numpy": "2.4.6", "torch": "2.15.0", "jax": "0.10.2", "mlx": "0.32.4", "scipy": "1.17.1",
        "transformers": "5.23.0", "diffusers": "0.42.1", "randomgen": "2.5.1"}
MAX_BYTES = 60_000

CASES = {}


def lib(package, what):
    return f"{package} {PINS[package]} {what}"


def rng(op, name):
    return np.random.Generator(np.random.PCG64(zlib.crc32(f"{op}/{name}".encode())))


def normal(r, *shape, scale=1.0):
    """Four decimals, for short files; their float32 values still use the whole mantissa."""
    return np.round(r.standard_normal(shape) * scale, 4).astype(np.float32)


def dyadic(r, *shape, step=0.125, span=64):
    """Multiples of `step`: sums and products of these are exact in float32."""
    return (r.integers(-span, span + 1, shape) * step).astype(np.float32)


def t64(a):
    return torch.from_numpy(np.asarray(a, np.float64))


def t32(a):
    return torch.from_numpy(np.asarray(a, np.float32))


def number(v):
    """The float whose shortest decimal is the float32's shortest decimal."""
    v = np.float32(v)
    assert np.isfinite(v)
    d = float(str(v))
    assert np.float32(d) == v
    return d


def tensor(a):
    a = np.asarray(a)
    if np.issubdtype(a.dtype, np.integer):
        data = [int(v) for v in a.ravel()]
        assert all(abs(v) <= 1 << 24 for v in data)
    else:
        data = [number(v) for v in a.ravel()]
    return {"shape": list(a.shape), "data": data}


def size(a):
    return float(np.max(np.abs(np.asarray(a, np.float64)), initial=0.0))


def case(op, name, source, params, tensors, outputs, tolerance, formula, second=None, **more):
    """`outputs` from the library, `formula` from numpy float64, `second` in float32."""
    stored, worst = {}, 0.0
    for key, got in outputs.items():
        got, want = np.asarray(got), np.asarray(formula[key])
        assert got.shape == want.shape, (op, name, key, got.shape, want.shape)
        if np.issubdtype(got.dtype, np.integer):
            assert (got == want).all(), (op, name, key)
            if second and key in second:
                assert (got == np.asarray(second[key])).all(), (op, name, key)
            stored[key] = got
            continue
        top = size(want)
        if got.dtype == np.float64 and top:
            assert size(got - want) / top < 1e-12, (op, name, key, size(got - want) / top)
        kept = got.astype(np.float32)
        diff = size(kept.astype(np.float64) - want)
        worst = max(worst, diff / top if top else diff)
        assert worst <= 1e-7, (op, name, key, worst)
        if second and key in second:
            off = size(np.asarray(second[key], np.float64) - want)
            assert off <= tolerance / 2 * top, (op, name, key, off / top, tolerance)
        stored[key] = kept
    row = {"name": name, "from": source, "f64_diff": float(f"{worst:.1e}"), "params": params,
           "tensors": {k: tensor(v) for k, v in tensors.items()},
           "outputs": {k: tensor(v) for k, v in stored.items()},
           "tolerance": tolerance, **more}
    rows = CASES.setdefault(op, [])
    assert name not in [r["name"] for r in rows], name
    rows.append(row)


# ---------------------------------------------------------------- gather, take

def gather():
    source = lib("jax", "jnp.take(mode='fill', fill_value=0), -1 sent past the end")
    for name, n, w, ids in [
        ("plain", 7, 5, [0, 6, 3, 3]),
        ("absent", 6, 16, [2, -1, 5, -1, 0]),
        ("only_absent", 3, 4, [-1]),
        ("one_row", 1, 33, [0, 0, -1]),
        ("one_wide", 9, 1, [8, 0, -1, 4, 4, 7]),
        ("long", 31, 17, [30, 1, 29, -1, 0, 15, 16, 30, 2]),
    ]:
        table = normal(rng("gather", name), n, w)
        ids = np.array(ids, np.int32)
        y = jnp.take(table, np.where(ids < 0, n, ids), axis=0, mode="fill", fill_value=0)
        ref = np.concatenate([table, np.zeros((1, w), np.float32)])[ids]
        case("gather", name, source, {}, {"ids": ids[:, None], "table": table}, {"y": y}, 0.0,
             {"y": ref})


def take():
    source = lib("numpy", "numpy.take(axis=0)")
    for name, t, w, rows in [
        ("last", 5, 16, [4]),
        ("some", 7, 5, [0, 3, 6]),
        ("reversed", 4, 33, [3, 2, 1, 0]),
        ("repeated", 3, 7, [1, 1, 0, 2, 1]),
        ("one_by_one", 1, 1, [0]),
        ("all", 6, 1, [0, 1, 2, 3, 4, 5]),
    ]:
        x = normal(rng("take", name), t, w)
        rows = np.array(rows, np.int32)
        y = np.take(x, rows, axis=0)
        second = torch.index_select(t32(x), 0, torch.from_numpy(rows)).numpy()
        case("take", name, source, {}, {"x": x, "rows": rows}, {"y": y}, 0.0,
             {"y": x[rows]}, {"y": second})


# ---------------------------------------------------------------- norm

def norm():
    source = lib("torch", "torch.nn.functional.rms_norm (float64)")
    tol = 2e-6
    for name, t, w, groups, weight, eps, scales in [
        # scales: the size of each row, 0 for a row of zeros
        ("plain", 3, 16, 1, "none", 1e-5, None),
        ("weight", 5, 32, 1, "full", 1e-6, None),
        ("weight_shared_one_group", 3, 33, 1, "shared", 1e-5, None),
        ("groups_none", 3, 32, 4, "none", 1e-6, None),
        ("groups_shared", 3, 32, 4, "shared", 1e-5, None),
        ("groups_full", 3, 32, 4, "full", 1e-5, None),
        ("groups_odd_full", 2, 33, 3, "full", 1e-6, None),
        ("groups_odd_shared", 2, 35, 5, "shared", 1e-5, None),
        ("groups_of_one", 2, 6, 6, "full", 1e-5, None),
        ("large_eps", 3, 16, 1, "full", 0.1, [0.3, 1.0, 0.1]),
        ("large_eps_groups", 3, 28, 4, "shared", 0.1, [0.3, 1.0, 0.1]),
        ("tiny", 3, 16, 1, "full", 1e-5, [1e-4] * 3),
        ("tiny_small_eps", 3, 16, 1, "none", 1e-6, [1e-4] * 3),
        ("tiny_groups", 2, 24, 4, "full", 1e-6, [1e-4] * 2),
        ("huge", 3, 16, 1, "full", 1e-5, [1e4] * 3),
        ("huge_groups", 2, 24, 4, "shared", 1e-6, [1e4] * 2),
        ("zeros", 2, 16, 1, "full", 1e-5, [0.0, 0.0]),
        ("mixed_rows", 4, 21, 1, "full", 1e-5, [1.0, 0.0, 1e-4, 1e4]),
        ("mixed_rows_groups", 4, 20, 4, "shared", 1e-6, [0.0, 1e4, 1.0, 1e-4]),
        ("one_wide", 3, 1, 1, "full", 1e-5, None),
        ("wide", 1, 100, 1, "full", 1e-6, None),
        ("mixed_groups", 2, 24, 4, "full", 1e-5, None),
    ]:
        r = rng("norm", name)
        x = normal(r, t, w)
        if scales is not None:
            x = (x * np.array(scales)[:, None]).astype(np.float32)
        if name == "mixed_groups":  # groups of one row differ: zero, tiny, huge, ordinary
            x = (x * np.repeat([0.0, 1e-4, 1e4, 1.0], 6)).astype(np.float32)
        x[x == 0] = 0.0
        g = w // groups
        n = {"none": 0, "shared": g, "full": w}[weight]
        wt = (1 + normal(r, n, scale=0.3)).astype(np.float32) if n else None
        tensors = {"x": x} if wt is None else {"x": x, "weight": wt}

        def run(grouped, make, mul):
            if weight == "full" and groups > 1:  # the library's weight spans one group
                return mul(make(grouped, None))
            return make(grouped, wt)

        y = run(t64(x).reshape(t, groups, g),
                lambda a, v: F.rms_norm(a, (g,), None if v is None else t64(v), eps),
                lambda a: torch.mul(a, t64(wt).reshape(groups, g)))
        second = run(mx.array(x).reshape(t, groups, g),
                     lambda a, v: mx.fast.rms_norm(a, None if v is None else mx.array(v), eps),
                     lambda a: mx.multiply(a, mx.array(wt).reshape(groups, g)))
        a = x.astype(np.float64).reshape(t, groups, g)
        ref = (a / np.sqrt((a * a).mean(-1, keepdims=True) + eps)).reshape(t, w)
        if weight == "shared":
            ref = ref * np.tile(wt.astype(np.float64), groups)
        elif weight == "full":
            ref = ref * wt.astype(np.float64)
        case("norm", name, source, {"kind": "rms", "groups": groups, "weight": weight, "eps": eps},
             tensors, {"y": y.reshape(t, w).numpy()}, tol, {"y": ref},
             {"y": np.array(second).reshape(t, w)})


# ---------------------------------------------------------------- matmul

def matmul():
    source = lib("torch", "torch.nn.functional.linear (float64)")

    def add(name, x, w, fmt, tol):
        if fmt != "f32":
            kind = {"bf16": torch.bfloat16, "f16": torch.float16}[fmt]
            assert (t32(w).to(kind).to(torch.float32).numpy() == w).all(), name
        y = F.linear(t64(x), t64(w)).numpy()
        ref = np.einsum("ti,oi->to", x.astype(np.float64), w.astype(np.float64))
        second = np.array(mx.array(x) @ mx.array(w).T)
        case("matmul", name, source, {"format": fmt}, {"x": x, "w": w}, {"y": y}, tol,
             {"y": ref}, {"y": second})

    def in_format(w, fmt):
        if fmt == "f32":
            return w
        kind = {"bf16": torch.bfloat16, "f16": torch.float16}[fmt]
        return t32(w).to(kind).to(torch.float32).numpy()

    for fmt, t, i, o in [
        ("f32", 1, 1, 1), ("f32", 3, 1, 7), ("f32", 1, 31, 5), ("f32", 3, 31, 1),
        ("f32", 3, 33, 7), ("f32", 1, 64, 5), ("f32", 3, 64, 1), ("f32", 1, 100, 5),
        ("f32", 3, 100, 1),
        ("bf16", 1, 1, 5), ("bf16", 3, 31, 7), ("bf16", 1, 33, 5), ("bf16", 3, 64, 1),
        ("bf16", 1, 100, 1),
        ("f16", 3, 33, 5), ("f16", 1, 64, 5), ("f16", 3, 31, 1),
    ]:
        name = f"{fmt}_{t}x{i}x{o}"
        r = rng("matmul", name)
        add(name, normal(r, t, i), in_format(normal(r, o, i), fmt), fmt, 2e-6)

    # All sums exact in float32, whatever their order.
    for fmt in ["f32", "bf16", "f16"]:
        name = f"{fmt}_exact"
        r = rng("matmul", name)
        add(name, dyadic(r, 3, 33, span=16), dyadic(r, 5, 33, span=16), fmt, 0.0)
    # The ends of the half formats: subnormal and largest f16, wide-ranging bf16.
    r = rng("matmul", "f16_subnormal")
    w = (r.integers(-1023, 1024, (3, 9)) * 2.0**-24).astype(np.float32)
    w[0, 0], w[1, 1], w[2, 2] = 2.0**-24, 2.0**-14, -(2.0**-14 - 2.0**-24)
    add("f16_subnormal", dyadic(r, 2, 9, step=1, span=8), w, "f16", 0.0)
    w = np.array([[65504, -65504, 32768], [1, -65504, 2048], [65504, 65504, 65504]], np.float32)
    add("f16_largest", np.array([[1, 0.5, 2], [-1, 1, 0.25]], np.float32), w, "f16", 0.0)
    r = rng("matmul", "bf16_small")
    add("bf16_small", normal(r, 2, 9), in_format(normal(r, 3, 9) * np.float32(1e-20), "bf16"),
        "bf16", 2e-6)
    r = rng("matmul", "bf16_large")
    add("bf16_large", normal(r, 2, 9), in_format(normal(r, 3, 9) * np.float32(1e20), "bf16"),
        "bf16", 2e-6)


# ---------------------------------------------------------------- rope

def rope():
    table = lib("diffusers", "get_1d_rotary_pos_embed(freqs_dtype=float64)")
    for name, style, heads, d, start, end, theta, pos in [
        ("half", "half", 2, 8, 0, 8, 1e4, [0, 1, 7, 1000, 30000]),
        ("pair", "pair", 2, 8, 0, 8, 1e4, [0, 1, 7, 1000, 30000]),
        ("half_wide", "half", 1, 64, 0, 64, 1e6, [0, 1, 7, 1000, 30000]),
        ("pair_wide", "pair", 1, 64, 0, 64, 1e6, [0, 1, 7, 1000, 30000]),
        ("half_first", "half", 3, 16, 0, 4, 1e7, [0, 1, 7, 1000, 30000]),
        ("pair_first", "pair", 3, 16, 0, 4, 1e7, [0, 1, 7, 1000, 30000]),
        ("half_last", "half", 2, 12, 4, 12, 1e4, [7, 30000, 1]),
        ("pair_last", "pair", 2, 12, 4, 12, 1e4, [7, 30000, 1]),
        ("half_middle_odd", "half", 3, 9, 1, 7, 5e5, [1000, 0, 7]),
        ("pair_middle_odd", "pair", 3, 9, 1, 7, 5e5, [1000, 0, 7]),
        ("half_two_dims", "half", 4, 2, 0, 2, 1e4, [1, 30000]),
        ("pair_two_dims", "pair", 4, 2, 0, 2, 1e4, [1, 30000]),
        ("half_one_row", "half", 1, 6, 0, 6, 1e4, [1000]),
        ("half_far", "half", 1, 16, 0, 16, 1e4, [131071, 1000000]),
        ("pair_far", "pair", 1, 16, 0, 16, 1e4, [131071, 1000000]),
        ("half_equal_rows", "half", 2, 8, 0, 8, 1e4, [7, 7, 7]),
    ]:
        t, n, h = len(pos), end - start, (end - start) // 2
        x = normal(rng("rope", name), t, heads * d)
        pos = np.array(pos, np.int32)
        turn = get_1d_rotary_pos_embed(n, pos.astype(np.float64), theta, use_real=False,
                                       freqs_dtype=torch.float64)
        assert turn.dtype == torch.complex128 and turn.shape == (t, h)
        cos, sin = (torch.cat([p, p], -1)[None] for p in (turn.real, turn.imag))
        q = t64(x).reshape(t, heads, d).transpose(0, 1)[None]
        part = q[..., start:end]
        apply, where = {"half": (rope_half, "models.llama"),
                        "pair": (rope_pair, "models.glm")}[style]
        rotated, _ = apply(part, part, cos, sin)
        y = torch.cat([q[..., :start], rotated, q[..., end:]], -1)
        y = y[0].transpose(0, 1).reshape(t, heads * d).numpy()

        a = x.astype(np.float64).reshape(t, heads, d)
        angle = pos[:, None].astype(np.float64) * theta ** (-2.0 * np.arange(h) / n)
        c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
        i = start + (np.arange(h) if style == "half" else 2 * np.arange(h))
        j = i + (h if style == "half" else 1)
        ref = a.copy()
        ref[:, :, i] = a[:, :, i] * c - a[:, :, j] * s
        ref[:, :, j] = a[:, :, j] * c + a[:, :, i] * s
        # MLX turns by a float32 angle: a check of the layout where positions are small.
        for row in np.flatnonzero(pos <= 7):
            m = mx.fast.rope(mx.array(x.reshape(t, heads, d)[row, :, start:end])[None, :, None],
                             n, traditional=style == "pair", base=theta, scale=1.0,
                             offset=int(pos[row]))
            off = np.array(m)[0, :, 0] - ref[row, :, start:end]
            assert size(off) < 5e-6 * size(ref), (name, row, size(off))
        case("rope", name,
             f"{table}; {lib('transformers', where + ' apply_rotary_pos_emb (float64)')}",
             {"style": style, "heads": heads, "head_width": d, "start": start, "end": end,
              "theta": theta},
             {"x": x, "pos": pos[:, None]}, {"y": y}, 1e-6, {"y": ref.reshape(t, heads * d)})


# ---------------------------------------------------------------- attend

def attend():
    source = lib("torch", "torch.nn.functional.scaled_dot_product_attention (float64, causal)")
    for name, t, heads, kv, kw, vw, scale in [
        ("mha", 4, 4, 4, 8, 8, 8**-0.5),
        ("mha_long", 9, 2, 2, 8, 8, 0.5),
        ("gqa", 3, 6, 2, 8, 8, 8**-0.5),
        ("gqa_long", 9, 6, 2, 4, 4, 0.5),
        ("mqa", 4, 3, 1, 8, 8, 8**-0.5),
        ("wide_values", 3, 2, 2, 8, 12, 8**-0.5),
        ("narrow_values", 3, 6, 2, 12, 5, 12**-0.5),
        ("one_row", 1, 4, 2, 8, 8, 8**-0.5),
        ("one_row_one_head", 1, 1, 1, 3, 5, 1.0),
        ("odd", 5, 3, 3, 7, 9, 7**-0.5),
        ("wide", 3, 1, 1, 64, 32, 0.125),
        ("saturated", 9, 2, 2, 6, 4, 1.0),
        ("saturated_gqa", 4, 6, 2, 8, 6, 1.0),
        ("high_scores", 5, 2, 1, 8, 6, 1.0),
        ("low_scores", 5, 2, 1, 8, 6, 1.0),
        ("equal_scores_no_query", 4, 2, 2, 8, 8, 8**-0.5),
        ("equal_scores_same_keys", 9, 6, 2, 4, 3, 0.5),
    ]:
        r = rng("attend", name)
        q, k, v = normal(r, t, heads * kw), normal(r, t, kv * kw), normal(r, t, kv * vw)
        scale = float(np.float32(scale))
        if name.startswith("saturated"):  # integers: scores exact, gaps of 1 and far more
            q, k = dyadic(r, t, heads * kw, step=1, span=8), dyadic(r, t, kv * kw, step=1, span=8)
        if name in ("high_scores", "low_scores"):  # every score about +-200: exp alone overflows
            sign = 1 if name == "high_scores" else -1
            q = 8 + dyadic(r, t, heads * kw, span=4)
            k = sign * (3 + dyadic(r, t, kv * kw, span=1))
        if name == "equal_scores_no_query":
            q = np.zeros_like(q)
        if name == "equal_scores_same_keys":
            k = np.repeat(k[:1], t, 0)

        def split(a, n):
            return a.reshape(t, n, -1).transpose(1, 0, 2)[None]

        parts = split(q, heads), split(k, kv), split(v, kv)
        y = F.scaled_dot_product_attention(*(t64(p.copy()) for p in parts), is_causal=True,
                                           scale=scale, enable_gqa=heads != kv)
        second = mx.fast.scaled_dot_product_attention(*(mx.array(p.copy()) for p in parts),
                                                      scale=scale, mask="causal")
        ref = np.zeros((t, heads, vw))
        a, b, c = (p[0].astype(np.float64) for p in parts)
        for h in range(heads):
            g = h // (heads // kv)
            for row in range(t):
                score = b[g, :row + 1] @ a[h, row] * scale
                p = np.exp(score - score.max())
                ref[row, h] = p / p.sum() @ c[g, :row + 1]
                if name == "high_scores":
                    assert score.min() > 100
                if name == "low_scores":
                    assert score.max() < -105
        ref = ref.reshape(t, heads * vw)
        case("attend", name, source,
             {"heads": heads, "kv_heads": kv, "k_width": kw, "v_width": vw, "scale": scale},
             {"q": q, "k": k, "v": v},
             {"y": y[0].transpose(0, 1).reshape(t, heads * vw).numpy()}, 5e-6, {"y": ref},
             {"y": np.array(second)[0].transpose(1, 0, 2).reshape(t, heads * vw)})


# ---------------------------------------------------------------- ew, glu

def ew():
    source = lib("torch", "torch.add(a, b, alpha=s) (float64)")
    for name, t, w, s, exact in [
        ("add", 3, 16, 1.0, True), ("subtract", 5, 7, -1.0, True), ("half", 3, 33, 0.5, True),
        ("nothing", 2, 9, 0.0, True), ("one_number", 1, 1, 2.5, True),
        ("add_any", 3, 31, 1.0, False), ("scaled_any", 3, 32, 0.3, False),
        ("minus_any", 1, 100, -1.75, False),
    ]:
        r = rng("ew", name)
        make = dyadic if exact else normal
        a, b = make(r, t, w), make(r, t, w)
        s = number(s)
        y = torch.add(t64(a), t64(b), alpha=float(np.float32(s))).numpy()
        ref = a.astype(np.float64) + float(np.float32(s)) * b.astype(np.float64)
        second = np.array(mx.array(a) + mx.array(np.float32(s)) * mx.array(b))
        case("ew", name, source, {"kind": "add", "s": s}, {"a": a, "b": b}, {"y": y},
             0.0 if exact else 1e-6, {"y": ref}, {"y": second})


def glu():
    def silu64(g):
        return g * np.exp(-np.logaddexp(0.0, -g))

    def add(name, g, u, limit=None):
        a, b = g.astype(np.float64), u.astype(np.float64)
        if limit is None:
            params = {"kind": "silu"}
            source = lib("torch", "torch.nn.functional.silu, mul (float64)")
            y = F.silu(t64(g)) * t64(u)
            ref = silu64(a) * b
            second = np.asarray(jax.nn.silu(jnp.asarray(g)) * u)
        else:
            params = {"kind": "silu_clamp", "limit": limit}
            source = lib("transformers", "DeepseekV4Experts._apply_gate (float64)")
            y = DeepseekV4Experts._apply_gate(SimpleNamespace(limit=limit, act_fn=F.silu),
                                              torch.cat([t64(g), t64(u)], -1))
            ref = silu64(np.minimum(a, limit)) * np.clip(b, -limit, limit)
            second = np.asarray(jax.nn.silu(jnp.minimum(g, limit)) * jnp.clip(u, -limit, limit))
        assert second.dtype == np.float32
        case("glu", name, source, params, {"g": g, "u": u}, {"y": y.numpy()}, 2e-6, {"y": ref},
             {"y": second})

    def f32(*rows):
        return np.array(rows, np.float32)

    edges = [-100.0, -88.75, -20.0, -1.0, -0.001, 0.0, 0.001, 1.0, 20.0, 88.75, 100.0]
    for name, t, w, scale in [("silu", 3, 16, 1.0), ("silu_odd", 5, 33, 3.0),
                              ("silu_one", 1, 1, 1.0), ("silu_small", 2, 17, 0.02)]:
        r = rng("glu", name)
        add(name, normal(r, t, w, scale=scale), normal(r, t, w))
    add("silu_edges", f32(edges, edges), f32([1.0] * 11, [-2.0] * 11))
    add("silu_far", f32([-1e4, -1000.0, -100.0, 100.0, 1000.0, 1e4]),
        f32([3.0, -3.0, 1e4, -1e4, 3.0, -3.0]))
    # Only negative gates, so that the largest value does not hide the small ones.
    for name, low, high in [("silu_negative", -20.0, -10.0), ("silu_very_negative", -80.0, -70.0)]:
        r = rng("glu", name)
        add(name, r.uniform(low, high, (2, 15)).astype(np.float32), normal(r, 2, 15))
    # Nothing may be left of these gates, and no NaN made of them, beside a small ordinary one.
    add("silu_vanishing", f32([-100.0, -104.0, -1e30, 0.01]), f32([1.0, 1e4, 1e8, 1.0]))
    for name, t, w, scale, limit in [("clamp", 3, 16, 2.0, 1.0), ("clamp_odd", 5, 31, 10.0, 7.0),
                                     ("clamp_never", 2, 9, 1.0, 1000.0)]:
        r = rng("glu", name)
        add(name, normal(r, t, w, scale=scale), normal(r, t, w, scale=scale), limit)
    add("clamp_edges", f32(edges, edges, edges), f32([100.0] * 11, [-100.0] * 11, [0.5] * 11), 10.0)
    add("clamp_at_limit", f32([7.0, 7.5, -7.0, -7.5, 6.5, 7.0]),
        f32([7.0, -7.0, 7.5, -7.5, 6.5, -6.5]), 7.0)


# ---------------------------------------------------------------- route

def route():
    source = lib("jax", "jax.nn.softmax, jax.lax.top_k (float64)")
    for name, t, e, k, renorm, scale in [
        ("e8_k2", 3, 8, 2, False, 1.0),
        ("e8_k2_renorm", 3, 8, 2, True, 1.0),
        ("e16_k4", 5, 16, 4, False, 2.5),
        ("e16_k4_renorm", 5, 16, 4, True, 2.5),
        ("e64_k8", 3, 64, 8, False, 1.0),
        ("e64_k8_renorm", 3, 64, 8, True, 2.5),
        ("k_is_e", 3, 8, 8, False, 1.0),
        ("k_is_e_renorm", 2, 7, 7, True, 2.5),
        ("one_expert", 2, 1, 1, True, 1.0),
        ("k1", 4, 9, 1, False, 1.0),
        ("k1_renorm", 4, 9, 1, True, 1.0),
        ("ties", 4, 8, 2, False, 1.0),
        ("ties_renorm", 4, 16, 4, True, 2.5),
        ("all_equal", 2, 64, 8, True, 1.0),
        ("peak", 3, 16, 4, False, 1.0),
        ("high_logits", 3, 16, 4, True, 1.0),
    ]:
        r = rng("route", name)
        while True:  # neighbours in the order far enough apart that float32 keeps the order
            x = normal(r, t, e, scale=2.0)
            if e == 1 or np.diff(np.sort(x, -1), axis=-1).min() > 1e-4:
                break
        if name.startswith("ties"):
            # a tie at the edge of the choice, one inside it, three at the top, two pairs
            x = np.round(normal(r, t, e) * 2) / 2
            x[0, [e - 1, 1]] = 4.0
            x[1, [2, e - 2]], x[1, 0] = 3.0, 5.0
            x[2, [e - 1, 3, 5]] = 4.5
            x[3, :] = -1.0
            x[3, [4, 6]] = 0.25
            x = x.astype(np.float32)
        if name == "all_equal":
            x[:] = np.array([[0.5], [-3.0]], np.float32)
        if name == "peak":
            x[0, 11], x[1, 0], x[2, 15] = 30.0, 25.0, 20.0
        if name == "high_logits":  # exp alone overflows
            steps = np.stack([r.permutation(128)[:e] for _ in range(t)]) / 16
            x = (steps + np.array([[200.0], [1000.0], [-500.0]])).astype(np.float32)
        top, ids = jax.lax.top_k(jnp.asarray(x, jnp.float64), k)
        p = jnp.take_along_axis(jax.nn.softmax(jnp.asarray(x, jnp.float64), -1), ids, -1)
        assert p.dtype == jnp.float64
        w = p / p.sum(-1, keepdims=True) if renorm else p
        w = np.asarray(w * scale)

        a = x.astype(np.float64)
        ref_ids = np.argsort(-a, -1, kind="stable")[:, :k]
        ex = np.exp(a - a.max(-1, keepdims=True))
        ref = np.take_along_axis(ex / ex.sum(-1, keepdims=True), ref_ids, -1)
        if renorm:
            ref = ref / ref.sum(-1, keepdims=True)
        ref = ref * scale
        tied = name.startswith("ties") or name == "all_equal"
        gate = OlmoeTopKRouter(OlmoeConfig(hidden_size=e, num_experts=e, num_experts_per_tok=k,
                                           norm_topk_prob=renorm))
        gate.weight.data = torch.eye(e)
        _, tw, ti = gate(t32(x))
        second = {"w": tw.numpy() * np.float32(scale)}
        if not tied:  # torch promises no order among equals
            second["ids"] = ti.numpy()
        case("route", name, source, {"score": "softmax", "k": k, "renorm": renorm, "scale": scale},
             {"logits": x}, {"ids": np.asarray(ids, np.int32), "w": w}, 2e-6,
             {"ids": ref_ids, "w": ref}, second)


# ---------------------------------------------------------------- moe

def moe():
    source = lib("transformers", "OlmoeExperts (float64, torch linear and silu)")
    for name, e, width, hidden, ids in [
        ("top2", 4, 16, 6, [[0, 3], [2, 1], [3, 2]]),
        ("one_expert", 1, 8, 4, [[0]]),
        ("top1", 3, 7, 5, [[2], [0], [2], [1]]),
        ("odd", 6, 7, 5, [[5, 0, 3], [1, 2, 4], [0, 5, 1], [3, 3, 2], [4, 1, 0]]),
        ("duplicate", 4, 10, 5, [[1, 1], [0, 2], [3, 3]]),
        ("zero_weight", 4, 6, 6, [[0, 1, 2], [3, 2, 1]]),
        ("every_expert", 5, 8, 3, [[4, 2, 0, 1, 3], [0, 1, 2, 3, 4]]),
        ("same_expert_everywhere", 3, 8, 6, [[1, 0], [1, 2], [2, 1], [0, 1]]),
        ("wide", 2, 33, 9, [[1, 0]]),
        ("scaled", 8, 6, 4, [[7, 0, 3, 5], [2, 6, 1, 4]]),
    ]:
        r = rng("moe", name)
        ids = np.array(ids, np.int32)
        t, k = ids.shape
        x = normal(r, t, width)
        gate = normal(r, e, hidden, width, scale=2 * width**-0.5)
        up = normal(r, e, hidden, width, scale=width**-0.5)
        down = normal(r, e, width, hidden, scale=hidden**-0.5)
        w = r.uniform(0.1, 1.0, (t, k))
        w = w / w.sum(-1, keepdims=True)
        if name == "scaled":
            w = w * 2.5
        w = w.astype(np.float32)
        if name == "zero_weight":
            w[0, 1], w[1, 2] = 0.0, 0.0
        config = OlmoeConfig(hidden_size=width, intermediate_size=hidden, num_experts=e,
                             num_experts_per_tok=k, hidden_act="silu")
        config._experts_implementation = "eager"
        experts = OlmoeExperts(config)
        experts.gate_up_proj.data = t64(np.concatenate([gate, up], 1))
        experts.down_proj.data = t64(down)
        y = experts(t64(x), torch.from_numpy(ids).long(), t64(w)).numpy()

        ref = np.zeros((t, width))
        for row in range(t):
            for rank in range(k):
                g, u, d = (m[ids[row, rank]].astype(np.float64) for m in (gate, up, down))
                a = g @ x[row].astype(np.float64)
                ref[row] += float(w[row, rank]) * (
                    d @ (a / (1 + np.exp(-a)) * (u @ x[row].astype(np.float64))))
        a, b = (mx.gather_mm(mx.array(x)[:, None, None, :], mx.array(m).swapaxes(1, 2),
                             rhs_indices=mx.array(ids)) for m in (gate, up))
        z = mx.gather_mm(mnn.silu(a) * b, mx.array(down).swapaxes(1, 2), rhs_indices=mx.array(ids))
        second = np.array((z.squeeze(-2) * mx.array(w)[..., None]).sum(1))
        case("moe", name, source, {"act": "silu", "k": k},
             {"x": x, "ids": ids, "w": w, "gate": gate, "up": up, "down": down}, {"y": y}, 5e-6,
             {"y": ref}, {"y": second})


# ---------------------------------------------------------------- sample

def greedy():
    source = lib("numpy", "numpy.argmax (the first of equals)")

    def add(name, x):
        ids = np.argmax(x, -1).astype(np.int32)[:, None]
        ref = np.array([[list(row).index(max(row))] for row in x])
        second = np.asarray(jnp.argmax(x, -1))[:, None]
        case("sample", name, source, {"kind": "greedy"}, {"logits": x}, {"ids": ids}, 0.0,
             {"ids": ref}, {"ids": second})

    add("greedy", normal(rng("sample", "greedy"), 4, 50))
    x = normal(rng("sample", "greedy_ties"), 6, 33)
    x[0, [5, 20]] = 9.0
    x[1, [0, 32]] = 9.0
    x[2, [31, 32]] = 9.0
    x[3, :] = 1.5
    x[4, :] = -7.0
    x[4, [8, 7, 9]] = -6.5
    x[5, 17:] = 4.0
    add("greedy_ties", x)
    one = np.float32(1.0)
    add("greedy_edges", np.array([
        [-0.0, 0.0, -1.0, -2.0], [-1.0, 0.0, -0.0, -2.0],
        [one, np.nextafter(one, np.float32(2)), one, 0.0],
        [-1e30, -2e30, -1e30, -3e38], [3e38, 1e38, 3e38, -3e38],
        [1000.0, 1000.0625, 999.9375, 1000.0]], np.float32))
    add("greedy_one_token", np.array([[-3.5], [0.0]], np.float32))


def philox():
    known = [  # published with the generator (Random123, kat_vectors, philox4x32 10 rounds)
        ([0, 0], [0, 0, 0, 0], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 2, [0xFFFFFFFF] * 4, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        ([0xA4093822, 0x299F31D0], [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
         [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
    ]

    def block(key, counter):
        number = sum(v << 32 * i for i, v in enumerate(counter))
        # the generator steps its counter before it makes a block
        made = Philox(key=key[0] | key[1] << 32, counter=(number - 1) % (1 << 128), number=4,
                      width=32)
        return [int(v) for v in made.random_raw(4)]

    for key, counter, want in known:
        assert block(key, counter) == want
    r = rng("sample", "philox")

    def draw(n):
        return [int(v) for v in r.integers(0, 1 << 32, n)]

    todo = [(key, counter) for key, counter, _ in known]
    todo += [([0, 0], [1, 0, 0, 0]), ([1, 0], [0, 0, 0, 0]), ([0, 1], [0, 0, 0, 0]),
             ([0, 0], [0, 1, 0, 0]), ([0, 0], [0, 0, 1, 0]), ([0, 0], [0, 0, 0, 1])]
    todo += [(draw(2), draw(4)) for _ in range(10)]
    for _ in range(5):  # jax has the generator too, with the key again as the counter's end
        key, low = draw(2), draw(2)
        state = jnp.array(key + low, jnp.uint32)
        kind = jax.lax.RandomAlgorithm.RNG_PHILOX
        _, out = jax.lax.rng_bit_generator(state, (4,), algorithm=kind)
        assert [int(v) for v in out] == block(key, low + key)
        todo.append((key, low + key))
    vectors = [{"key": k, "counter": c, "out": block(k, c)} for k, c in todo]
    case("sample", "philox", lib("randomgen", "Philox(number=4, width=32)"), {"kind": "philox"},
         {}, {}, 0.0, {}, vectors=vectors)


def filters():
    source = lib("transformers", "TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper, "
                 "MinPLogitsWarper; torch.softmax (float64)")

    def reference(x, temperature, top_k, top_p, min_p):
        a = x.astype(np.float64) / temperature
        keep = np.argsort(-a, kind="stable")
        if 0 < top_k < len(a):
            keep = keep[:top_k]
        p = np.exp(scipy_log_softmax(a[keep]))
        n, margin = len(keep), 1.0
        if top_p < 1:
            total = np.cumsum(p)
            n = int(np.argmax(total >= top_p)) + 1
            margin = float(np.abs(total - top_p).min())
        if min_p > 0:
            share = p / p.max()
            n = min(n, int((share >= min_p).sum()))
            # The best one's share of 1 is no near edge.
            margin = min([margin] + [float(abs(s - min_p)) for s in share[1:]])
        out = np.zeros(len(a))
        out[keep[:n]] = np.exp(scipy_log_softmax(a[keep[:n]]))
        return out, margin

    def warped(x, temperature, top_k, top_p, min_p):
        s = x[None]
        if temperature != 1:
            s = TemperatureLogitsWarper(temperature)(None, s)
        if top_k > 0:
            s = TopKLogitsWarper(top_k)(None, s)
        if top_p < 1:
            s = TopPLogitsWarper(top_p)(None, s)
        if min_p > 0:
            s = MinPLogitsWarper(min_p)(None, s)
        return torch.softmax(s, -1)[0].numpy()

    for name, v, scale, temperature, top_k, top_p, min_p in [
        ("filters_off", 17, 2.0, 1.0, 0, 1.0, 0.0),
        ("filters_cool", 33, 2.0, 0.5, 0, 1.0, 0.0),
        ("filters_warm", 33, 2.0, 2.0, 0, 1.0, 0.0),
        ("filters_top1", 17, 2.0, 1.0, 1, 1.0, 0.0),
        ("filters_top5", 50, 2.0, 1.0, 5, 1.0, 0.0),
        ("filters_top_k_beyond", 17, 2.0, 0.8, 100, 1.0, 0.0),
        ("filters_top_k_all", 16, 2.0, 1.0, 16, 1.0, 0.0),
        ("filters_top_p", 50, 2.0, 1.0, 0, 0.9, 0.0),
        ("filters_top_p_half", 50, 1.0, 1.0, 0, 0.5, 0.0),
        ("filters_top_p_tiny", 33, 1.0, 1.0, 0, 0.001, 0.0),
        ("filters_top_p_wide", 33, 1.0, 1.0, 0, 0.999, 0.0),
        ("filters_all", 64, 1.5, 0.7, 8, 0.8, 0.0),
        ("filters_all_warm", 64, 1.5, 1.5, 20, 0.95, 0.0),
        ("filters_all_odd", 31, 3.0, 1.3, 7, 0.6, 0.0),
        ("filters_peak", 33, 1.0, 1.0, 0, 0.95, 0.0),
        ("filters_flat", 20, 0.0, 0.7, 0, 1.0, 0.0),
        ("filters_offset", 31, 2.0, 0.5, 12, 0.9, 0.0),
        ("filters_one_token", 1, 1.0, 0.7, 3, 0.5, 0.0),
        ("filters_nearly_greedy", 20, 0.5, 0.05, 0, 1.0, 0.0),
        ("filters_min_p", 50, 2.0, 1.0, 0, 1.0, 0.1),
        ("filters_min_p_small", 50, 2.0, 0.8, 0, 1.0, 0.02),
        ("filters_min_p_one", 33, 1.0, 1.0, 0, 1.0, 1.0),
        ("filters_min_p_warm", 33, 2.0, 2.0, 0, 1.0, 0.3),
        ("filters_min_p_all", 64, 1.5, 1.2, 20, 0.95, 0.15),
        ("filters_min_p_all_peak", 31, 3.0, 1.3, 12, 0.9, 0.05),
    ]:
        r = rng("sample", name)
        while True:  # no near ties, no sum near the edge: float32 keeps the same tokens
            x = normal(r, v, scale=scale)
            if name == "filters_peak":
                x[13] = 20.0
            if name == "filters_offset":
                x = (np.round(x * 256) / 256 - 1000).astype(np.float32)
            if name == "filters_flat":
                x[:] = 0.75
            limits = (top_k, top_p, min_p)
            ref, margin = reference(x, temperature, *limits)
            apart = np.diff(np.sort(x)).min() if v > 1 else 1.0
            off = [reference(x, 1.0, *limits)]
            off += [reference(x, temperature, *(limits[:i] + (o,) + limits[i + 1:]))
                    for i, o in enumerate((0, 1.0, 0.0)) if limits[i] != o]
            if name.startswith("filters_all") and (ref > 0).sum() in [(p > 0).sum() for p, _ in off]:
                continue  # each filter, and their order, must matter
            if name == "filters_flat" or (margin > 1e-4 and apart > 1e-4):
                break
        y = warped(t64(x), temperature, *limits)
        assert ((y > 0) == (ref > 0)).all(), name
        second = warped(t32(x), temperature, *limits)
        assert ((second > 0) == (ref > 0)).all(), name
        case("sample", name, source,
             {"kind": "filters", "temperature": temperature, "top_k": top_k, "top_p": top_p,
              "min_p": min_p},
             {"logits": x}, {"probs": y}, 5e-6, {"probs": ref}, {"probs": second})


def main():
    for package, want in PINS.items():
        assert version(package) == want, f"{package} {version(package)}, not {want}"
    for make in [gather, norm, matmul, rope, attend, ew, glu, route, moe, take, greedy, philox,
                 filters]:
        make()
    texts = {}
    for op, rows in CASES.items():
        text = "[\n" + ",\n".join(json.dumps(r, separators=(",", ":"), allow_nan=False)
                                  for r in rows) + "\n]\n"
        worst = max(r["f64_diff"] for r in rows)
        print(f"{op:8} {len(rows):3} cases {len(text):6} bytes, f64_diff up to {worst}")
        texts[op] = text
    assert max(map(len, texts.values())) <= MAX_BYTES
    for op, text in texts.items():
        (OPS / op).mkdir(parents=True, exist_ok=True)
        (OPS / op / "cases.json").write_text(text)


if __name__ == "__main__":
    main()
