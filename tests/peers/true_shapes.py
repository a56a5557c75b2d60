#!/usr/bin/env python3
"""Random weights in the exact shapes of Llama-3.2-1B-Instruct and 3B-Instruct, with a vocabulary of Llama 3's kind and size.

    true_shapes.py OUT [NAME…]    writes OUT/1b and OUT/3b (2.5 and 6.4 GB, bf16), or those named; needs nothing but Python
    true_shapes.sh PROGRAM OUT    makes them if they are not there and runs them
    speed.sh PROGRAM OUT          the same, and "small", which no published model has: 168 M weights, for devices that are CPUs

The text is noise; shapes, types, files and sizes are the real ones. Files are written once and never shipped.
"""
import itertools
import json
import pathlib
import random
import struct
import sys

SHAPES = {
    "1b": dict(hidden_size=2048, num_hidden_layers=16, num_attention_heads=32, head_dim=64),
    "3b": dict(hidden_size=3072, num_hidden_layers=28, num_attention_heads=24, head_dim=128),
    "small": dict(hidden_size=1024, num_hidden_layers=12, num_attention_heads=16, head_dim=64, num_key_value_heads=4,
                  intermediate_size=2816, vocab_size=32000, bos_token_id=31744, eos_token_id=[31753], rope_scaling=None,
                  max_position_embeddings=4096),
}
COMMON = dict(
    architectures=["LlamaForCausalLM"], model_type="llama", num_key_value_heads=8, intermediate_size=8192, vocab_size=128256,
    rms_norm_eps=1e-5, rope_theta=500000.0, max_position_embeddings=131072, tie_word_embeddings=True, attention_bias=False,
    mlp_bias=False, hidden_act="silu", torch_dtype="bfloat16", bos_token_id=128000, eos_token_id=[128001, 128008, 128009],
    rope_scaling=dict(rope_type="llama3", factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0,
                      original_max_position_embeddings=8192),
)
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
PIECE = 1 << 24  # elements written at a time


def bf16_noise(source, count):
    """`count` bf16 numbers of either sign, magnitudes spread over 2^-8 … 2^-5: about the scale of a trained model's."""
    upper = bytes([0x3B + (i >> 1 & 1) | (i & 1) << 7 for i in range(256)])
    out = bytearray(2 * count)
    out[0::2] = source.randbytes(count)
    out[1::2] = source.randbytes(count).translate(upper)
    return out


def tensors(shape):
    d, head, layers = shape["hidden_size"], shape["head_dim"], shape["num_hidden_layers"]
    q, kv, ffn = shape["num_attention_heads"] * head, shape["num_key_value_heads"] * head, shape["intermediate_size"]
    yield "model.embed_tokens.weight", (shape["vocab_size"], d)
    for i in range(layers):
        at = f"model.layers.{i}."
        yield at + "input_layernorm.weight", (d,)
        yield at + "self_attn.q_proj.weight", (q, d)
        yield at + "self_attn.k_proj.weight", (kv, d)
        yield at + "self_attn.v_proj.weight", (kv, d)
        yield at + "self_attn.o_proj.weight", (d, q)
        yield at + "post_attention_layernorm.weight", (d,)
        yield at + "mlp.gate_proj.weight", (ffn, d)
        yield at + "mlp.up_proj.weight", (ffn, d)
        yield at + "mlp.down_proj.weight", (d, ffn)
    yield "model.norm.weight", (d,)


def write_weights(path, shape):
    header, at = {}, 0
    for name, dims in tensors(shape):
        count = dims[0] * (dims[1] if len(dims) > 1 else 1)
        header[name] = dict(dtype="BF16", shape=list(dims), data_offsets=[at, at + 2 * count])
        at += 2 * count
    text = json.dumps(header).encode()
    source = random.Random(path.parent.name)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, dims in tensors(shape):
            count = dims[0] * (dims[1] if len(dims) > 1 else 1)
            if len(dims) == 1:
                file.write(b"\x80\x3f" * count)  # norms of 1
                continue
            for begin in range(0, count, PIECE):
                file.write(bf16_noise(source, min(PIECE, count - begin)))


def byte_letters():
    """GPT-2's alphabet: the character that stands for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = iter(range(256, 512))
    return {b: chr(b) if b in plain else chr(next(rest)) for b in range(256)}


def write_tokenizer(folder, vocab_size):
    """256 bytes, then every pair and triple of letters that fits, each made by a merge; 256 control tokens at the end."""
    first_special = vocab_size - 256
    letters = [byte_letters()[b] for b in range(256)]
    alphabet = [letters[b] for b in range(33, 127)] + [letters[32]]
    longer = ((left, right) for length in (1, 2) for left in itertools.product(alphabet, repeat=length) for right in alphabet)
    merges = ["".join(left) + " " + right for left, right in itertools.islice(longer, first_special - 256)]
    vocabulary = letters + [merge.replace(" ", "") for merge in merges]
    special = ["<|begin_of_text|>", "<|end_of_text|>", *(f"<|reserved_special_token_{i}|>" for i in range(2)),
               "<|finetune_right_pad_id|>", "<|reserved_special_token_2|>", "<|start_header_id|>", "<|end_header_id|>",
               "<|eom_id|>", "<|eot_id|>", "<|python_tag|>"]
    special += [f"<|reserved_special_token_{i}|>" for i in range(3, 259 - len(special))]
    added = [dict(id=first_special + i, content=text, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
             for i, text in enumerate(special[:256])]
    tokenizer = dict(
        version="1.0", truncation=None, padding=None, added_tokens=added, normalizer=None,
        pre_tokenizer=dict(type="Sequence", pretokenizers=[
            dict(type="Split", pattern=dict(Regex=PATTERN), behavior="Isolated", invert=False),
            dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=False)]),
        post_processor=None, decoder=dict(type="ByteLevel", add_prefix_space=True, trim_offsets=True, use_regex=True),
        model=dict(type="BPE", dropout=None, unk_token=None, continuing_subword_prefix=None, end_of_word_suffix=None,
                   fuse_unk=False, byte_fallback=False, ignore_merges=True,
                   vocab={token: i for i, token in enumerate(vocabulary)}, merges=merges))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False))
    (folder / "tokenizer_config.json").write_text(json.dumps(dict(bos_token="<|begin_of_text|>", eos_token="<|eot_id|>", add_bos_token=True)))


def write_model(out, name):
    shape, folder = {**COMMON, **SHAPES[name]}, pathlib.Path(out) / name
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(folder, shape["vocab_size"])
    write_weights(folder / "model.safetensors", shape)
    (folder / "config.json").write_text(json.dumps(shape, indent=1))  # last: marks a whole model
    return folder


def main(out, names):
    for name in names or ["1b", "3b"]:
        write_model(out, name)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(SHAPES):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
