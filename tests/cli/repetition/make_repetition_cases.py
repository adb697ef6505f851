#!/usr/bin/env python3
"""Write repetition_cases.json: greedy continuations of the demo model under a repetition penalty.

The tokens are those of transformers' `generate`, which penalizes prompt and output alike. `margin`
is the least distance of the best score from the second: it must be far above the error of float32.
Needs torch and transformers (written with 2.15.0 and 5.23.0).
"""
import json
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM

ROOT = Path(__file__).resolve().parents[3]
DEMO = ROOT / "models" / "olmoe" / "demo"
TOKENS = 32


def main():
    model = AutoModelForCausalLM.from_pretrained(DEMO, dtype=torch.float32).eval()
    reference = json.loads((DEMO / "reference.json").read_text())["cases"]
    cases = []
    for index in (0, 1, 24):
        ids = torch.tensor([reference[index]["prompt_ids"]])
        for penalty in (1.1, 1.5, 0.8):
            out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False,
                                 max_new_tokens=TOKENS, repetition_penalty=penalty,
                                 return_dict_in_generate=True, output_scores=True)
            best = [torch.topk(scores[0], 2).values for scores in out.scores]
            margin = min(float(two[0] - two[1]) for two in best)
            assert margin > 1e-3, (index, penalty, margin)
            cases.append({"case": index, "repeat_penalty": penalty, "margin": margin,
                          "tokens": out.sequences[0, ids.shape[1]:].tolist()})
    result = {"from": f"transformers {transformers.__version__}", "cases": cases}
    path = Path(__file__).with_name("repetition_cases.json")
    path.write_text(json.dumps(result, indent=None, separators=(",", ":")) + "\n")
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
