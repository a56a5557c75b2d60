#!/usr/bin/env python3
"""Logits of a few seeded tiny models for the fast suite: writes tests/data/formats_goldens.json.

    python3 tests/peers/format_goldens.py OUT.json

Needs numpy, torch and transformers (Debian sid). tests/peers/tiny_models.py says how weights and tokens follow from the
seed, so that a C++ test makes the same model files anew (weights are the float32 values themselves, in halves order; GGUF
wants Q and K rows in pairs). transformers computes in float64, with angles from the published formulas in float64: its own
are float32, 5e-4 radians off at position 8000. `float32` is how far its plain float32 run lies from that.
"""
import json
import sys

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

import tiny_models
from tiny_models import LLAMA3, Spec

SHORT = {**LLAMA3, "original_max_position_embeddings": 64}  # the whole rule within a few hundred positions
# name: spec, tokens, rows of logits
MODELS = {
    "plain, tied, every head its own K/V": (Spec(101, 64, 2, 2, 2, 32, 96, 64, True), 40, [0, 1, 39]),
    "3:1 heads of 128, untied": (Spec(102, 96, 2, 3, 1, 128, 160, 64, False), 40, [0, 1, 39]),
    "linear scaling": (Spec(103, 64, 1, 2, 1, 64, 96, 64, True, 10000.0, {"factor": 4.0}, "linear"), 200, [0, 100, 199]),
    "llama3 scaling from 64 positions": (
        Spec(104, 96, 2, 3, 1, 128, 96, 64, True, 500000.0, SHORT, "llama3", 2048), 300, [0, 63, 64, 299]),
    "llama3 scaling beyond 8192 positions": (
        Spec(105, 64, 1, 2, 1, 32, 96, 64, True, 500000.0, LLAMA3, "llama3", 131072), 8300, [0, 8191, 8192, 8299]),
}


def frequencies(spec):
    at = torch.arange(0, spec.head_dim, 2, dtype=torch.float64)
    plain = spec.theta ** (-at / spec.head_dim)
    if spec.kind == "linear":
        return plain / spec.scaling["factor"]
    if spec.kind == "llama3":
        return plain / torch.from_numpy(tiny_models.llama3_divisors(spec, float))
    return plain


def load(spec, dtype):
    config = LlamaConfig(**{k: v for k, v in tiny_models.config(spec).items() if k != "torch_dtype"})
    model = LlamaForCausalLM(config).eval()
    state = {name: torch.from_numpy(w) for name, w in tiny_models.weights(spec).items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}
    model.tie_weights()
    return model.to(dtype)


def use_exact_angles(model, spec):
    exact, rotary = frequencies(spec), model.model.rotary_emb
    assert ((rotary.inv_freq.double() / exact - 1).abs() < 1e-6).all(), "transformers has other frequencies"

    def forward(hidden, position_ids):
        angles = position_ids[..., None].double() * exact
        both = torch.cat([angles, angles], -1)
        return both.cos().to(hidden.dtype), both.sin().to(hidden.dtype)

    rotary.forward = forward


def logits_of(model, tokens, rows):
    with torch.no_grad():
        all_rows = model(torch.tensor([tokens]), past_key_values=DynamicCache(), use_cache=True).logits[0]
    return all_rows[rows].double()


def main():
    torch.set_num_threads(2)
    out = []
    for name, (spec, n, rows) in MODELS.items():
        tokens = tiny_models.tokens(spec, n)
        plain = logits_of(load(spec, torch.float32), tokens, rows)
        model = load(spec, torch.float64)
        use_exact_angles(model, spec)
        exact = logits_of(model, tokens, rows)
        off = float((exact - plain).abs().max())
        assert off < 5e-3, off
        print(f"{name}: float32 {off:.1e}, logits ±{float(exact.std()):.2f}")
        made = tiny_models.weights(spec)
        out.append({
            "name": name,
            "seed": spec.seed,
            "config": tiny_models.config(spec),
            "tokens": n,
            "first_tokens": tokens[:8],
            "first_weights": {key: [float(v) for v in w.flat[:2]] for key, w in made.items()},
            "float32": float(f"{off:.2g}"),
            "logits": {str(r): [float(f"{v:.9g}") for v in row] for r, row in zip(rows, exact)},
        })
    text = ",\n".join("{" + ",\n ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in model.items()) + "}" for model in out)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(f"[{text}]\n")


if __name__ == "__main__":
    main()
