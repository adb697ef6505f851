#!/usr/bin/env python3
"""Write shaders/src/formats/{int8,int4,int3,mxfp4,fp8}/cases.json: stored matrices and their numbers.

Codes and scales are chosen here; every number is decoded by a published package, and a second time
with numpy and ml_dtypes. The script stops unless both give the same bits. README.md beside this
file has the packages and the file format.
"""
import json
import os
import sys
import zlib
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.dont_write_bytecode = True

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import torch
from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32, unpack_from_int32
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.lifecycle.forward import dequantize, quantize
from gguf.quants import Q4_K
from transformers.integrations.finegrained_fp8 import Fp8Dequantize, _dequantize_fp8_weight

FORMATS = Path(__file__).resolve().parents[3] / "shaders" / "src" / "formats"
PINS = {"numpy": "2.4.6", "torch": "2.15.0", "jax": "0.10.2", "transformers": "5.23.0", "ml_dtypes": "0.6.0",
        "compressed-tensors": "0.20.1", "gguf": "0.19.0"}
MAX_BYTES = 40_000
GROUP = 64
CASES = {}

# Of f32 scales: usual, negative, subnormal, so large that products overflow, zeros, not finite.
SCALES = np.array([1.5e-3, -0.7310586, 1e-42, 3e38, 0.0, np.inf, np.nan, -0.0, -np.inf, 1.1754944e-38, 12.5, -3e-41],
                  np.float32)
POWERS = np.array([127, 0, 254, 255, 1, 120, 133, 250, 10, 128, 126, 7], np.uint8)


def lib(package, what):
    return f"{package} {PINS[package]} {what}"


def rng(name):
    return np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))


def codes(name, count, shape):
    """Codes in random order, each once before any twice."""
    size = int(np.prod(shape))
    r = rng(name)
    return np.concatenate([r.permutation(count) for _ in range(-(-size // count))])[:size].reshape(shape).astype(np.uint8)


def scales(shape, of=SCALES):
    return np.resize(of, shape)


def same(a, b):
    a, b = (np.ascontiguousarray(v, np.float32) for v in (a, b))
    return bool(((a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))).all())


def case(folder, name, fmt, source, shape, values, stored_scales, expected, second, at=None, row=None):
    """`values` and `expected` of the rows `at`, all of them by default; `row` is what encodes to them."""
    expected = np.ascontiguousarray(expected, np.float32)
    assert same(expected, second), (folder, name)
    at = list(range(shape[0])) if at is None else at
    assert expected.shape == (len(at), shape[1]), (folder, name, expected.shape)
    entry = {"name": name, "format": fmt, "from": source, "shape": list(shape), "at": at,
             "values": np.ascontiguousarray(values).tobytes().hex(),
             "scales": np.ascontiguousarray(stored_scales).tobytes().hex(), "expected": expected.tobytes().hex()}
    if row is not None:
        entry["row"] = np.ascontiguousarray(row, np.float32).tobytes().hex()
    rows = CASES.setdefault(folder, [])
    assert name not in [r["name"] for r in rows], name
    rows.append(entry)


# ---------------------------------------------------------------- whole numbers

def padded(a, to, value=0):
    return np.pad(a, ((0, 0), (0, -a.shape[1] % to)), constant_values=value)


def arguments(bits, group):
    how = {"strategy": "channel"} if group is None else {"strategy": "group", "group_size": group}
    return QuantizationArgs(num_bits=bits, symmetric=True, **how)


def scaled(q, s, group, bits):
    """compressed-tensors' product; it wants whole groups."""
    cols = q.shape[1]
    whole = q if group is None else padded(q, group)
    out = dequantize(torch.from_numpy(whole.astype(np.int8)), torch.from_numpy(s), None, arguments(bits, group))
    return out.numpy()[:, :cols]


def product(q, s, group):
    cols = q.shape[1]
    spread = np.repeat(s, cols if group is None else group, axis=1)[:, :cols]
    with np.errstate(all="ignore"):
        return q.astype(np.float32) * spread


def unpacked(values, bits, cols):
    """Numbers of a row of little-endian codes, each less half of the range."""
    words = torch.from_numpy(padded(values, 4).view(np.int32).copy())
    return unpack_from_int32(words, bits, torch.Size([len(values), cols])).numpy()


def shapes(name, widths):
    """(name, group, scales) of a matrix of seven rows, and of one with three groups a row."""
    row, grouped = widths
    return [(f"{name}-row", None, (7, row), scales((7, 1))), (f"{name}-g64", GROUP, (4, grouped), scales((4, 3)))]


def int8():
    for fmt, group, shape, s in shapes("int8", (41, 150)):
        values = codes(fmt, 256, shape)
        q = values.view(np.int8)
        case("int8", fmt, fmt, lib("compressed-tensors", "dequantize"), shape, values, s,
             scaled(q, s, group, 8), product(q, s, group))
        encoded("int8", fmt, group, 8, lambda q: q.astype(np.int8).view(np.uint8))


def pack_pairs(q):
    packed = pack_to_int32(torch.from_numpy(q.astype(np.int8)), 4).numpy().view(np.uint8)
    return packed[:, :-(-q.shape[1] // 2)]


def int4():
    for fmt, group, shape, s in shapes("int4", (33, 145)):
        rows, cols = shape
        values = codes(fmt, 256, (rows, -(-cols // 2)))
        nibbles = np.stack([values & 15, values >> 4], axis=-1).reshape(rows, -1)[:, :cols].astype(np.int8)
        q = unpacked(values, 4, cols)
        case("int4", fmt, fmt, lib("compressed-tensors", "unpack_from_int32, dequantize"), shape, values, s,
             scaled(q, s, group, 4), product(nibbles - 8, s, group))
        twos = np.asarray(jax.lax.bitcast_convert_type(values, jnp.int4).astype(jnp.int8)).reshape(rows, -1)[:, :cols]
        case("int4", f"{fmt}-tc", f"{fmt}-tc", lib("jax", "lax.bitcast_convert_type to int4") + "; "
             + lib("compressed-tensors", "dequantize"), shape, values, s, scaled(twos, s, group, 4),
             product((nibbles ^ 8) - 8, s, group))
        encoded("int4", fmt, group, 4, pack_pairs)
    planar()


def planar():
    """Q4_K's nibbles are in this order: with scales of 1 and minima of 8 its numbers are the codes less 8."""
    rows, cols = 4, 145
    values = codes("planar", 256, (rows, 96))
    blocks = np.zeros((rows, 144), np.uint8)
    blocks[:, 0:4] = np.array([1, 1], np.float16).view(np.uint8)
    blocks[:, 4:16] = [1, 1, 1, 1, 8, 8, 8, 8, 0x81, 0x81, 0x81, 0x81]
    blocks[:, 16:112] = values
    q = Q4_K.dequantize_blocks(blocks)[:, :cols]
    halves = values.reshape(rows, 3, 32)
    again = np.concatenate([halves & 15, halves >> 4], axis=2).reshape(rows, -1)[:, :cols].astype(np.int8) - 8
    s = scales((rows, 3))
    case("int4", "int4-g64-planar", "int4-g64-planar", lib("gguf", "Q4_K.dequantize_blocks") + "; "
         + lib("compressed-tensors", "dequantize"), (rows, cols), values, s, scaled(q, s, GROUP, 4),
         product(again, s, GROUP))


def encoded(folder, fmt, group, bits, pack):
    """Scales by the documented rule, whole numbers and packing by the library."""
    most, cols = 2 ** (bits - 1) - 1, 145
    row = np.round(rng(f"encode {fmt}").standard_normal((1, cols)), 4).astype(np.float32)
    # A group with halves (its scale is a power of two), a last one of zeros.
    row[0, 64:128] = np.resize(np.arange(-most - 1, most, 0.5), 64).clip(-most, most) / 8
    row[0, 70] = most / 8
    row[0, 128:] = 0
    groups = np.abs(row if group is None else padded(row, group)).reshape(-1, group or cols)
    s = (groups.max(axis=1) / np.float32(most)).reshape(1, -1).astype(np.float32)
    safe = torch.from_numpy(np.where(s == 0, np.float32(1), s))
    whole = torch.from_numpy(row if group is None else padded(row, group))
    q = quantize(whole, safe, None, arguments(bits, group), torch.int8).numpy()[:, :cols]
    again = np.clip(np.rint(row / np.repeat(safe.numpy(), group or cols, axis=1)[:, :cols]), -most - 1, most)
    assert (q == again).all(), fmt
    case(folder, f"{fmt} encoded", fmt, lib("compressed-tensors", "quantize, dequantize; int4: pack_to_int32"), (1, cols),
         pack(q), s, scaled(q, s, group, bits), product(q, s, group), row=row)


def int3():
    rows, cols = 4, 145
    values = codes("int3", 256, (rows, 3, 24))
    low, high = values[:, :, :16].reshape(rows, -1), values[:, :, 16:].reshape(rows, -1)
    q = ((unpacked(low, 2, 192) + 2) + (unpacked(high, 1, 192) + 1) * 4 - 4)[:, :cols]
    bits = [np.unpackbits(plane, axis=1, bitorder="little") for plane in (low, high)]
    again = (bits[0][:, 0::2] + 2 * bits[0][:, 1::2] + 4 * bits[1]).astype(np.int8)[:, :cols] - 4
    assert set(q.ravel()) == set(range(-4, 4))
    s = scales((rows, 3))
    case("int3", "int3-g64", "int3-g64", lib("compressed-tensors", "unpack_from_int32 of each plane, dequantize"),
         (rows, cols), values, s, scaled(q, s, GROUP, 4), product(again, s, GROUP))


# ---------------------------------------------------------------- floats

def mxfp4():
    rows, cols = 5, 192
    values = codes("mxfp4", 256, (rows, cols // 2))
    s = np.concatenate([scales((4, 6), POWERS), np.array([[0, 1, 2, 252, 253, 254]], np.uint8)])
    got = Fp8Dequantize(None)._dequantize_one(torch.from_numpy(values).view(torch.int8),
                                              torch.from_numpy(s).view(torch.float8_e8m0fnu), torch.float32)
    nibbles = np.stack([values & 15, values >> 4], axis=-1).reshape(rows, cols)
    with np.errstate(all="ignore"):
        again = nibbles.view(ml_dtypes.float4_e2m1fn).astype(np.float32) * np.repeat(
            s.view(ml_dtypes.float8_e8m0fnu).astype(np.float32), 32, axis=1)
    case("mxfp4", "mxfp4", "mxfp4", lib("transformers", "Fp8Dequantize, float4 packed in int8, float8_e8m0fnu scales"),
         (rows, cols), values, s, got.numpy(), again)


SCALE_TYPES = {
    "f32": (SCALES, torch.float32, np.float32),
    "bf16": (SCALES.astype(ml_dtypes.bfloat16), torch.bfloat16, ml_dtypes.bfloat16),
    "ue8m0": (POWERS, torch.float8_e8m0fnu, ml_dtypes.float8_e8m0fnu),
}


def fp8():
    blocks = [("128x128", (128, 128), (130, 130), [0, 127, 128]), ("32x32", (32, 32), (66, 70), [0, 31, 32]),
              ("1x128", (1, 128), (2, 130), None), ("1x32", (1, 32), (2, 70), None), ("row", (1, 50), (4, 50), None)]
    for block, (high, wide), (rows, cols), at in blocks:
        for kind, (of, in_torch, in_numpy) in SCALE_TYPES.items():
            fmt, grid = f"fp8-{block}-{kind}", (-(-rows // high), -(-cols // wide))
            kept = list(range(rows)) if at is None else at
            values = np.zeros((rows, cols), np.uint8)
            values[kept] = codes(fmt, 256, (len(kept), cols))
            s = scales(grid, of)
            stored = torch.from_numpy(s.view(np.uint8).copy()).view(in_torch).reshape(grid)
            got = _dequantize_fp8_weight(torch.from_numpy(values).view(torch.float8_e4m3fn), stored, [high, wide],
                                         torch.float32)
            spread = s.view(in_numpy).astype(np.float32).repeat(high, 0)[:rows].repeat(wide, 1)[:, :cols]
            with np.errstate(all="ignore"):
                again = values.view(ml_dtypes.float8_e4m3fn).astype(np.float32) * spread
            case("fp8", fmt, fmt, lib("transformers", "_dequantize_fp8_weight to float32"), (rows, cols), values[kept], s,
                 got.numpy()[kept], again[kept], kept)


def main():
    for package, want in PINS.items():
        assert version(package) == want, (package, version(package), want)
    int8()
    int4()
    int3()
    mxfp4()
    fp8()
    for folder, rows in CASES.items():
        text = "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"
        assert len(text) <= MAX_BYTES, (folder, len(text))
        (FORMATS / folder / "cases.json").write_text(text)
        print(folder, len(rows), "cases,", len(text), "bytes")


if __name__ == "__main__":
    main()
