"""Writes golden/: a tiny random model of `outside_tiny` and its results, by numpy in float64. Needs numpy alone.

    python3 tests/plugins/outside/make_golden.py
"""

import json
import pathlib

import numpy as np

VOCAB, WIDTH, CONTEXT, DECAY, TURN = 24, 12, 64, 0.75, 5
PROMPT, STEPS = [3, 1, 4, 1, 5, 9, 2, 6], 10
FOLDER = pathlib.Path(__file__).parent / "golden"


def bf16(numbers):
    """Rounds to the nearest bf16, which is stored as its upper 16 bits."""
    bits = numbers.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def safetensors(path, tensors):
    """Writes (name, stored type, array) one after the other."""
    header, data = {}, b""
    for name, kind, array in tensors:
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def run(ids, embed, gain, turn_gain, head):
    """Logits and rows between segments, from the definition: the sum is written out."""
    x = embed[ids]
    y = np.array([sum(DECAY ** (t - s) * x[s] for s in range(t + 1)) for t in range(len(ids))]) * gain
    h = x + y
    return (turn_gain * np.roll(h, -TURN, axis=1)) @ head.T, x, h


def main():
    rng = np.random.default_rng(20240608)
    embed, head = (rng.normal(0, 1, (VOCAB, WIDTH)).astype(np.float32) for _ in range(2))
    gain = bf16(rng.normal(0, 0.5, WIDTH))
    turn_gain = rng.normal(1, 0.25, WIDTH).astype(np.float32)
    wide = (gain.astype(np.uint32) << 16).view(np.float32)
    exact = [array.astype(np.float64) for array in (embed, wide, turn_gain, head)]
    ids = list(PROMPT)
    for _ in range(STEPS):
        logits = np.sort(run(ids, *exact)[0][-1])
        assert logits[-1] - logits[-2] > 1e-2, "two best tokens are too close: take another seed"
        ids.append(int(np.argmax(run(ids, *exact)[0][-1])))
    logits, first, last = run(ids, *exact)
    FOLDER.mkdir(exist_ok=True)
    config = {"model_type": "outside_tiny", "vocab": VOCAB, "width": WIDTH, "context": CONTEXT, "decay": DECAY, "turn": TURN}
    (FOLDER / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    tensors = [("embed", "F32", embed), ("gain", "BF16", gain), ("turn_gain", "F32", turn_gain), ("head", "F32", head)]
    safetensors(FOLDER / "model.safetensors", tensors)
    reference = {"from": f"numpy {np.__version__}, float64, make_golden.py", "prompt": PROMPT, "greedy": ids[len(PROMPT) :]}
    (FOLDER / "reference.json").write_text(json.dumps(reference, indent=2) + "\n")
    numbers = [("logits", logits), ("hidden.0", first), ("hidden.1", last)]
    safetensors(FOLDER / "reference.st", [(name, "F32", array.astype(np.float32)) for name, array in numbers])
    words = {"<unk>": 0} | {f"w{number}": number for number in range(1, VOCAB)}
    model = {"type": "WordLevel", "vocab": words, "unk_token": "<unk>"}
    tokenizer = {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"}}
    tokenizer |= {"post_processor": None, "decoder": None, "model": model}
    (FOLDER / "tokenizer.json").write_text(json.dumps(tokenizer, indent=1) + "\n")


main()
