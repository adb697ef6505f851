#!/usr/bin/env python3
"""Write shaders/src/ops/attend/{sources,sinks}.json and shaders/src/ops/rope/scaled.json: attention over
windows, lists and complete groups, without and with sinks, and rope with stretched frequencies. As
make_cases.py, beside the files that it writes itself.
"""
import json
import math
from types import SimpleNamespace

from make_cases import (CASES, F, MAX_BYTES, OPS, PINS, case, dyadic, lib, mx, normal, np, rng, rope_half,
                        rope_pair, size, t64, torch, version)
from transformers import LlamaConfig, modeling_rope_utils
from transformers.models.deepseek_v4.modeling_deepseek_v4 import eager_attention_forward as eager_mqa
from transformers.models.mimo_v2_flash.modeling_mimo_v2_flash import eager_attention_forward as eager_gqa


# ---------------------------------------------------------------- attend

def source(mask, width=None, stride=1, keep=0, window=0, k=0, v=0, n=0, pick=None):
    """`width` of the state's row, None for just K; `n` entries of a list, `pick` how it is chosen."""
    return SimpleNamespace(mask=mask, width=width, stride=stride, keep=keep, window=window, k=k, v=v, n=n,
                           pick=pick)


def visible(s, pos):
    """Indices of the rows that a row at `pos` may see; for a list, all that it may name."""
    complete = (pos + 1) // s.stride
    return list(range(max(0, complete - s.window) if s.mask == "window" else 0, complete))


def pick(s, r, rows):
    """A list for each row: ascending, -1 at the end or, for `holes`, between."""
    out = np.full((len(rows), s.n), -1, np.int32)
    starts = {}
    for i, (conv, pos) in enumerate(rows):
        start = starts.setdefault(conv, pos)
        may = [j for j in visible(s, pos) if (j + 1) * s.stride > start]
        if s.pick == "none":
            continue
        count = min(s.n, len(may)) if s.pick in ("all", "full") else int(r.integers(0, min(s.n, len(may)) + 1))
        chosen = sorted(int(j) for j in r.choice(may, count, replace=False)) if count else []
        at = sorted(int(j) for j in r.choice(s.n, count, replace=False)) if s.pick == "holes" else range(count)
        for j, row in zip(at, chosen):
            out[i, j] = row
    return out


def short(r, *shape):
    """Two decimals, for short files."""
    return np.round(r.standard_normal(shape), 2).astype(np.float32)


def attend_case(name, convs, heads, kv, kw, vw, scale, sources, sink=None, make=short):
    """`convs`: first position and number of rows of each conversation."""
    r = rng("attend", name)
    rows = [(c, first + i) for c, (first, n) in enumerate(convs) for i in range(n)]
    t, scale = len(rows), float(np.float32(scale))
    q = make(r, t, heads * kw)
    params = {"heads": heads, "kv_heads": kv, "k_width": kw, "v_width": vw, "scale": scale}
    tensors = {"rows": np.array(rows, np.int32), "q": q}
    keys, values, sees = [], [], []  # of all sources; seen[i] are a row's indices into them, in order
    for number, s in enumerate(sources, 1):
        wide = make(r, t, s.width or s.k + kv * kw)
        tensors[f"rows{number}"] = wide
        params |= {f"mask{number}": s.mask, f"stride{number}": s.stride, f"keep{number}": s.keep,
                   f"window{number}": s.window, f"k_col{number}": s.k, f"v_col{number}": s.v}
        lists = pick(s, r, rows) if s.mask == "list" else None
        if lists is not None:
            tensors[f"list{number}"] = lists
        base = sum(len(k) for k in keys)
        # the step's row that stored row j of a conversation: that of its group's last position
        at = {(c, pos // s.stride): i for i, (c, pos) in enumerate(rows) if (pos + 1) % s.stride == 0}
        keys.append(wide[:, s.k:s.k + kv * kw].reshape(t, kv, kw))
        values.append(wide[:, s.v:s.v + kv * vw].reshape(t, kv, vw))
        mine = [[int(j) for j in lists[i] if j >= 0] if lists is not None else visible(s, pos)
                for i, (_, pos) in enumerate(rows)]
        sees.append([[base + at[rows[i][0], j] for j in m] for i, m in enumerate(mine)])
    seen = [sum((part[i] for part in sees), []) for i in range(t)]
    k, v = np.concatenate(keys), np.concatenate(values)
    sinks = None
    if sink is not None:
        sinks = (make(r, heads) + np.float32(sink)).astype(np.float32)
        tensors["sink"] = sinks
    mask = np.full((t, len(k)), -np.inf)
    for i, s in enumerate(seen):
        assert len(set(s)) == len(s)
        mask[i, s] = 0.0
    parts = [a.transpose(1, 0, 2)[None].copy() for a in (q.reshape(t, heads, kw), k, v)]

    if sinks is None:
        what = lib("torch", "torch.nn.functional.scaled_dot_product_attention (float64, mask)")
        y = F.scaled_dot_product_attention(*map(t64, parts), attn_mask=t64(mask)[None, None], scale=scale,
                                           enable_gqa=heads != kv)[0].transpose(0, 1)
    else:
        eager, where = (eager_mqa, "deepseek_v4") if kv == 1 else (eager_gqa, "mimo_v2_flash")
        what = lib("transformers", f"models.{where} eager_attention_forward (float64, mask, sinks)")
        module = SimpleNamespace(num_key_value_groups=heads // kv, sinks=t64(sinks), training=False)
        y, _ = eager(module, *map(t64, parts), t64(mask)[None, None], scale)
        y = y[0]
        # torch's own attention, with the sink as one more key whose score is its mask and whose value is 0
        bias = torch.cat([t64(mask).expand(heads, -1, -1), t64(sinks)[:, None, None].expand(-1, t, 1)], -1)
        more = [torch.cat([t64(p), torch.zeros(1, kv, 1, p.shape[-1], dtype=torch.float64)], 2)
                for p in parts[1:]]
        also = F.scaled_dot_product_attention(t64(parts[0]), *more, attn_mask=bias[None], scale=scale,
                                              enable_gqa=heads != kv)[0].transpose(0, 1)
        assert size(also - y) <= 1e-12 * size(y), name
    y = y.reshape(t, heads * vw).numpy()

    ref = np.zeros((t, heads, vw))
    for i in range(t):
        for h in range(heads):
            if not seen[i]:
                continue
            g = h // (heads // kv)
            score = k[seen[i], g].astype(np.float64) @ q.reshape(t, heads, kw)[i, h].astype(np.float64) * scale
            top = max(score.max(), -np.inf if sinks is None else float(sinks[h]))
            p = np.exp(score - top)
            more = 0.0 if sinks is None else math.exp(float(sinks[h]) - top)
            ref[i, h] = p / (p.sum() + more) @ v[seen[i], g].astype(np.float64)
    ref = ref.reshape(t, heads * vw)

    # MLX has no answer where a row sees nothing.
    some = [i for i in range(t) if seen[i]]
    second = ref.copy()
    if some:
        got = mx.fast.scaled_dot_product_attention(
            mx.array(parts[0][:, :, some]), *map(mx.array, parts[1:]), scale=scale,
            mask=mx.array(np.isfinite(mask[some]))[None, None],
            sinks=None if sinks is None else mx.array(sinks))
        second[some] = np.array(got)[0].transpose(1, 0, 2).reshape(len(some), heads * vw)
    case("attend", name, what, params, tensors, {"y": y}, 5e-6, {"y": ref}, {"y": second})


def attend():
    start = [(0, 9)]
    latent = dict(heads=3, kv=1, kw=5, vw=4, scale=5**-0.5)

    # One K/V head for all heads, V the first columns of K.
    def mla(name, convs, *sources, **more):
        attend_case(name, convs, **latent, sources=sources, **more)

    mla("latent_causal", start, source("causal"))
    mla("latent_list", start, source("list", n=4, pick="some"))
    mla("latent_list_holes", start, source("list", n=6, pick="holes"))
    mla("latent_list_of_all", start, source("list", n=9, pick="all"))
    mla("latent_list_of_none", [(0, 2)], source("list", n=3, pick="none"))
    mla("latent_list_one_wide", [(0, 4)], source("list", n=1, pick="full"))
    mla("latent_list_strided", [(0, 11)], source("list", stride=3, n=3, pick="some"))
    mla("list_far_into_conversations", [(1000, 5), (0, 1), (70, 6)], source("list", n=3, pick="full"))
    mla("list_mid_group", [(7, 9), (100, 5)], source("list", stride=4, n=2, pick="full"))

    attend_case("wide_latent_list", [(0, 3)], 2, 1, 41, 33, 41**-0.5, [source("list", n=2, pick="full")])

    # Windows, over states that keep just enough, more, and all.
    def gqa(name, convs, *sources, heads=4, kv=2, kw=3, vw=2, **more):
        attend_case(name, convs, heads, kv, kw, vw, kw**-0.5, sources, **more)

    row = 2 * 3 + 2 * 2
    gqa("window_keeps_enough", [(0, 11)], source("window", row, window=4, keep=3, v=6))
    gqa("window_keeps_more", [(0, 8)], source("window", row, window=3, keep=7, v=6))
    gqa("window_keeps_all", [(0, 8)], source("window", row, window=5, v=6))
    gqa("window_of_one", [(0, 3)], source("window", row, window=1, keep=1, v=6))
    gqa("window_of_two_conversations", [(0, 5), (0, 7)], source("window", row, window=3, keep=2, v=6))
    gqa("window_beyond_the_start", [(0, 5)], source("window", row, window=100, keep=99, v=6))
    gqa("window_sink", [(0, 9)], source("window", row, window=4, keep=3, v=6), sink=0)
    gqa("window_one_row_sink", [(0, 1)], source("window", row, window=4, keep=3, v=6), sink=0)
    gqa("causal_sink", [(0, 6), (0, 3)], source("causal", row, v=6), sink=0)
    gqa("causal_sink_odd_columns", [(0, 5)], source("causal", 1 + row, k=5, v=1), heads=6, sink=0)
    gqa("sink_of_no_weight", [(0, 5)], source("causal", row, v=6), sink=-200)
    for name, scale, sink in [("high_scores_and_sinks", 0.5, 153), ("low_scores_and_sinks", -0.5, -171)]:
        # scores and sinks all about +-162, exact: exp alone overflows
        attend_case(name, [(0, 5)], 4, 2, 4, 3, scale, [source("causal", 14, v=8)], sink=sink,
                    make=lambda r, *shape: 9 + dyadic(r, *shape, span=4))
    gqa("integer_scores_sink", [(0, 6)], source("window", row, window=3, keep=2, v=6), sink=0,
        make=lambda r, *shape: dyadic(r, *shape, step=1, span=4))
    gqa("window_equal_rows", [(0, 6)], source("window", row, window=4, keep=3, v=6), sink=0,
        make=lambda r, *shape: np.full(shape, 0.75, np.float32))

    # K is V: a window, and rows of groups.
    def shared(name, convs, *sources, **more):
        attend_case(name, convs, 3, 1, 4, 4, 0.5, sources, **more)

    window = source("window", window=4, keep=3)
    shared("window_list_sink", [(0, 14)], window, source("list", stride=2, n=3, pick="some"), sink=0)
    shared("window_list_holes_sink", [(0, 7), (0, 6)], window, source("list", n=3, pick="holes"), sink=0)
    shared("window_complete_sink", [(0, 13)], window, source("complete", stride=4), sink=0)
    shared("window_complete", [(0, 5), (0, 8)], window, source("complete", stride=3))
    shared("complete_sink", [(0, 9)], source("complete", stride=4), sink=0)
    shared("list_window", [(0, 7)], source("list", stride=2, n=2, pick="full"), window)
    shared("two_lists_sink", [(0, 8)], source("list", n=2, pick="some"), source("list", stride=3, n=3, pick="some"),
           sink=0)
    shared("nothing_seen_sink", [(0, 2)], source("list", n=2, pick="none"), source("complete", stride=3), sink=0)
    shared("causal_and_complete", [(0, 6)], source("causal"), source("complete", stride=2, width=7, k=3, v=2))


# ---------------------------------------------------------------- rope

class Doubles:
    """torch for the rope utilities, whose float is float64."""

    def __getattr__(self, name):
        return torch.float64 if name in ("float", "float32") else getattr(torch, name)


def yarn_frequencies(n, theta, factor, original, fast, slow, magnitude):
    config = LlamaConfig(hidden_size=n, num_attention_heads=1, head_dim=n, max_position_embeddings=original,
                         rope_parameters={"rope_type": "yarn", "rope_theta": theta, "factor": factor,
                                          "original_max_position_embeddings": original, "beta_fast": fast,
                                          "beta_slow": slow, "attention_factor": magnitude})
    modeling_rope_utils.torch = Doubles()
    try:
        found, scaling = modeling_rope_utils.ROPE_INIT_FUNCTIONS["yarn"](config, None)
    finally:
        modeling_rope_utils.torch = torch
    assert found.dtype == torch.float64
    return found.numpy(), scaling


def plain_frequencies(n, theta, yarn):
    f = theta ** (-np.arange(n // 2) / (n / 2))
    if yarn is None:
        return f
    factor, original, fast, slow = yarn

    def correction(turns):
        return n * np.log(original / (turns * 2 * np.pi)) / (2 * np.log(theta))

    low, high = max(np.floor(correction(fast)), 0.0), min(np.ceil(correction(slow)), n - 1.0)
    if low == high:
        high += 0.001
    ramp = np.clip((np.arange(n // 2) - low) / (high - low), 0, 1)
    return f / factor * ramp + f * (1 - ramp)


def rope():
    far = [0, 1, 7, 1000, 30000]
    usual = (16.0, 65536, 32.0, 1.0)
    for name, style, heads, d, start, end, theta, yarn, magnitude, inverse, group, pos in [
        ("yarn_pair_last", "pair", 2, 24, 8, 24, 1.6e5, usual, 1.0, False, 1, far),
        ("yarn_pair_inverse", "pair", 2, 24, 8, 24, 1.6e5, usual, 1.0, True, 1, far),
        ("yarn_pair_grouped", "pair", 1, 24, 8, 24, 1.6e5, usual, 1.0, False, 4, [3, 4, 7, 127, 30001]),
        ("yarn_half_wide", "half", 1, 64, 0, 64, 1e4, (4.0, 4096, 32.0, 1.0), 1.0, False, 1, far),
        ("yarn_magnitude", "half", 2, 16, 0, 16, 1e6, (40.0, 4096, 32.0, 1.0), 1.375, False, 1, far),
        ("yarn_magnitude_inverse", "pair", 2, 16, 0, 16, 1e6, (40.0, 4096, 32.0, 1.0), 0.75, True, 1, far),
        ("yarn_other_betas", "pair", 1, 32, 0, 32, 1e4, (8.0, 2048, 16.0, 2.0), 1.0, False, 1, far),
        ("yarn_low_is_high", "half", 2, 8, 0, 8, 1e4, (4.0, 6, 32.0, 1.0), 1.0, False, 1, [1, 30000]),
        ("yarn_high_clamped", "half", 1, 8, 0, 8, 100.0, (4.0, 1 << 20, 1.0, 0.25), 1.0, False, 1, far),
        ("yarn_no_pair_stretched", "pair", 1, 8, 0, 8, 50.0, (4.0, 1 << 24, 32.0, 1.0), 1.0, False, 1, far),
        ("yarn_factor_one", "half", 1, 8, 0, 8, 1e4, (1.0, 4096, 32.0, 1.0), 1.0, False, 1, far),
        ("yarn_all", "pair", 3, 13, 3, 11, 5e5, (3.5, 8192, 24.0, 1.5), 1.125, True, 128,
         [127, 128, 5000, 131071]),
        ("inverse_half", "half", 2, 8, 0, 8, 1e4, None, 1.0, True, 1, far),
        ("inverse_pair_last", "pair", 2, 12, 4, 12, 1e4, None, 1.0, True, 1, [7, 30000, 1]),
        ("grouped_half", "half", 1, 8, 0, 8, 1e4, None, 1.0, False, 3, [0, 2, 3, 1000, 30000]),
        ("grouped_pair_inverse", "pair", 1, 8, 0, 8, 1e4, None, 1.0, True, 128, [127, 128, 1000]),
        ("magnitude", "pair", 1, 8, 0, 8, 1e4, None, 1.5, False, 1, far),
    ]:
        t, n, h = len(pos), end - start, (end - start) // 2
        x = normal(rng("rope", name), t, heads * d)
        pos = np.array(pos, np.int32)
        ref_f = plain_frequencies(n, theta, yarn)
        utilities = "_compute_yarn_parameters (its float as float64), " if yarn else ""
        f, scaling = yarn_frequencies(n, theta, *yarn, magnitude) if yarn else (ref_f, magnitude)
        assert scaling == magnitude and size(f - ref_f) < 1e-14, name
        turned = (pos // group * group).astype(np.float64)
        angle = torch.outer(t64(turned), t64(f))
        cos, sin = (torch.cat([p, p], -1)[None] * scaling for p in (angle.cos(), angle.sin()))
        sin = -sin if inverse else sin
        q = t64(x).reshape(t, heads, d).transpose(0, 1)[None]
        part = q[..., start:end]
        apply, where = {"half": (rope_half, "models.llama"), "pair": (rope_pair, "models.glm")}[style]
        rotated, _ = apply(part, part, cos, sin)
        y = torch.cat([q[..., :start], rotated, q[..., end:]], -1)
        y = y[0].transpose(0, 1).reshape(t, heads * d).numpy()

        a = x.astype(np.float64).reshape(t, heads, d)
        turn = turned[:, None] * ref_f * (-1 if inverse else 1)
        c, s = np.cos(turn)[:, None] * magnitude, np.sin(turn)[:, None] * magnitude
        i = start + (np.arange(h) if style == "half" else 2 * np.arange(h))
        j = i + (h if style == "half" else 1)
        ref = a.copy()
        ref[:, :, i] = a[:, :, i] * c - a[:, :, j] * s
        ref[:, :, j] = a[:, :, j] * c + a[:, :, i] * s
        # MLX turns by a float32 angle: a check of layout and frequencies where positions are small.
        for row in np.flatnonzero(turned <= 8):
            m = mx.fast.rope(mx.array(x.reshape(t, heads, d)[row, :, start:end])[None, :, None], n,
                             traditional=style == "pair", base=None, scale=-1.0 if inverse else 1.0,
                             offset=int(turned[row]), freqs=mx.array((1 / ref_f).astype(np.float32)))
            off = np.array(m)[0, :, 0] * np.float32(magnitude) - ref[row, :, start:end]
            assert size(off) < 1e-5 * size(ref), (name, row, size(off))
        params = {"style": style, "heads": heads, "head_width": d, "start": start, "end": end, "theta": theta,
                  "scaling": "yarn" if yarn else "none", "magnitude": magnitude, "inverse": inverse, "group": group}
        if yarn:
            params |= dict(zip(("factor", "context_original", "beta_fast", "beta_slow"), yarn))
        case("rope", name, lib("transformers", f"{utilities}{where} apply_rotary_pos_emb (float64)"), params,
             {"x": x, "pos": pos[:, None]}, {"y": y}, 1e-6, {"y": ref.reshape(t, heads * d)})


def main():
    for package in ("numpy", "torch", "mlx", "transformers"):
        assert version(package) == PINS[package], package
    attend()
    rope()
    sunk = [row for row in CASES["attend"] if "sink" in row["tensors"]]
    free = [row for row in CASES["attend"] if "sink" not in row["tensors"]]
    for op, name, rows in (("attend", "sources.json", free), ("attend", "sinks.json", sunk),
                           ("rope", "scaled.json", CASES["rope"])):
        text = "[\n" + ",\n".join(json.dumps(r, separators=(",", ":"), allow_nan=False) for r in rows) + "\n]\n"
        worst = max(r["f64_diff"] for r in rows)
        print(f"{op}/{name} {len(rows)} cases {len(text)} bytes, f64_diff up to {worst}")
        assert len(text) <= MAX_BYTES, name
        (OPS / op / name).write_text(text)


if __name__ == "__main__":
    main()
