"""Random tiny Llama models: their shapes, and weights that depend on a seed alone, so that C++ can make the same ones.

Numbers. u(seed, t, i) of element i (row-major) of tensor t (its place in weight_list, from 0), all in 64 bits, wrapping:
    z = (seed·2^48 + t·2^32 + i + 1) · 0x9E3779B97F4A7C15
    z = (z ^ z>>30) · 0xBF58476D1CE4E5B9;  z = (z ^ z>>27) · 0x94D049BB133111EB;  z ^= z>>31      (splitmix64)
    u = (z>>40)·2^-23 − 1                   in [−1, 1), exact in float
A weight is float(double(base) + double(scale)·u), with base and scale of weight_list as doubles.
Tokens. token i of a prompt: (splitmix64 of seed·2^48 + 2^47 + i, as above, z>>33) mod vocab.
"""
import math
from dataclasses import dataclass

import numpy as np


@dataclass
class Spec:
    seed: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    tied: bool
    theta: float = 10000.0
    scaling: dict | None = None  # as config.json writes it, without the key that names the kind
    kind: str = "default"  # llama3, linear or default
    max_position: int = 2048
    eps: float = 1e-5


def weight_list(spec):
    """(name, shape with the slowest dimension first, base, scale), in the order that numbers the tensors."""
    d, q, kv = spec.hidden, spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim

    def matrix(name, rows, columns, gain):
        return (name + ".weight", (rows, columns), 0.0, gain * math.sqrt(3.0 / columns))

    def norm(name):
        return (name + ".weight", (d,), 1.0, 0.25)

    out = [matrix("model.embed_tokens", spec.vocab, d, 2.0)]
    for i in range(spec.layers):
        at = f"model.layers.{i}."
        out += [
            norm(at + "input_layernorm"),
            matrix(at + "self_attn.q_proj", q, d, 1.5),  # larger, so that what is attended to depends on positions
            matrix(at + "self_attn.k_proj", kv, d, 1.5),
            matrix(at + "self_attn.v_proj", kv, d, 1.0),
            matrix(at + "self_attn.o_proj", d, q, 1.0),
            norm(at + "post_attention_layernorm"),
            matrix(at + "mlp.gate_proj", spec.ffn, d, 1.0),
            matrix(at + "mlp.up_proj", spec.ffn, d, 1.0),
            matrix(at + "mlp.down_proj", d, spec.ffn, 1.0),
        ]
    out.append(norm("model.norm"))
    if not spec.tied:
        out.append(matrix("lm_head", spec.vocab, d, 2.0))
    return out


def splitmix64(x):
    with np.errstate(over="ignore"):
        z = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def weights(spec):
    """name → float32 array."""
    out = {}
    for t, (name, shape, base, scale) in enumerate(weight_list(spec)):
        start = np.uint64((spec.seed << 48) + (t << 32))
        z = splitmix64(start + np.arange(math.prod(shape), dtype=np.uint64))
        u = (z >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1.0
        out[name] = (base + scale * u).astype(np.float32).reshape(shape)
    return out


def tokens(spec, n):
    z = splitmix64(np.uint64((spec.seed << 48) + (1 << 47)) + np.arange(n, dtype=np.uint64))
    return [int(t) for t in (z >> np.uint64(33)) % np.uint64(spec.vocab)]


def config(spec, dtype="float32"):
    """config.json as transformers 4 writes it; make_models.py bends it into the other spellings."""
    scaling = None
    if spec.kind != "default":
        scaling = {"rope_type": spec.kind, **(spec.scaling or {})}
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": spec.hidden,
        "intermediate_size": spec.ffn,
        "num_hidden_layers": spec.layers,
        "num_attention_heads": spec.heads,
        "num_key_value_heads": spec.kv_heads,
        "head_dim": spec.head_dim,
        "vocab_size": spec.vocab,
        "rms_norm_eps": spec.eps,
        "rope_theta": spec.theta,
        "rope_scaling": scaling,
        "max_position_embeddings": spec.max_position,
        "tie_word_embeddings": spec.tied,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "torch_dtype": dtype,
    }


LLAMA3 = {"factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}


def llama3_divisors(spec, dtype=np.float32):
    """GGUF's rope_freqs.weight: what each frequency is divided by (the rule of transformers' modeling_rope_utils)."""
    s, out = spec.scaling, []
    for i in range(spec.head_dim // 2):
        wavelength = 2 * math.pi * spec.theta ** (2 * i / spec.head_dim)
        low, high = s["low_freq_factor"], s["high_freq_factor"]
        turns = s["original_max_position_embeddings"] / wavelength
        if turns > high:
            out.append(1.0)
        elif turns < low:
            out.append(s["factor"])
        else:
            smooth = (turns - low) / (high - low)
            out.append(1.0 / ((1 - smooth) / s["factor"] + smooth))
    return np.array(out, dtype=dtype)
