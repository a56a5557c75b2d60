#!/usr/bin/env python3
"""Writes random tiny Llama models in every format people have: Hugging Face folders and GGUF files.

    python3 tests/peers/make_models.py OUT          (from the top folder; about 250 MB, a minute)

Needs numpy, torch, safetensors, gguf, sentencepiece and llama.cpp's llama-quantize and llama-gguf-split (Debian sid).
Vocabulary: the bundled pair's tokenizer.model, so that the models are complete. Weights: tests/peers/tiny_models.py.
"""
import json
import os
import shutil
import subprocess
import sys

import gguf
import numpy as np
import torch
from safetensors.torch import save_file
from sentencepiece import SentencePieceProcessor

from tiny_models import LLAMA3, Spec, config, llama3_divisors, weights

TOKENIZER = "apps/pair/target/tokenizer.model"
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
V = 4096  # tokens of that vocabulary

# hidden and ffn are multiples of 256, as k-quants need, except in `odd`
SPECS = {
    # the shape of Llama 3.2 1B: 4 query heads for a K/V head of 64
    "gqa4": Spec(1, 256, 2, 4, 1, 64, 768, V, True, 500000.0, LLAMA3, "llama3", 131072),
    # that of Llama 3.2 3B: 3 for one of 128
    "gqa3": Spec(2, 768, 2, 6, 2, 128, 1024, V, True, 500000.0, LLAMA3, "llama3", 131072),
    # that of Llama 2: every query head has its own K/V head, output untied, feed-forward no power of two
    "mha": Spec(3, 256, 2, 4, 4, 64, 1280, V, False),
    # linear scaling; query heads wider together than the model
    "linear": Spec(4, 256, 2, 8, 4, 64, 512, V, False, 10000.0, {"factor": 4.0}, "linear", 8192),
    # rows that no k-quant fits: llama-quantize falls back to Q5_0, Q8_0 and the like
    "odd": Spec(5, 192, 2, 3, 1, 64, 352, V, True),
    # positions beyond 8192
    "long": Spec(6, 256, 1, 4, 1, 64, 512, V, True, 500000.0, LLAMA3, "llama3", 131072),
}

# ---- Hugging Face folders ----------------------------------------------------------------------------------------------


def rope_parameters(c):
    """transformers ≥ 5: theta and scaling in one object."""
    c["rope_parameters"] = {"rope_theta": c.pop("rope_theta"), **(c.pop("rope_scaling") or {"rope_type": "default"})}
    c["dtype"] = c.pop("torch_dtype")


def old_spelling(c):
    """Before 4.45 or so: `type`, and keys at their defaults left out."""
    c["rope_scaling"] = {"type": c["rope_scaling"]["rope_type"], "factor": c["rope_scaling"]["factor"]}
    for key in ("rope_theta", "mlp_bias", "attention_bias"):
        del c[key]


def oldest(c):
    for key in ("head_dim", "num_key_value_heads", "rope_theta", "rope_scaling", "attention_bias", "mlp_bias"):
        del c[key]


def eos_list(c):
    c["eos_token_id"] = [2, 7, 9]


# name: spec, dtype, shards, changes to config.json
FOLDERS = {
    "hf-gqa4-bf16": ("gqa4", "bf16", 1, [eos_list]),
    "hf-gqa4-f16-sharded": ("gqa4", "f16", 3, []),
    "hf-gqa4-f32-rope-parameters": ("gqa4", "f32", 1, [rope_parameters]),
    "hf-gqa3-bf16": ("gqa3", "bf16", 1, [rope_parameters, eos_list]),
    "hf-mha-f16-oldest-config": ("mha", "f16", 1, [oldest]),
    "hf-mha-bf16-sharded": ("mha", "bf16", 2, [rope_parameters]),
    "hf-linear-f32": ("linear", "f32", 1, [old_spelling]),
    "hf-odd-bf16": ("odd", "bf16", 1, []),
    "hf-long-bf16": ("long", "bf16", 1, []),
}


def write_folder(path, spec, dtype, n_shards, changes):
    os.makedirs(path)
    c = config(spec, {"bf16": "bfloat16", "f16": "float16", "f32": "float32"}[dtype])
    for change in changes:
        change(c)
    write_json(f"{path}/config.json", c)
    write_json(f"{path}/generation_config.json", {"bos_token_id": 1, "eos_token_id": c["eos_token_id"]})
    shutil.copy(TOKENIZER, f"{path}/tokenizer.model")
    write_json(f"{path}/tokenizer_config.json", {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True})
    tensors = {name: torch.from_numpy(w).to(DTYPES[dtype]) for name, w in weights(spec).items()}
    names = sorted(tensors)
    if n_shards == 1:
        save_file(tensors, f"{path}/model.safetensors", {"format": "pt"})
        return
    index = {"metadata": {"total_size": sum(t.numel() * t.element_size() for t in tensors.values())}, "weight_map": {}}
    for s in range(n_shards):
        file = f"model-{s + 1:05}-of-{n_shards:05}.safetensors"
        mine = names[s::n_shards]  # neighbours lie in different files
        save_file({name: tensors[name] for name in mine}, f"{path}/{file}", {"format": "pt"})
        index["weight_map"].update({name: file for name in mine})
    write_json(f"{path}/model.safetensors.index.json", index)


def write_json(path, tree):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(tree, file, indent=2)


# ---- GGUF files --------------------------------------------------------------------------------------------------------

NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}


def gguf_name(name):
    stem = name.removesuffix(".weight")
    if stem in NAMES:
        return NAMES[stem] + ".weight"
    _, _, layer, rest = stem.split(".", 3)
    return f"blk.{layer}.{NAMES[rest]}.weight"


def rows_in_pairs(w, n_heads):
    """Rotated halves (i, i + d/2) become neighbours (2i, 2i + 1), as llama.cpp's converter stores Q and K."""
    return w.reshape(n_heads, 2, -1, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def write_vocabulary(writer):
    pieces = SentencePieceProcessor(model_file=TOKENIZER)
    kinds = gguf.TokenType
    texts, scores, types = [], [], []
    for i in range(pieces.get_piece_size()):
        texts.append(pieces.id_to_piece(i).encode())
        scores.append(pieces.get_score(i))
        types.append(kinds.UNKNOWN if pieces.is_unknown(i) else kinds.CONTROL if pieces.is_control(i)
                     else kinds.BYTE if pieces.is_byte(i) else kinds.NORMAL)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(texts)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)


def write_gguf(path, spec, dtype):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(spec.max_position)
    writer.add_embedding_length(spec.hidden)
    writer.add_block_count(spec.layers)
    writer.add_feed_forward_length(spec.ffn)
    writer.add_head_count(spec.heads)
    writer.add_head_count_kv(spec.kv_heads)
    writer.add_layer_norm_rms_eps(spec.eps)
    writer.add_rope_freq_base(spec.theta)
    writer.add_rope_dimension_count(spec.head_dim)
    writer.add_key_length(spec.head_dim)
    writer.add_value_length(spec.head_dim)
    writer.add_vocab_size(spec.vocab)
    writer.add_file_type({"f32": 0, "f16": 1, "bf16": 32}[dtype])
    if spec.kind == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(spec.scaling["factor"])
    write_vocabulary(writer)
    if spec.kind == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_divisors(spec))
    for name, w in weights(spec).items():
        if name.endswith("q_proj.weight"):
            w = rows_in_pairs(w, spec.heads)
        elif name.endswith("k_proj.weight"):
            w = rows_in_pairs(w, spec.kv_heads)
        if w.ndim == 1 or dtype == "f32":
            writer.add_tensor(gguf_name(name), w)
        elif dtype == "f16":
            writer.add_tensor(gguf_name(name), w.astype(np.float16))
        else:
            kind = gguf.GGMLQuantizationType.BF16
            writer.add_tensor(gguf_name(name), gguf.quants.quantize(w, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# spec: llama-quantize's types; --pure: every matrix has that one type
PURE = {"gqa4": ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M", "Q6_K"]}
MIXED = {"gqa4": ["Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M", "Q4_0"], "gqa3": ["Q4_K_M"], "mha": ["Q4_K_M", "Q5_1"], "odd": ["Q4_K_M", "Q2_K"]}


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = sys.argv[1]
    os.makedirs(out)  # fails where something is there already: nothing is mixed up
    for name, (spec, *how) in FOLDERS.items():
        write_folder(f"{out}/{name}", SPECS[spec], *how)
    for name, spec in SPECS.items():
        write_gguf(f"{out}/{name}-F32.gguf", spec, "f32")
    for name in ("gqa4", "gqa3", "mha"):
        write_gguf(f"{out}/{name}-F16.gguf", SPECS[name], "f16")
    write_gguf(f"{out}/gqa4-BF16.gguf", SPECS["gqa4"], "bf16")
    for name, types in PURE.items():
        for kind in types:
            pure = kind.replace("_K_M", "_K")
            run("llama-quantize", "--pure", f"{out}/{name}-F32.gguf", f"{out}/{name}-pure-{pure}.gguf", kind, "2")
    for name, types in MIXED.items():
        for kind in types:
            run("llama-quantize", f"{out}/{name}-F32.gguf", f"{out}/{name}-{kind}.gguf", kind, "2")
    os.remove(f"{out}/long-F32.gguf")
    write_gguf(f"{out}/long-F16.gguf", SPECS["long"], "f16")
    run("llama-gguf-split", "--split", "--split-max-tensors", "11", f"{out}/gqa4-Q4_K_M.gguf", f"{out}/gqa4-Q4_K_M")


if __name__ == "__main__":
    main()
