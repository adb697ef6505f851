#!/usr/bin/env python3
"""Write mxfp4/ and fp8/ beside this script: tiny packed models as published packages write them, and their numbers.

Names, types, shapes and `quantization_config` are the packages' own. `expected.safetensors` has the
numbers as the packages decode them; the script stops unless numpy and ml_dtypes give the same bits.

    pip install numpy==2.4.6 torch==2.15.0 ml_dtypes==0.6.0 safetensors==0.8.0 transformers==5.24.0 \
        compressed-tensors==0.20.1
"""
import json
import sys
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

sys.dont_write_bytecode = True

import ml_dtypes
import numpy as np
import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationConfig, preset_name_to_scheme
from safetensors.torch import save_file
from transformers import FineGrainedFP8Config
from transformers.integrations.finegrained_fp8 import Fp8Quantize, _dequantize_fp8_weight

HERE = Path(__file__).resolve().parent
PINS = {"numpy": "2.4.6", "torch": "2.15.0", "ml_dtypes": "0.6.0", "safetensors": "0.8.0", "transformers": "5.24.0",
        "compressed-tensors": "0.20.1"}


def weights(seed, *shape):
    return torch.from_numpy(np.random.Generator(np.random.PCG64(seed)).standard_normal(shape).astype(np.float32))


def check(got, want):
    assert (got.numpy().view(np.uint32) == np.ascontiguousarray(want, np.float32).view(np.uint32)).all()


def write(folder, config, stored, expected):
    (HERE / folder).mkdir(exist_ok=True)
    text = json.dumps({"model_type": "test", "quantization_config": config}, indent=1, sort_keys=True)
    (HERE / folder / "config.json").write_text(text + "\n")
    for name, tensors in (("model", stored), ("expected", expected)):
        save_file({key: value.contiguous() for key, value in tensors.items()}, HERE / folder / f"{name}.safetensors")
        (HERE / folder / f"{name}.safetensors").chmod(0o644)
        print(folder, name, {key: (str(value.dtype), list(value.shape)) for key, value in tensors.items()})


def mxfp4():
    form = "mxfp4-pack-quantized"
    scheme = preset_name_to_scheme("MXFP4A16", ["Linear"])
    compressor = BaseCompressor.get_value_from_registry(form)
    stored, expected = {}, {}
    for seed, (name, rows, cols) in enumerate([("up_proj", 3, 96), ("down_proj", 5, 32)]):
        weight = weights(seed, rows, cols)
        groups = weight.abs().reshape(rows, -1, 32).amax(-1)
        scale = torch.exp2(torch.floor(torch.log2(groups)) - 2)
        packed = compressor.compress({"weight": weight, "weight_scale": scale}, scheme)
        prefix = f"model.layers.0.mlp.experts.{seed}.{name}"
        stored |= {f"{prefix}.{key}": value for key, value in packed.items()}
        number = compressor.decompress(dict(packed), scheme)["weight"].float()
        codes, exponents = packed["weight_packed"].numpy(), packed["weight_scale"].numpy()
        nibbles = np.stack([codes & 15, codes >> 4], axis=-1).reshape(rows, cols).view(ml_dtypes.float4_e2m1fn)
        check(number, nibbles.astype(np.float32) * np.exp2(exponents.astype(np.float32) - 127).repeat(32, axis=1))
        expected[f"{prefix}.weight"] = number
    stored["model.norm.weight"] = expected["model.norm.weight"] = weights(9, 4)
    config = QuantizationConfig(config_groups={"group_0": scheme}, format=form, quantization_status="compressed",
                                ignore=["lm_head"])
    write("mxfp4", config.model_dump(mode="json"), stored, expected)


def fp8():
    """The scales' grid of a fused tensor of experts is one for each expert."""
    config = FineGrainedFP8Config(weight_block_size=(32, 32))
    quantize = Fp8Quantize(SimpleNamespace(quantization_config=config))
    prefix = "model.layers.0.mlp"
    whole = {f"{prefix}.gate_proj.weight": weights(3, 64, 32), f"{prefix}.experts.down_proj": weights(4, 2, 32, 32)}
    whole[f"{prefix}.gate_proj.weight"][:, 5] *= 40
    whole[f"{prefix}.experts.down_proj"][1] *= 1e-3
    stored, expected = {}, {}
    for name, weight in whole.items():
        two = quantize.convert({name: weight})
        scale = two[f"{name}_scale_inv"]
        stored |= two
        number = _dequantize_fp8_weight(two[name], scale, [32, 32], torch.float32)
        values = two[name].view(torch.uint8).numpy().view(ml_dtypes.float8_e4m3fn).astype(np.float32)
        check(number, values * scale.numpy().repeat(32, -2).repeat(32, -1))
        # Of the matrix, rows of both blocks: little data.
        expected[name if number.dim() == 3 else f"{name} 28..36"] = number if number.dim() == 3 else number[28:36]
    stored["lm_head.weight"] = expected["lm_head.weight"] = weights(8, 2, 4)
    write("fp8", config.to_dict(), stored, expected)


def main():
    for package, want in PINS.items():
        assert version(package) == want, (package, version(package), want)
    mxfp4()
    fp8()


if __name__ == "__main__":
    main()
