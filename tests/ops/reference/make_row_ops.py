#!/usr/bin/env python3
"""Write the cases of ops that are local to a row.

shaders/src/ops/<op>/cases.json for act, concat, dot, mix, spread, mhc_split and matmul_heads;
shaders/src/ops/<op>/kinds.json, beside what make_cases.py writes, for further kinds of norm, ew,
route, glu, matmul and gather. Rules, packages and file format: make_cases.py and README.md.
"""
from contextlib import contextmanager
from types import SimpleNamespace

from make_cases import (
    CASES, F, MAX_BYTES, OPS, PINS, case, dyadic, jax, jnp, lib, mx, normal, np, number, rng, t32,
    t64, torch, version)

import json

from scipy.special import erf, expit
from transformers.activations import SqrtSoftplusActivation
from transformers.models.deepseek_v4.modeling_deepseek_v4 import (
    DeepseekV4DecoderLayer, DeepseekV4GroupedLinear, DeepseekV4HashRouter,
    DeepseekV4HyperConnection, DeepseekV4TopKRouter)
from transformers.models.glm5_next.modeling_glm5_next import (
    Glm5NextTextHyperConnection, Glm5NextTextHyperHead, Glm5NextTextTopkRouter, l2norm)
from transformers.models.qwen3_5_moe.modeling_qwen3_5_moe import Qwen3_5MoeRMSNorm

NEW = ["act", "concat", "dot", "mix", "spread", "mhc_split", "matmul_heads"]


@contextmanager
def kept_float64():
    """Let modules that turn their input to float32 stay in float64."""
    plain_float, plain_type = torch.Tensor.float, torch.Tensor.type
    torch.Tensor.float = lambda self: self
    torch.Tensor.type = lambda self, *_: self
    try:
        yield
    finally:
        torch.Tensor.float, torch.Tensor.type = plain_float, plain_type


def f64(a):
    return np.asarray(a, np.float64)


def f32(*rows):
    return np.array(rows, np.float32)


# ---------------------------------------------------------------- functions of one number

def silu(v):
    return v * expit(v)


def gelu(v):
    return 0.5 * v * (1 + erf(v / np.sqrt(2)))


def gelu_tanh(v):
    return 0.5 * v * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3)))


def sqrt_softplus(v):
    return np.sqrt(np.logaddexp(0, v))


def signsqrt(v, m):
    return m.sign(v) * m.sqrt(m.maximum(m.abs(v), 1e-6))


def act():
    limit = {}
    kinds = {
        "linear": ("add, mul", lambda v: v, lambda v: v, lambda v: v),
        "silu": ("nn.functional.silu", F.silu, silu, jax.nn.silu),
        "sigmoid": ("sigmoid", torch.sigmoid, expit, jax.nn.sigmoid),
        "gelu": ("nn.functional.gelu", F.gelu, gelu, lambda v: jax.nn.gelu(v, approximate=False)),
        "gelu tanh": ("nn.functional.gelu(approximate='tanh')", lambda v: F.gelu(v, approximate="tanh"),
                      gelu_tanh, jax.nn.gelu),
        "relu": ("relu", torch.relu, lambda v: np.maximum(v, 0), jax.nn.relu),
        "tanh": ("tanh", torch.tanh, np.tanh, jnp.tanh),
        "exp": ("exp", torch.exp, np.exp, jnp.exp),
        "sqrt softplus": (None, SqrtSoftplusActivation(), sqrt_softplus,
                          lambda v: jnp.sqrt(jax.nn.softplus(v))),
        "signsqrt sigmoid": ("sign, clamp, sqrt, sigmoid",
                             lambda v: torch.sigmoid(v.sign() * v.abs().clamp_min(1e-6).sqrt()),
                             lambda v: expit(signsqrt(v, np)),
                             lambda v: jax.nn.sigmoid(signsqrt(v, jnp).astype(jnp.float32))),
        "clamp": ("clamp", lambda v: v.clamp(-limit["l"], limit["l"]),
                  lambda v: np.clip(v, -limit["l"], limit["l"]),
                  lambda v: jnp.clip(v, -limit["l"], limit["l"])),
    }

    def add(name, kind, x, scale=1.0, w=None, plus=0.0, at=0.0, tol=2e-6):
        what, library, formula, second = kinds[kind]
        source = lib("torch", f"{what} (float64)") if what else lib(
            "transformers", "SqrtSoftplusActivation (float64)")
        scale, plus, at = number(scale), number(plus), number(at)
        limit["l"] = float(np.float32(at))
        s, p = float(np.float32(scale)), float(np.float32(plus))
        v = t64(x) * s + (t64(w) if w is not None else 0.0) + p
        a = f64(x) * s + (f64(w) if w is not None else 0.0) + p
        b = jnp.asarray(x) * np.float32(s)
        b = (b + w if w is not None else b) + np.float32(p)
        assert b.dtype == jnp.float32
        tensors = {"x": x} if w is None else {"x": x, "w": w}
        case("act", name, source,
             {"kind": kind, "scale": scale, "add": plus, "limit": at, "weight": w is not None},
             tensors, {"y": library(v).numpy()}, tol, {"y": formula(a)},
             {"y": np.asarray(second(b))})

    edges = f32([-100.0, -88.75, -20.0, -1.0, -0.001, -1e-7, 0.0, 1e-7, 0.001, 1.0, 20.0, 88.75])
    for kind in kinds:
        at = 1.25 if kind == "clamp" else 0.0
        short = kind.replace(" ", "_")
        r = rng("act", short)
        add(short, kind, normal(r, 3, 13, scale=2.0), at=at)
        add(f"{short}_shifted", kind, normal(r, 2, 7), 0.3, normal(r, 7), 0.5, at)
        if kind != "exp":
            add(f"{short}_edges", kind, edges, at=at)
    r = rng("act", "more")
    add("half", "linear", dyadic(r, 3, 33), 0.5, tol=0.0)
    add("negated_one", "linear", dyadic(r, 1, 1), -1.0, tol=0.0)
    add("weight_only", "linear", dyadic(r, 4, 9), 0.0, dyadic(r, 9), tol=0.0)
    add("plus_only", "linear", dyadic(r, 2, 5), plus=2.25, tol=0.0)
    add("clamp_at_limit", "clamp", f32([7.0, 7.5, -7.0, -7.5, 6.5]), at=7.0, tol=0.0)
    add("silu_scaled_only", "silu", normal(r, 2, 11), 0.25)
    add("exp_negative", "exp", f32([-0.5, -3.0, -20.0, -87.0, -100.0, -1000.0, 0.0]))
    add("near_zero", "signsqrt sigmoid", f32([1e-6, -1e-6, 2e-6, -2e-6, 9e-7, -9e-7, 0.0, -0.0 + 0]))


# ---------------------------------------------------------------- concat, dot, mix, spread

def concat():
    source = lib("numpy", "numpy.concatenate(axis=1)")
    for name, kind, t, widths, order in [
        ("two", "f32", 3, [4, 3], "01"), ("one", "f32", 2, [5], "0"),
        ("same_twice", "f32", 3, [4], "00"), ("streams", "f32", 2, [7], "0000"),
        ("back_and_forth", "f32", 3, [2, 3, 1], "0210"), ("one_row", "f32", 1, [1, 1, 1], "210"),
        ("sixteen", "f32", 2, [1, 2], "0110100110010110"), ("ids", "i32", 3, [2, 3], "10"),
        ("ids_one", "i32", 1, [1], "0"), ("ids_again", "i32", 4, [3], "000"),
        ("wide", "f32", 2, [33, 31], "01"),
    ]:
        r = rng("concat", name)
        xs = [normal(r, t, w) if kind == "f32" else r.integers(-9, 1 << 20, (t, w)).astype(np.int32)
              for w in widths]
        parts = [xs[int(d)] for d in order]
        y = np.concatenate(parts, 1)
        ref = np.array([[v for p in parts for v in p[row]] for row in range(t)], y.dtype)
        case("concat", name, source, {"type": kind, "operands": len(xs), "order": order},
             {f"x{i}": x for i, x in enumerate(xs)}, {"y": y}, 0.0, {"y": ref},
             {"y": torch.cat([torch.from_numpy(p) for p in parts], 1).numpy()})


def dot():
    source = lib("torch", "torch.linalg.vecdot (float64)")
    for name, t, w, groups, scale, exact in [
        ("plain", 3, 16, 1, 1.0, False), ("groups", 3, 32, 4, 0.125, False),
        ("odd", 2, 35, 5, 7**-0.5, False), ("of_one", 2, 6, 6, 1.0, False),
        ("one_number", 1, 1, 1, -2.0, False), ("long", 2, 200, 2, 0.1, False),
        ("streams", 3, 132, 4, 33**-0.5, False), ("exact", 3, 99, 3, 0.5, True),
        ("nothing", 2, 8, 2, 0.0, True),
    ]:
        r = rng("dot", name)
        a, b = (dyadic(r, t, w, span=16) if exact else normal(r, t, w) for _ in range(2))
        scale = number(scale)
        s = float(np.float32(scale))
        split = [t64(v).reshape(t, groups, -1) for v in (a, b)]
        y = torch.linalg.vecdot(*split).numpy() * s
        ref = np.einsum("tgc,tgc->tg", *(f64(v).reshape(t, groups, -1) for v in (a, b))) * s
        second = (mx.array(a) * mx.array(b)).reshape(t, groups, -1).sum(-1) * mx.array(np.float32(s))
        case("dot", name, source, {"groups": groups, "scale": scale}, {"a": a, "b": b}, {"y": y},
             0.0 if exact else 2e-6, {"y": ref}, {"y": np.array(second)})


def mix():
    for name, t, n, d, mean, exact in [
        ("mean", 3, 4, 5, True, False), ("mean_one_stream", 2, 1, 7, True, True),
        ("mean_of_two", 2, 2, 33, True, True), ("mean_of_three", 3, 3, 6, True, False),
        ("weighted", 3, 4, 6, False, False), ("weighted_odd", 5, 3, 7, False, False),
        ("weighted_one", 1, 1, 1, False, False), ("weighted_wide", 2, 4, 65, False, False),
        ("weighted_exact", 3, 8, 3, False, True), ("one_column", 2, 5, 1, False, False),
        ("first_only", 2, 4, 5, False, True),
    ]:
        r = rng("mix", name)
        make = (lambda *s: dyadic(r, *s, span=16)) if exact else (lambda *s: normal(r, *s))
        h, a = make(t, n * d), make(t, n)
        if name == "first_only":
            a = np.tile(f32([1, 0, 0, 0]), (t, 1))
        params, tensors = {"streams": n, "mean": mean}, {"h": h}
        streams = t64(h).reshape(t, n, d)
        m = mx.array(h).reshape(t, n, d)
        if mean:
            source = lib("transformers", "Glm5NextTextHyperHead (float64)")
            y = Glm5NextTextHyperHead()(streams[None])[0].numpy()
            ref, second = f64(h).reshape(t, n, d).sum(1) / n, m.mean(1)
        else:
            source = lib("torch", "torch.einsum (float64)")
            y = torch.einsum("tsd,ts->td", streams, t64(a)).numpy()
            ref = (f64(a)[:, :, None] * f64(h).reshape(t, n, d)).sum(1)
            second = (mx.array(a)[:, :, None] * m).sum(1)
            tensors["a"] = a
        case("mix", name, source, params, tensors, {"y": y}, 0.0 if exact else 2e-6, {"y": ref},
             {"y": np.array(second)})


def spread():
    for name, t, n, d, comb, exact in [
        ("plain", 3, 4, 5, False, False), ("plain_one", 1, 1, 3, False, False),
        ("plain_exact", 3, 3, 7, False, True), ("plain_wide", 2, 4, 33, False, False),
        ("mixed", 3, 4, 6, True, False), ("mixed_odd", 4, 3, 7, True, False),
        ("mixed_one", 2, 1, 1, True, False), ("mixed_exact", 3, 4, 5, True, True),
        ("mixed_wide", 1, 2, 65, True, False), ("one_column", 2, 5, 1, True, False),
        ("permuted", 2, 4, 3, True, True),
    ]:
        r = rng("spread", name)
        make = (lambda *s: dyadic(r, *s, span=16)) if exact else (lambda *s: normal(r, *s))
        h, y, b, c = make(t, n * d), make(t, d), make(t, n), make(t, n * n)
        if name == "permuted":  # stream r goes to stream r + 1: the direction shows
            c = np.tile(np.roll(np.eye(n), 1, 1).reshape(-1), (t, 1)).astype(np.float32)
        tensors = {"h": h, "y": y, "b": b}
        streams = t64(h).reshape(1, t, n, d)
        a = f64(b)[:, :, None] * f64(y)[:, None, :]
        m = mx.array(b)[:, :, None] * mx.array(y)[:, None, :]
        if comb:
            tensors["comb"] = c
            source = lib("transformers", "DeepseekV4DecoderLayer.forward (float64)")
            eye, none = torch.eye(n, dtype=torch.float64), torch.zeros(1, t, n, dtype=torch.float64)
            layer = SimpleNamespace(
                attn_hc=lambda _: (t64(b)[None], t64(c).reshape(1, t, n, n), None),
                self_attn=lambda _: (t64(y)[None], None), input_layernorm=lambda _: None,
                ffn_hc=lambda _: (none, eye.expand(1, t, n, n), None),
                mlp=lambda _, input_ids: t64(y)[None] * 0, post_attention_layernorm=lambda _: None)
            new = DeepseekV4DecoderLayer.forward.__wrapped__(layer, streams)[0]
            ref = a + np.einsum("trs,trd->tsd", f64(c).reshape(t, n, n), f64(h).reshape(t, n, d))
            second = m + mx.array(c).reshape(t, n, n).swapaxes(1, 2) @ mx.array(h).reshape(t, n, d)
        else:
            source = lib("torch", "torch.addcmul (float64)")
            new = torch.addcmul(streams[0], t64(b)[:, :, None], t64(y)[:, None, :])
            ref = a + f64(h).reshape(t, n, d)
            second = m + mx.array(h).reshape(t, n, d)
        case("spread", name, source, {"streams": n, "comb": comb}, tensors,
             {"new": new.reshape(t, -1).numpy()}, 0.0 if exact else 2e-6,
             {"new": ref.reshape(t, -1)}, {"new": np.array(second).reshape(t, -1)})


# ---------------------------------------------------------------- mhc_split, matmul_heads

def mhc_split():
    source = lib("transformers", "DeepseekV4HyperConnection (float64)")

    def run(module, n, eps, iterations, z, scale, base, make):
        """z comes in as columns of the streams; one-hot columns beside it show `pre`."""
        t, part = len(z), 2 + n
        hc = module(SimpleNamespace(hc_mult=n, hc_sinkhorn_iters=iterations, hc_eps=eps,
                                    rms_norm_eps=1e-6, hidden_size=part + n))
        hc.input_norm = torch.nn.Identity()
        fn = np.zeros((n * part, n, part + n))
        for i in range(n * part):
            fn[i, i // part, i % part] = 1
        hc.fn.data, hc.base.data, hc.scale.data = (make(v) for v in (fn.reshape(n * part, -1), base, scale))
        streams = np.concatenate([z.reshape(t, n, part), np.tile(np.eye(n), (t, 1, 1))], -1)
        post, comb, collapsed = hc(make(streams)[None])
        return {"pre": collapsed[0, :, part:].numpy(), "post": post[0].numpy(),
                "comb": comb[0].reshape(t, -1).numpy()}

    for name, t, n, iterations, eps, size, scales in [
        ("four", 3, 4, 20, 1e-6, 1.0, [0.5, 1.5, 0.7]), ("two", 4, 2, 20, 1e-6, 1.0, [1.0, 1.0, 1.0]),
        ("three", 2, 3, 5, 1e-6, 1.0, [0.1, -0.4, 2.0]), ("one_stream", 3, 1, 3, 1e-6, 1.0, [1.0, 1.0, 1.0]),
        ("one_round", 2, 4, 1, 1e-6, 1.0, [1.0, 1.0, 1.0]), ("two_rounds", 1, 4, 2, 1e-4, 1.0, [1.0, 2.0, 1.5]),
        ("large_eps", 2, 4, 20, 0.125, 1.0, [1.0, 1.0, 1.0]), ("steep", 3, 4, 20, 1e-6, 12.0, [1.0, 1.0, 1.0]),
        ("far", 2, 4, 20, 1e-6, 1.0, [1.0, 1.0, 150.0]), ("six", 2, 6, 20, 1e-6, 1.0, [1.0, 1.0, 1.0]),
        ("no_scale", 2, 4, 20, 1e-6, 1.0, [0.0, 0.0, 0.0]), ("many", 5, 4, 20, 1e-6, 2.0, [0.3, 0.3, 0.3]),
    ]:
        r = rng("mhc_split", name)
        eps = float(np.float32(number(eps)))
        z, scale, base = normal(r, t, 2 * n + n * n, scale=size), f32(*scales), normal(r, 2 * n + n * n)
        with kept_float64():
            got = run(DeepseekV4HyperConnection, n, eps, iterations, z, scale, base, t64)
        second = run(Glm5NextTextHyperConnection, n, eps, iterations, z, scale, base, t32)
        a, s, b = f64(z), f64(scale), f64(base)
        pre = expit(a[:, :n] * s[0] + b[:n]) + eps
        post = 2 * expit(a[:, n:2 * n] * s[1] + b[n:2 * n])
        c = (a[:, 2 * n:] * s[2] + b[2 * n:]).reshape(t, n, n)
        c = np.exp(c - c.max(-1, keepdims=True))
        c = c / c.sum(-1, keepdims=True) + eps
        c = c / (c.sum(1, keepdims=True) + eps)
        for _ in range(iterations - 1):
            c = c / (c.sum(2, keepdims=True) + eps)
            c = c / (c.sum(1, keepdims=True) + eps)
        case("mhc_split", name, source, {"streams": n, "eps": number(eps), "iterations": iterations},
             {"z": z, "scale": scale, "base": base}, got, 2e-5 if name in ("far", "steep") else 5e-6,
             {"pre": pre, "post": post, "comb": c.reshape(t, -1)}, second)


def matmul_heads():
    for name, t, groups, out, cols, transpose, exact in [
        ("plain", 3, 2, 3, 5, False, False), ("one_group", 2, 1, 4, 7, False, False),
        ("many", 2, 8, 2, 3, False, False), ("long", 2, 3, 2, 65, False, False),
        ("to_one", 3, 4, 1, 9, False, False), ("one_row", 1, 2, 5, 1, False, False),
        ("exact", 3, 3, 3, 33, False, True),
        ("transposed", 3, 2, 3, 5, True, False), ("transposed_one_group", 2, 1, 4, 7, True, False),
        ("transposed_many", 2, 8, 2, 3, True, False), ("transposed_long", 2, 2, 70, 3, True, False),
        ("transposed_from_one", 3, 4, 1, 9, True, False), ("transposed_to_one", 1, 2, 5, 1, True, False),
        ("transposed_exact", 2, 3, 33, 3, True, True), ("square", 2, 3, 4, 4, False, False),
        ("transposed_square", 2, 3, 4, 4, True, False),
    ]:
        r = rng("matmul_heads", name)
        make = (lambda *s: dyadic(r, *s, span=16)) if exact else (lambda *s: normal(r, *s))
        x, w = make(t, groups * (out if transpose else cols)), make(groups * out, cols)
        heads, parts = t64(x).reshape(t, groups, -1), t64(w).reshape(groups, out, cols)
        if transpose:
            source = lib("torch", "torch.bmm (float64)")
            y = torch.bmm(heads.transpose(0, 1), parts).transpose(0, 1)
        else:
            source = lib("transformers", "DeepseekV4GroupedLinear (float64)")
            linear = DeepseekV4GroupedLinear(cols, groups * out, groups)
            linear.weight.data = t64(w)
            y = linear(heads)
        way = "goi,tgo->tgi" if transpose else "goi,tgi->tgo"
        ref = np.einsum(way, f64(w).reshape(groups, out, cols), f64(x).reshape(t, groups, -1))
        m = mx.array(w).reshape(groups, out, cols)
        second = mx.array(x).reshape(t, groups, -1).swapaxes(0, 1) @ (m if transpose else m.swapaxes(1, 2))
        case("matmul_heads", name, source, {"groups": groups, "transpose": transpose}, {"x": x, "w": w},
             {"y": y.reshape(t, -1).numpy()}, 0.0 if exact else 2e-6, {"y": ref.reshape(t, -1)},
             {"y": np.array(second).swapaxes(0, 1).reshape(t, -1)})


# ---------------------------------------------------------------- more of norm

def norm():
    for name, kind, t, w, groups, weight, eps, scale, centred, outside in [
        ("layer", "layer", 3, 16, 1, "shared bias", 1e-6, 1.0, False, False),
        ("layer_no_bias", "layer", 3, 33, 1, "shared", 1e-5, 1.0, False, False),
        ("layer_none", "layer", 2, 21, 1, "none", 1e-6, 1.0, False, False),
        ("layer_groups", "layer", 3, 24, 4, "shared bias", 1e-5, 1.0, False, False),
        ("layer_groups_full", "layer", 2, 24, 3, "full bias", 1e-5, 0.5, False, False),
        ("layer_full", "layer", 2, 20, 5, "full", 1e-5, 1.0, False, False),
        ("layer_offset", "layer", 2, 32, 1, "shared bias", 1e-5, 1.0, False, False),
        ("layer_flat", "layer", 2, 8, 1, "shared bias", 1e-5, 1.0, False, False),
        ("layer_one_wide", "layer", 2, 3, 3, "full bias", 1e-5, 1.0, False, False),
        ("layer_outside", "layer", 2, 16, 2, "shared bias", 0.01, 1.0, False, True),
        ("layer_centred", "layer", 2, 16, 2, "shared bias", 1e-5, 1.0, True, False),
        ("l2", "l2", 3, 16, 1, "none", 1e-6, 1.0, False, False),
        ("l2_heads_scaled", "l2", 3, 32, 4, "none", 1e-6, 8**-0.5, False, False),
        ("l2_odd", "l2", 2, 35, 5, "none", 1e-6, 1.0, False, False),
        ("l2_shared", "l2", 2, 24, 3, "shared", 1e-5, 1.0, False, False),
        ("l2_full", "l2", 2, 24, 3, "full", 1e-5, 1.0, False, False),
        ("l2_tiny", "l2", 3, 16, 2, "none", 1e-6, 1.0, False, False),
        ("l2_of_one", "l2", 1, 3, 3, "none", 1e-6, 1.0, False, False),
        ("l2_outside", "l2", 2, 16, 2, "none", 0.1, 2.0, False, True),
        ("centred", "rms", 3, 16, 1, "shared", 1e-6, 1.0, True, False),
        ("centred_heads", "rms", 3, 32, 4, "shared", 1e-6, 1.0, True, False),
        ("centred_full", "rms", 2, 28, 4, "full", 1e-5, 1.0, True, False),
        ("centred_tiny_weights", "rms", 2, 16, 1, "shared", 1e-6, 1.0, True, False),
        ("scaled", "rms", 2, 20, 2, "full", 1e-6, 0.25, False, False),
        ("outside", "rms", 3, 16, 1, "shared", 0.1, 1.0, False, True),
        ("outside_groups", "rms", 2, 30, 5, "none", 1e-5, 1.0, False, True),
    ]:
        r = rng("norm", "kinds_" + name)
        x, g, eps, scale = normal(r, t, w), w // groups, number(eps), number(scale)
        if name == "layer_offset":
            x = (np.round(x * 64) / 64 + 100).astype(np.float32)
        if name == "layer_flat":
            x[:] = f32([3.0], [-0.25])
        if name == "l2_tiny":
            x = (x * f32([1e-4], [0.0], [1e4])).astype(np.float32)
        n = {"none": 0, "shared": g, "full": w}[weight.split()[0]]
        wt = normal(r, n, scale=0.3)
        if name == "centred_tiny_weights":
            wt = (wt * np.float32(1e-3)).astype(np.float32)
        wt = wt if centred else (1 + wt).astype(np.float32)
        bias = normal(r, n) if weight.endswith("bias") else None
        tensors = {"x": x, **({"weight": wt} if n else {}), **({} if bias is None else {"bias": bias})}
        source, y = norm_library(kind, t64(x).reshape(t, groups, g), eps, outside, centred, wt, weight)

        def finish(v, m, weighted=False):
            if n and not weighted:
                v = v * ((1 if centred else 0) + m(wt)).reshape(-1, g)
            if bias is not None:
                v = v + m(bias).reshape(-1, g)
            return (v * float(np.float32(scale))).reshape(t, w)

        a = f64(x).reshape(t, groups, g)
        ref = plain_norm(np, a, kind, eps, outside)
        low = plain_norm(jnp, jnp.asarray(x).reshape(t, groups, g), kind, np.float32(eps), outside)
        assert low.dtype == jnp.float32
        case("norm", name, source,
             {"kind": kind, "groups": groups, "weight": weight, "eps": eps, "scale": scale,
              "zero_centred": centred, "eps_outside": outside},
             tensors, {"y": finish(y, t64, "Qwen" in source).numpy()},
             2e-5 if name == "layer_offset" else 2e-6, {"y": finish(ref, f64)},
             {"y": np.asarray(finish(low, jnp.asarray))})


def plain_norm(m, a, kind, eps, outside):
    if kind == "layer":
        a = a - a.mean(-1, keepdims=True)
    size = (a * a).sum(-1, keepdims=True) / (1 if kind == "l2" else a.shape[-1])
    return a / (m.sqrt(size) + eps if outside else m.sqrt(size + eps))


def norm_library(kind, x, eps, outside, centred, wt, weight):
    """Normed by the library; weights are the caller's, but for a zero-centred one of a group."""
    g = x.shape[-1]
    if outside:
        if kind == "layer":
            source, y = "torch.std(correction=0)", (x - x.mean(-1, keepdim=True)) / (
                x.std(-1, correction=0, keepdim=True) + eps)
        else:
            source, part = "torch.linalg.vector_norm", 1 if kind == "l2" else g**0.5
            y = x / (torch.linalg.vector_norm(x, dim=-1, keepdim=True) / part + eps)
        return lib("torch", f"{source} (float64)"), y
    if kind == "layer":
        return lib("torch", "torch.nn.functional.layer_norm (float64)"), F.layer_norm(x, (g,), eps=eps)
    if kind == "l2":
        return lib("transformers", "models.glm5_next l2norm (float64)"), l2norm(x, eps=eps)
    if centred and weight == "shared":
        module = Qwen3_5MoeRMSNorm(g, eps)
        module.weight.data = t64(wt)
        with kept_float64():
            return lib("transformers", "Qwen3_5MoeRMSNorm (float64)"), module(x)
    return lib("torch", "torch.nn.functional.rms_norm (float64)"), F.rms_norm(x, (g,), None, eps)


# ---------------------------------------------------------------- more of ew

def ew():
    kinds = {
        "add": ("torch.add with alpha", None, None),
        "mul": ("torch.mul", torch.mul, lambda a, b: a * b),
        "mul sigmoid": ("torch.sigmoid, mul", lambda a, b: a * torch.sigmoid(b), lambda a, b: a * expit(b)),
        "mul silu": ("torch.nn.functional.silu, mul", lambda a, b: a * F.silu(b), lambda a, b: a * silu(b)),
        "modulate": ("torch.addcmul", lambda a, b, c: torch.addcmul(c, a, 1 + b),
                     lambda a, b, c: a * (1 + b) + c),
        "distance": ("torch.nn.functional.l1_loss(reduction='none')",
                     lambda a, b: F.l1_loss(a, b, reduction="none"), lambda a, b: np.abs(a - b)),
    }
    lower = {"mul": lambda a, b: a * b, "mul sigmoid": lambda a, b: a * jax.nn.sigmoid(b),
             "mul silu": lambda a, b: a * jax.nn.silu(b), "modulate": lambda a, b, c: a * (1 + b) + c,
             "distance": lambda a, b: jnp.abs(a - b)}

    def add(name, kind, repeat, groups, values, s=1.0, tol=2e-6):
        what, library, formula = kinds[kind]
        s = number(s)
        q = float(np.float32(s))
        if kind == "add":
            library, formula = (lambda a, b: torch.add(a, b, alpha=q)), (lambda a, b: a + q * b)
            second = (lambda a, b: a + np.float32(q) * b)
        else:
            second = lower[kind]
        a, *rest = values
        t, w = a.shape
        if repeat == "group":
            what += ", repeat_interleave"
            wide = [v.repeat_interleave(w // groups, 1) for v in map(t64, rest)]
            plain = [v[:, np.arange(w) // (w // groups)] for v in rest]
        elif repeat == "column":
            what += ", tile"
            wide = [torch.tile(v, (1, groups)) for v in map(t64, rest)]
            plain = [v[:, np.arange(w) % (w // groups)] for v in rest]
        else:
            wide, plain = [t64(v) for v in rest], rest
        y = library(t64(a), *wide).numpy()
        case("ew", name, lib("torch", f"{what} (float64)"),
             {"kind": kind, "s": s, "repeat": repeat, "groups": groups},
             dict(zip("abc", values)), {"y": y}, tol, {"y": formula(f64(a), *map(f64, plain))},
             {"y": np.asarray(second(jnp.asarray(a), *map(jnp.asarray, plain)))})

    for kind in kinds:
        short, many = kind.replace(" ", "_"), 2 if kind == "modulate" else 1
        for repeat, t, w, groups in [("none", 3, 13, 1), ("group", 3, 12, 4), ("column", 2, 15, 5)]:
            if (kind, repeat) == ("add", "none"):
                continue
            r = rng("ew", f"{short}_{repeat}")
            width = {"none": w, "group": groups, "column": w // groups}[repeat]
            values = [normal(r, t, w, scale=2.0)] + [normal(r, t, width, scale=2.0) for _ in range(many)]
            add(f"{short}_{repeat}", kind, repeat, groups, values, 0.3 if kind == "add" else 1.0)
    edges = f32([-100.0, -88.75, -20.0, -1.0, -0.001, 0.0, 0.001, 1.0, 20.0, 88.75, 100.0])
    add("sigmoid_edges", "mul sigmoid", "none", 1, [edges * 0 + 2, edges])
    add("silu_edges", "mul silu", "none", 1, [edges * 0 + 2, edges])
    r = rng("ew", "exact")
    add("mul_exact", "mul", "none", 1, [dyadic(r, 2, 9), dyadic(r, 2, 9)], tol=0.0)
    add("mul_one_for_all", "mul", "group", 1, [dyadic(r, 3, 7), dyadic(r, 3, 1)], tol=0.0)
    add("mul_each", "mul", "group", 5, [dyadic(r, 2, 5), dyadic(r, 2, 5)], tol=0.0)
    add("mul_one_column", "mul", "column", 4, [dyadic(r, 2, 4), dyadic(r, 2, 1)], tol=0.0)
    add("distance_exact", "distance", "column", 1, [dyadic(r, 1, 6), dyadic(r, 1, 6)], tol=0.0)
    add("modulate_one_row", "modulate", "group", 2, [dyadic(r, 1, 6), dyadic(r, 1, 2), dyadic(r, 1, 2)], tol=0.0)


# ---------------------------------------------------------------- more of route

def jax_route(x, score, bias, groups, kept, k, renorm, scale, ids=None):
    e = x.shape[-1]
    s = {"softmax": lambda v: jax.nn.softmax(v, -1), "sigmoid": jax.nn.sigmoid,
         "sqrt softplus": lambda v: jnp.sqrt(jax.nn.softplus(v))}[score](x)
    if ids is None:
        choice = s if bias is None else s + bias
        if groups > 1:
            best, _ = jax.lax.top_k(choice.reshape(-1, groups, e // groups), 2)
            _, keep = jax.lax.top_k(best.sum(-1), kept)
            mask = (keep[:, :, None] == jnp.arange(groups)).any(1)
            choice = jnp.where(jnp.repeat(mask, e // groups, 1), choice, -jnp.inf)
        _, ids = jax.lax.top_k(choice, k)
    w = jnp.take_along_axis(s, ids, -1)
    if renorm:
        w = w / (w.sum(-1, keepdims=True) + (0 if score == "softmax" else 1e-20))
    return np.asarray(ids, np.int32), np.asarray(w * scale)


def plain_route(x, score, bias, groups, kept, k, renorm, scale, ids=None):
    a = f64(x)
    if score == "softmax":
        s = np.exp(a - a.max(-1, keepdims=True))
        s = s / s.sum(-1, keepdims=True)
    else:
        s = expit(a) if score == "sigmoid" else sqrt_softplus(a)
    rows, gaps = [], [1.0]
    for row in range(len(a)):
        c = s[row] + (0 if bias is None else f64(bias))
        parts = c.reshape(groups, -1)
        if groups > 1:
            sums = np.sort(parts, -1)[:, -2:].sum(-1)
            keep = sorted(range(groups), key=lambda g: (-sums[g], g))[:kept]
            gaps.append(np.diff(np.sort(sums)).min())
        else:
            keep = [0]
        open_ = [i for i in range(len(c)) if i // parts.shape[1] in keep]
        rows.append(sorted(open_, key=lambda i: (-c[i], i))[:k])
        gaps.append(np.diff(np.sort(c)).min() if len(c) > 1 else 1.0)
    ids = np.array(rows) if ids is None else ids
    w = np.take_along_axis(s, ids, -1)
    if renorm:
        w = w / (w.sum(-1, keepdims=True) + (0 if score == "softmax" else 1e-20))
    return ids, w * scale, min(gaps)


def router(x, score, bias, groups, kept, k, renorm, scale, given, make):
    """ids and weights of the router that has this form, None where there is none."""
    e = x.shape[-1]
    scoring = {"sigmoid": "sigmoid", "sqrt softplus": "sqrtsoftplus"}.get(score)
    config = SimpleNamespace(
        num_experts_per_tok=k, num_local_experts=e, hidden_size=e, scoring_func=scoring, n_group=groups,
        topk_group=kept, norm_topk_prob=renorm, routed_scaling_factor=scale, vocab_size=len(x))
    if given is not None and renorm and scoring:
        kind = DeepseekV4HashRouter
    elif score == "sqrt softplus" and groups == 1 and renorm:
        kind = DeepseekV4TopKRouter
    elif score == "sigmoid" and given is None and e // groups > 1:
        kind = Glm5NextTextTopkRouter
    else:
        return None
    gate = kind(config)
    gate.weight.data = make(np.eye(e))
    if given is not None:
        gate.tid2eid = torch.from_numpy(given).long()
        _, w, ids = gate(make(x), torch.arange(len(x)))
    else:
        gate.e_score_correction_bias = make(np.zeros(e) if bias is None else bias)
        if kind is Glm5NextTextTopkRouter and make is t64:
            with kept_float64():
                _, w, ids = gate(make(x))
        else:
            _, w, ids = gate(make(x))
    return kind.__name__, ids.numpy(), w.numpy()


def route():
    for name, score, t, e, k, groups, kept, how, renorm, scale in [
        ("sigmoid", "sigmoid", 3, 8, 2, 1, 1, "", True, 2.5),
        ("sigmoid_raw", "sigmoid", 3, 9, 3, 1, 1, "", False, 1.0),
        ("sigmoid_biased", "sigmoid", 4, 16, 4, 1, 1, "biased", True, 2.5),
        ("sigmoid_groups", "sigmoid", 4, 16, 4, 4, 2, "biased", True, 2.5),
        ("sigmoid_groups_unbiased", "sigmoid", 3, 12, 2, 3, 1, "", True, 1.0),
        ("sigmoid_groups_all", "sigmoid", 2, 12, 5, 3, 3, "biased", False, 1.0),
        ("sigmoid_groups_full", "sigmoid", 2, 12, 6, 4, 2, "biased", True, 1.5),
        ("sigmoid_groups_wide", "sigmoid", 3, 64, 8, 8, 4, "biased", True, 2.5),
        ("sigmoid_negative_bias", "sigmoid", 3, 12, 3, 4, 2, "biased", True, 2.5),
        ("sigmoid_one_expert", "sigmoid", 2, 1, 1, 1, 1, "", True, 2.0),
        ("sigmoid_low", "sigmoid", 2, 8, 2, 1, 1, "", True, 1.0),
        ("softplus", "sqrt softplus", 3, 8, 2, 1, 1, "", True, 1.5),
        ("softplus_biased", "sqrt softplus", 4, 16, 6, 1, 1, "biased", True, 1.5),
        ("softplus_raw", "sqrt softplus", 2, 7, 7, 1, 1, "", False, 1.0),
        ("softplus_groups", "sqrt softplus", 3, 12, 3, 3, 2, "biased", True, 1.0),
        ("softplus_edges", "sqrt softplus", 1, 8, 8, 1, 1, "", True, 1.0),
        ("softmax_biased", "softmax", 3, 12, 3, 1, 1, "biased", True, 1.0),
        ("softmax_groups", "softmax", 3, 12, 3, 4, 2, "biased", False, 2.0),
        ("given", "sqrt softplus", 4, 8, 3, 1, 1, "given", True, 1.5),
        ("given_sigmoid", "sigmoid", 2, 9, 2, 1, 1, "given", True, 1.0),
        ("given_softmax", "softmax", 3, 8, 2, 1, 1, "given", True, 1.0),
        ("given_raw", "softmax", 2, 5, 5, 1, 1, "given", False, 0.5),
        ("given_more_than_there_are", "sigmoid", 2, 2, 4, 1, 1, "given", True, 1.0),
        ("ties", "sigmoid", 4, 8, 3, 1, 1, "", True, 1.0),
        ("ties_biased", "sigmoid", 2, 8, 3, 1, 1, "biased", True, 1.0),
        ("ties_groups", "sigmoid", 4, 12, 3, 4, 2, "", True, 1.0),
        ("ties_softplus", "sqrt softplus", 2, 8, 2, 2, 1, "", True, 1.0),
    ]:
        r = rng("route", "kinds_" + name)
        tied = name.startswith("ties")
        scale = number(scale)
        while True:
            x = normal(r, t, e, scale=2.0)
            if name == "softplus_edges":
                x = f32([-100.0, -30.0, -20.0, -5.0, 0.0, 19.5, 40.0, 100.0])
            if name == "sigmoid_low":
                x = (x - 60).astype(np.float32)
            if tied:
                x = (np.round(x) / 2).astype(np.float32)
                x[0] = 0.5
                x[-1, :] = np.tile(x[-1, :2], e // 2)
            bias = normal(r, e) if how == "biased" else None
            if name == "sigmoid_negative_bias":
                bias = (bias - 6).astype(np.float32)
            if name == "ties_biased":  # the biases make what is equal differ, and equal again
                bias = f32(0, 0.25, 0.25, 0, 0.25, -0.5, 0, 0.25)
                x[:] = 0.5
            given = None
            if how == "given":
                given = np.stack([r.permutation(max(e, k))[:k] % e for _ in range(t)]).astype(np.int32)
            args = (score, bias, groups, kept, k, renorm, scale)
            ids, ref, gap = plain_route(x, *args, ids=given)
            if tied or given is not None or gap > {"sigmoid_low": 1e-29, "softplus_edges": 1e-25}.get(name, 1e-5) or e == 1:
                break
        j64 = jax_route(jnp.asarray(x, jnp.float64), *args, ids=given)
        j32 = jax_route(jnp.asarray(x), *args, ids=given)
        found = None if tied else router(x, *args, given, t64)
        source, w = lib("jax", f"jax.nn.{score.replace('sqrt ', '')}, jax.lax.top_k (float64)"), j64[1]
        got = j64[0]
        if found:  # the routers promise no order: sort each row as the formula has it
            what, those, weights = found
            assert (np.sort(those, -1) == np.sort(ids, -1)).all(), name
            if given is None:
                at = np.array([[list(those[row]).index(i) for i in ids[row]] for row in range(t)])
                those, weights = (np.take_along_axis(v, at, -1) for v in (those, weights))
            source, got, w = lib("transformers", f"{what} (float64)"), those.astype(np.int32), weights
        tensors = {"logits": x, **({} if bias is None else {"bias": bias}),
                   **({} if given is None else {"given": given})}
        case("route", name, source,
             {"score": score, "k": k, "groups": groups, "kept": kept, "renorm": renorm, "scale": scale,
              "choice": how or "plain"},
             tensors, {"ids": got, "w": w}, 2e-6, {"ids": ids, "w": ref},
             {"w": j32[1]} if tied else {"ids": j32[0], "w": j32[1]})


# ---------------------------------------------------------------- more of glu, matmul, gather

def glu():
    source = lib("torch", "torch.nn.functional.gelu, mul (float64)")
    edges = f32([-100.0, -20.0, -5.0, -1.0, -0.001, 0.0, 0.001, 1.0, 5.0, 20.0, 100.0])
    for name, t, w in [("gelu", 3, 16), ("gelu_odd", 5, 31), ("gelu_one", 1, 1), ("gelu_edges", 1, 11)]:
        r = rng("glu", name)
        g, u = normal(r, t, w, scale=2.0), normal(r, t, w)
        if name == "gelu_edges":
            g = edges
        second = jax.nn.gelu(jnp.asarray(g), approximate=False) * u
        case("glu", name, source, {"kind": "gelu"}, {"g": g, "u": u}, {"y": (F.gelu(t64(g)) * t64(u)).numpy()},
             2e-6, {"y": gelu(f64(g)) * f64(u)}, {"y": np.asarray(second)})


def matmul():
    acts = {"none": (lambda v: v, lambda v: v, lambda v: v), "silu": (F.silu, silu, jax.nn.silu),
            "gelu": (F.gelu, gelu, lambda v: jax.nn.gelu(v, approximate=False)),
            "relu": (F.relu, lambda v: np.maximum(v, 0), jax.nn.relu),
            "sigmoid": (torch.sigmoid, expit, jax.nn.sigmoid)}
    for name, act_, bias, t, i, o in [
        ("silu", "silu", False, 3, 7, 5), ("gelu", "gelu", False, 2, 33, 4), ("relu", "relu", False, 3, 9, 6),
        ("sigmoid", "sigmoid", False, 2, 16, 3), ("biased", "none", True, 3, 31, 5),
        ("biased_silu", "silu", True, 1, 8, 7), ("biased_gelu", "gelu", True, 3, 12, 5),
        ("biased_relu", "relu", True, 2, 5, 9), ("biased_sigmoid", "sigmoid", True, 2, 10, 1),
        ("biased_one", "none", True, 1, 1, 1), ("biased_exact", "none", True, 3, 40, 3),
    ]:
        r = rng("matmul", "kinds_" + name)
        exact = name.endswith("exact")
        make = (lambda *s: dyadic(r, *s, span=16)) if exact else (lambda *s: normal(r, *s, scale=0.7))
        x, w, b = make(t, i), make(o, i), make(o)
        library, formula, second = acts[act_]
        y = library(F.linear(t64(x), t64(w), t64(b) if bias else None)).numpy()
        ref = formula(np.einsum("ti,oi->to", f64(x), f64(w)) + (f64(b) if bias else 0))
        low = np.array(mx.array(x) @ mx.array(w).T + (mx.array(b) if bias else 0))
        case("matmul", name, lib("torch", f"torch.nn.functional.linear, {act_} (float64)"),
             {"act": act_, "bias": bias}, {"x": x, "w": w, **({"b": b} if bias else {})}, {"y": y},
             0.0 if exact else 2e-6, {"y": ref}, {"y": np.asarray(second(jnp.asarray(low)))})


def gather():
    source = lib("torch", "torch.nn.functional.embedding_bag(padding_idx) (float64)")
    for name, join, n, w, ids in [
        ("sum", "sum", 7, 5, [[0, 6, 3], [1, 1, 1], [5, 0, 2]]),
        ("sum_absent", "sum", 6, 9, [[2, -1, 5, -1], [-1, -1, -1, -1], [0, 0, -1, 4]]),
        ("sum_of_one", "sum", 4, 33, [[3], [-1], [0]]),
        ("sum_many", "sum", 9, 3, [[8, 7, 6, 5, 4, 3, 2, 1, 0, 8, 8, -1]]),
        ("mean", "mean", 7, 5, [[0, 6, 3], [2, 2, 4]]),
        ("mean_absent", "mean", 6, 9, [[2, -1, 5, -1], [-1, -1, -1, -1], [0, 3, -1, 4], [-1, 1, -1, -1]]),
        ("mean_one_wide", "mean", 3, 1, [[2, 1], [0, 0]]),
    ]:
        table = normal(rng("gather", "kinds_" + name), n, w)
        ids = np.array(ids, np.int32)
        wide = np.concatenate([table, np.zeros((1, w), np.float32)])
        y = F.embedding_bag(torch.from_numpy(np.where(ids < 0, n, ids)).long(), t64(wide), mode=join,
                            padding_idx=n)
        count = np.maximum((ids >= 0).sum(1, keepdims=True), 1) if join == "mean" else 1
        second = jnp.take(jnp.asarray(wide), np.where(ids < 0, n, ids), axis=0).sum(1) / np.float32(count)
        case("gather", name, source, {"join": join}, {"ids": ids, "table": table}, {"y": y.numpy()}, 1e-6,
             {"y": f64(wide)[ids].sum(1) / count}, {"y": np.asarray(second)})


def main():
    for package, want in PINS.items():
        assert version(package) == want, f"{package} {version(package)}, not {want}"
    for make in [act, concat, dot, mix, spread, mhc_split, matmul_heads, norm, ew, route, glu, matmul, gather]:
        make()
    for op, rows in CASES.items():
        text = "[\n" + ",\n".join(json.dumps(r, separators=(",", ":"), allow_nan=False) for r in rows) + "\n]\n"
        worst = max(r["f64_diff"] for r in rows)
        print(f"{op:12} {len(rows):3} cases {len(text):6} bytes, f64_diff up to {worst}")
        assert len(text) <= MAX_BYTES, op
        (OPS / op / ("cases.json" if op in NEW else "kinds.json")).write_text(text)


if __name__ == "__main__":
    main()
