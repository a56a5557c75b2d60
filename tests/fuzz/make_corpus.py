#!/usr/bin/env python3
"""Writes the seeds (corpus/<target>/), one file per known flaw class (regressions/<target>/) and libFuzzer's word lists
(dictionaries/<target>.dict): python3 make_corpus.py. Files that a campaign found are added by hand beside them and stay.
Needs nothing beyond Python."""
import json
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
RS = b"\x1e"  # between the files of one input


def write(kind, target, name, data):
    folder = os.path.join(HERE, kind, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as out:
        out.write(data)


def seed(target, name, data):
    write("corpus", target, name, data)


def flaw(target, name, data):
    write("regressions", target, name, data)


# ---- GGUF ------------------------------------------------------------------------------------------------------------

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORMATS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}


def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(raw)) + raw


def scalar(kind, value):
    return text(value) if kind == STRING else struct.pack("<" + FORMATS[kind], value)


def array(kind, values):
    return struct.pack("<IQ", kind, len(values)) + b"".join(scalar(kind, v) for v in values)


def gguf(entries, tensors=(), n_entries=None, n_tensors=None, version=3, alignment=32):
    """entries: (key, type, value or raw bytes of an array); tensors: (name, type, shape slowest first, data or offset)."""
    head, data = b"", b""
    for key, kind, value in entries:
        head += text(key) + struct.pack("<I", kind) + (value if kind == ARRAY else scalar(kind, value))
    for name, kind, shape, content in tensors:
        offset = content
        if isinstance(content, bytes):
            data += b"\0" * (-len(data) % alignment)
            offset = len(data)
            data += content
        head += text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", d) for d in reversed(shape))
        head += struct.pack("<IQ", kind, offset)
    start = b"GGUF" + struct.pack("<IQQ", version, len(tensors) if n_tensors is None else n_tensors,
                                  len(entries) if n_entries is None else n_entries)
    out = start + head
    return out + b"\0" * (-len(out) % alignment) + data


def llama_entries(**changes):
    values = {"block_count": 1, "context_length": 64, "embedding_length": 32, "feed_forward_length": 32,
              "attention.head_count": 1, "attention.head_count_kv": 1}
    values.update(changes)
    return [("general.architecture", STRING, "llama")] + [("llama." + k, U32, v) for k, v in values.items()] + [
        ("llama.attention.layer_norm_rms_epsilon", F32, 1e-5), ("llama.rope.freq_base", F32, 10000.0)]


def llama_tensors(kind=1, cell=2, block=1, vocab=8, head=True):
    def matrix(name, rows, cols):
        return (name, kind, (rows, cols), bytes((7 * i) & 63 for i in range(rows * cols // block * cell)))

    def vector(name, n=32):
        return (name, 0, (n,), struct.pack("<f", 1.0) * n)

    out = [matrix("token_embd.weight", vocab, 32), vector("output_norm.weight"), vector("blk.0.attn_norm.weight"),
           vector("blk.0.ffn_norm.weight")]
    for part in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        out.append(matrix("blk.0." + part + ".weight", 32, 32))
    if head:
        out.append(matrix("output.weight", vocab, 32))
    return out


SP_TOKENS = ["<unk>", "<s>", "</s>", "\u2581", "a", "b", "ab", "\u2581a", "[INST]"]
SP_TYPES = [2, 3, 3, 1, 1, 1, 1, 1, 4]


def sp_entries(tokens=SP_TOKENS, types=SP_TYPES, chat=None):
    out = [("tokenizer.ggml.model", STRING, "llama"), ("tokenizer.ggml.tokens", ARRAY, array(STRING, tokens)),
           ("tokenizer.ggml.scores", ARRAY, array(F32, [-float(i) for i in range(len(tokens))])),
           ("tokenizer.ggml.token_type", ARRAY, array(I32, types)), ("tokenizer.ggml.bos_token_id", U32, 1),
           ("tokenizer.ggml.eos_token_id", U32, 2), ("tokenizer.ggml.add_bos_token", BOOL, True)]
    return out + ([("tokenizer.chat_template", STRING, chat)] if chat else [])


def byte_tokens():
    return ["<0x%02X>" % i for i in range(256)]


def alphabet():
    """GPT-2's character for each byte."""
    printable = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE]
    others = [b for b in range(256) if b not in printable]
    return [chr(b) if b in printable else chr(256 + others.index(b)) for b in range(256)]


BPE_TOKENS = alphabet() + ["ab", "abc", "\u0120a", "<|begin_of_text|>", "<|eot_id|>", "word"]
BPE_MERGES = ["a b", "ab c", "\u0120 a"]


def bpe_entries(merges=BPE_MERGES, pre="llama-bpe"):
    n = len(BPE_TOKENS)
    return [("tokenizer.ggml.model", STRING, "gpt2"), ("tokenizer.ggml.pre", STRING, pre),
            ("tokenizer.ggml.tokens", ARRAY, array(STRING, BPE_TOKENS)),
            ("tokenizer.ggml.token_type", ARRAY, array(I32, [1] * (n - 3) + [3, 3, 4])),
            ("tokenizer.ggml.merges", ARRAY, array(STRING, merges)),
            ("tokenizer.ggml.bos_token_id", U32, n - 3), ("tokenizer.ggml.eos_token_id", U32, n - 2)]


LLAMA3_CHAT = "{{ bos_token }}<|start_header_id|>user<|end_header_id|>\n\n{{ m }}<|eot_id|>"
LLAMA2_CHAT = "{{ bos_token + '[INST] <<SYS>>' }} [/INST]"
CHATML_CHAT = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n{{ m }}<|im_end|>"


def make_gguf():
    seed("gguf", "empty", gguf([]))
    seed("gguf", "scalars", gguf([("k%d" % kind, kind, "text" if kind == STRING else 1) for kind in FORMATS]
                                 + [("s", STRING, "text")]))
    seed("gguf", "lists", gguf([("l%d" % kind, ARRAY, array(kind, [1, 0, 1])) for kind in FORMATS]
                               + [("ls", ARRAY, array(STRING, ["a", "", "bc"]))]))
    seed("gguf", "llama_mixed", gguf(llama_entries(), llama_tensors(1, 2, 1)[:1] + llama_tensors(2, 18, 32)[1:]))
    seed("gguf", "llama_q4_0", gguf(llama_entries(), llama_tensors(2, 18, 32)))
    seed("gguf", "llama_q8_0_tied", gguf(llama_entries(vocab_size=8), llama_tensors(8, 34, 32, head=False)))
    seed("gguf", "rope", gguf(llama_entries() + [("llama.rope.scaling.type", STRING, "linear"),
                                                ("llama.rope.scaling.factor", F32, 2.0)], llama_tensors(2, 18, 32)))
    seed("gguf", "divisors", gguf(llama_entries(), llama_tensors(2, 18, 32)
                                  + [("rope_freqs.weight", 0, (16,), struct.pack("<f", 2.0) * 16)]))
    seed("gguf", "layers_as_lists", gguf([e for e in llama_entries() if "head_count" not in e[0]]
                                         + [("llama.attention.head_count", ARRAY, array(I32, [1])),
                                            ("llama.attention.head_count_kv", ARRAY, array(U64, [1]))],
                                         llama_tensors(2, 18, 32)))
    seed("gguf", "alignment_64", gguf([("general.alignment", U32, 64)], [("t", 0, (2, 3), bytes(24)), ("u", 30, (1,), b"ab")],
                                      alignment=64))
    seed("gguf", "split_first", gguf(llama_entries() + [("split.no", U16, 0), ("split.count", U16, 2),
                                                       ("split.tensors.count", I32, 12)], llama_tensors(2, 18, 32)[:3]))
    seed("gguf", "sentencepiece", gguf(sp_entries(chat=LLAMA2_CHAT)))
    seed("gguf", "sentencepiece_bytes", gguf(sp_entries(SP_TOKENS[:3] + byte_tokens() + SP_TOKENS[3:],
                                                       SP_TYPES[:3] + [6] * 256 + SP_TYPES[3:], CHATML_CHAT)))
    seed("gguf", "bpe", gguf(bpe_entries() + [("tokenizer.chat_template", STRING, LLAMA3_CHAT)]))
    seed("gguf", "whole", gguf(llama_entries() + sp_entries(), llama_tensors(2, 18, 32)))

    flaw("gguf", "count_overflow_entries", gguf([("a", U8, 1)], n_entries=2**64 - 1))
    flaw("gguf", "count_overflow_tensors", gguf([("a", U8, 1)], n_tensors=2**61))
    flaw("gguf", "count_overflow_text", b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**64 - 8) + b"abcdefgh" * 4)
    flaw("gguf", "count_overflow_list", gguf([("a", ARRAY, struct.pack("<IQ", U64, 2**61) + bytes(16))]))
    flaw("gguf", "count_overflow_list_of_texts", gguf([("a", ARRAY, struct.pack("<IQ", STRING, 2**61 + 1) + text("x"))]))
    flaw("gguf", "offset_beyond_file", gguf([], [("t", 0, (4,), bytes(16)), ("u", 0, (4,), 1 << 20)]))
    flaw("gguf", "offset_wraps", gguf([], [("t", 0, (4,), bytes(16)), ("u", 0, (4,), 2**64 - 32)]))
    flaw("gguf", "tensor_larger_than_file", gguf(llama_entries(vocab_size=1 << 20), llama_tensors(2, 18, 32)))
    flaw("gguf", "dims_product_overflow", gguf([], [("t", 0, (1 << 32, 1 << 32), bytes(16))]))
    flaw("gguf", "dims_product_wraps_small", gguf([], [("t", 0, (1 << 62, 4, 1 << 2), bytes(16))]))
    flaw("gguf", "zero_dims", gguf([], [("t", 0, (0, 4), bytes(16))]))
    flaw("gguf", "no_dims", gguf([], [("t", 0, (), bytes(16))]))
    flaw("gguf", "five_dims", gguf([], [("t", 0, (1, 1, 1, 1, 1), bytes(16))]))
    for value in (0, 1, 3, 24, 1 << 31):
        flaw("gguf", "odd_alignment_%d" % value,
             gguf([("general.alignment", U32, value)], [("t", 0, (4,), bytes(16))]))
    flaw("gguf", "odd_alignment_type", gguf([("general.alignment", U64, 32)], [("t", 0, (4,), bytes(16))]))
    flaw("gguf", "wrong_list_type_tokens", gguf([("tokenizer.ggml.model", STRING, "llama"),
                                                ("tokenizer.ggml.tokens", ARRAY, array(U8, [1, 2, 3]))]))
    flaw("gguf", "wrong_list_type_scores", gguf([e for e in sp_entries() if "scores" not in e[0]]
                                                + [("tokenizer.ggml.scores", ARRAY, array(STRING, SP_TOKENS))]))
    flaw("gguf", "wrong_list_type_types", gguf([e for e in sp_entries() if "token_type" not in e[0]]
                                               + [("tokenizer.ggml.token_type", ARRAY, array(F32, [1.0] * 9))]))
    flaw("gguf", "wrong_list_type_merges", gguf([e for e in bpe_entries() if "merges" not in e[0]]
                                                + [("tokenizer.ggml.merges", ARRAY, array(U32, [1, 2]))]))
    flaw("gguf", "list_of_lists", gguf([("a", ARRAY, struct.pack("<IQ", ARRAY, 1) + array(U8, [1]))]))
    flaw("gguf", "list_shorter_than_tokens", gguf([e for e in sp_entries() if "scores" not in e[0]]
                                                  + [("tokenizer.ggml.scores", ARRAY, array(F32, [0.0]))]))
    flaw("gguf", "duplicate_key", gguf([("a", U8, 1), ("b", U8, 1), ("a", U8, 2)]))
    flaw("gguf", "duplicate_tensor", gguf([], [("t", 0, (4,), bytes(16)), ("t", 0, (4,), bytes(16))]))
    flaw("gguf", "duplicate_token", gguf(sp_entries(SP_TOKENS[:-1] + ["a"], SP_TYPES)))
    flaw("gguf", "byte_token_negative", gguf(sp_entries(SP_TOKENS + ["<0x-1>"], SP_TYPES + [6])))
    flaw("gguf", "byte_token_untyped", gguf([e for e in sp_entries(SP_TOKENS + ["<0x-1>"], SP_TYPES + [6])
                                             if "token_type" not in e[0]]))
    flaw("gguf", "ids_beyond_vocabulary", gguf(sp_entries() + [("tokenizer.ggml.eot_token_id", U32, 1 << 20)]))
    flaw("gguf", "score_not_finite", gguf([e for e in sp_entries() if "scores" not in e[0]]
                                          + [("tokenizer.ggml.scores", ARRAY, array(F32, [float("nan")] * 9))]))
    flaw("gguf", "truncated", gguf(llama_entries(), llama_tensors(2, 18, 32))[:-100])


# ---- safetensors and its index ---------------------------------------------------------------------------------------

def safetensors(header, data=b"", length=None):
    raw = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


def entry(kind, shape, begin, end):
    return {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}


def make_safetensors():
    tiny = {"__metadata__": {"format": "pt"}, "model.norm.weight": entry("BF16", [8], 0, 16),
            "lm_head.weight": entry("F32", [2, 3], 16, 40), "a": entry("F16", [], 40, 42), "ids": entry("U8", [2, 1], 42, 44)}
    seed("safetensors", "tiny", safetensors(tiny, bytes(44)))
    seed("safetensors", "empty", safetensors(b"{}"))
    seed("safetensors", "padded", safetensors(b'{"a":{"shape":[0,5],"data_offsets":[0,0],"dtype":"F64"}}   '))
    seed("safetensors", "escapes", safetensors(b'{"\\u00e9\\n\\ud83d\\ude42":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}}', b"x"))
    seed("safetensors", "types", safetensors({"t%d" % i: entry(k, [8], 0, 0) for i, k in enumerate(
        ["F64", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL", "F8_E4M3", "F6_E2M3", "C64"])}))
    flaw("safetensors", "count_overflow_length", safetensors(b"{}", length=2**64 - 1))
    flaw("safetensors", "length_beyond_file", safetensors(b"{}", length=1000))
    flaw("safetensors", "offset_beyond_file", safetensors({"a": entry("F32", [4], 0, 16), "b": entry("F32", [4], 16, 2**40)}, bytes(16)))
    flaw("safetensors", "offset_reversed", safetensors({"a": entry("U8", [4], 8, 4)}, bytes(8)))
    flaw("safetensors", "offset_above_64_bits",
         safetensors(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551617]}}', b"x"))
    flaw("safetensors", "dims_product_overflow", safetensors({"a": entry("F32", [2**32, 2**32], 0, 16)}, bytes(16)))
    flaw("safetensors", "dims_product_wraps_to_zero", safetensors({"a": entry("F32", [2**62, 4], 0, 0)}))
    flaw("safetensors", "zero_dims", safetensors({"a": entry("F32", [0, 2**63], 0, 4)}, bytes(4)))
    flaw("safetensors", "nine_dims", safetensors({"a": entry("U8", [1] * 9, 0, 1)}, b"x"))
    flaw("safetensors", "odd_alignment", safetensors({"a": entry("U8", [1], 0, 1), "b": entry("F32", [1], 1, 5)}, bytes(5)))
    flaw("safetensors", "odd_bits", safetensors({"a": entry("F4", [3], 0, 2)}, bytes(2)))
    flaw("safetensors", "overlap", safetensors({"a": entry("U8", [8], 0, 8), "b": entry("U8", [8], 4, 12)}, bytes(12)))
    flaw("safetensors", "hole", safetensors({"a": entry("U8", [4], 0, 4), "b": entry("U8", [4], 8, 12)}, bytes(12)))
    flaw("safetensors", "wrong_list_type", safetensors(b'{"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}}', b"x"))
    flaw("safetensors", "duplicate_name", safetensors(
        b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}', b"xy"))
    flaw("safetensors", "duplicate_field", safetensors(
        b'{"a":{"dtype":"U8","dtype":"F32","shape":[1],"data_offsets":[0,1]}}', b"x"))
    flaw("safetensors", "nested_deep", safetensors(b'{"a":' * 400))
    flaw("safetensors", "zero_byte", safetensors(b'{"a\0b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x"))


def make_index():
    def index(files, **more):
        return json.dumps({"metadata": {"total_size": 8}, "weight_map": files, **more}).encode()

    seed("index_json", "two", index({"a": "1.safetensors", "b": "2.safetensors"}))
    seed("index_json", "one", index({"b": "2.safetensors"}))
    flaw("index_json", "missing_tensor", index({"a": "2.safetensors"}))
    flaw("index_json", "missing_file", index({"a": "3.safetensors"}))
    flaw("index_json", "path_leads_elsewhere", index({"a": "../../etc/passwd.safetensors", "b": "/1.safetensors"}))
    flaw("index_json", "duplicate_name", b'{"weight_map":{"a":"1.safetensors","a":"2.safetensors"}}')
    flaw("index_json", "duplicate_map", b'{"weight_map":{"a":"1.safetensors"},"weight_map":{"b":"2.safetensors"}}')
    flaw("index_json", "wrong_list_type", index(["1.safetensors"]))
    flaw("index_json", "wrong_value_type", index({"a": 1}))
    flaw("index_json", "no_shards", index({}))
    flaw("index_json", "count_too_many_shards", index({"t%d" % i: "%d.safetensors" % i for i in range(1025)}))
    flaw("index_json", "nested_deep", b'{"weight_map":' + b"[" * 400)
    flaw("index_json", "zero_byte", b'{"weight_map":{"a\0":"1.safetensors"}}')


# ---- config.json -----------------------------------------------------------------------------------------------------

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8, "intermediate_size": 12,
          "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32, "vocab_size": 16,
          "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "rope_scaling": None, "max_position_embeddings": 64,
          "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "attention_bias": False}


def config(**changes):
    return json.dumps({k: v for k, v in {**CONFIG, **changes}.items() if v != "absent"}).encode()


def make_config():
    llama3 = {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 32,
              "rope_type": "llama3"}
    seed("config_json", "plain", config())
    seed("config_json", "small", b'{"model_type":"llama","hidden_size":64,"num_attention_heads":1,"intermediate_size":1,'
                                 b'"num_hidden_layers":1,"vocab_size":3,"max_position_embeddings":1}')
    seed("config_json", "llama3", config(rope_scaling=llama3, eos_token_id=[2, 3], rope_theta=5e5))
    seed("config_json", "parameters", config(rope_scaling="absent", rope_theta="absent",
                                             rope_parameters={"rope_type": "linear", "factor": 2, "rope_theta": 1e4}))
    seed("config_json", "generation", config() + RS + b'{"eos_token_id":[3,4],"bos_token_id":1}')
    flaw("config_json", "zero_dims", config(num_attention_heads=0, head_dim="absent"))
    flaw("config_json", "zero_vocabulary", config(vocab_size=0))
    flaw("config_json", "count_overflow", config(num_hidden_layers=2**64, vocab_size=2**32))
    flaw("config_json", "dims_product_overflow", config(hidden_size=65536, num_hidden_layers=1024, vocab_size=1 << 20,
                                                       num_attention_heads=1024, intermediate_size=1 << 18, head_dim=128))
    flaw("config_json", "wrong_list_type", config(eos_token_id=["2"], architectures="LlamaForCausalLM"))
    flaw("config_json", "negative", config(vocab_size=-1, bos_token_id=-1))
    flaw("config_json", "fraction", config(hidden_size=8.5, rms_norm_eps=1e400))
    flaw("config_json", "not_a_number", config(rms_norm_eps=float("nan")))
    flaw("config_json", "number_beyond_double", config().replace(b"1e-05", b"1e999"))
    flaw("config_json", "duplicate_name", config().replace(b'"head_dim"', b'"hidden_size"'))
    flaw("config_json", "id_beyond_vocabulary", config(eos_token_id=16))
    flaw("config_json", "many_eos", config(eos_token_id=[2] * 300))
    flaw("config_json", "nested_deep", b'{"a":' * 400)
    flaw("config_json", "nested_deep_list", b"[" * 2000)
    flaw("config_json", "rope_nested", config(rope_parameters={"full_attention": {"rope_type": "default"}}))
    flaw("config_json", "rope_reversed", config(rope_scaling={**llama3, "high_freq_factor": 1.0, "low_freq_factor": 4.0}))
    flaw("config_json", "not_utf8", config().replace(b'"llama"', b'"ll\xffma"'))


# ---- tokenizer.json --------------------------------------------------------------------------------------------------

SPLIT = ("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
         "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")


def added(number, content, special=True, **more):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": special, **more}


def tokenizer(vocab=None, merges=BPE_MERGES, words=None, model=None, **changes):
    first = len(BPE_TOKENS) - 3
    root = {"version": "1.0", "added_tokens": words if words is not None else
            [added(first, "<|begin_of_text|>"), added(first + 1, "<|eot_id|>"), added(first + 2, "word", False)],
            "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]},
            "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|begin_of_text|>"}},
                                                                        {"Sequence": {"id": "A"}}]},
            "model": {"type": "BPE", "dropout": None, "byte_fallback": False, "ignore_merges": True,
                      "vocab": vocab if vocab is not None else {t: i for i, t in enumerate(BPE_TOKENS[:first])},
                      "merges": merges, **(model or {})}}
    root.update(changes)
    return json.dumps(root, ensure_ascii=False, separators=(",", ":")).encode()


def make_tokenizer_json():
    seed("tokenizer_json", "bpe", tokenizer())
    seed("tokenizer_json", "pairs", tokenizer(merges=[m.split() for m in BPE_MERGES], model={"ignore_merges": False}))
    seed("tokenizer_json", "config", tokenizer() + RS + json.dumps(
        {"add_bos_token": True, "bos_token": "<|begin_of_text|>", "eos_token": {"content": "<|eot_id|>"},
         "chat_template": LLAMA3_CHAT}).encode() + RS + LLAMA3_CHAT.encode())
    seed("tokenizer_json", "settings", RS + b'{"add_bos_token":false,"bos_token":null,"eos_token":{"content":"</s>"},'
         b'"added_tokens_decoder":{"0":{"content":"x"}},"chat_template":[{"name":"default","template":"x"}]}')
    seed("tokenizer_json", "no_vocabulary", b'{"added_tokens":[{"id":0,"content":"a","special":true}],"model":'
         b'{"type":"BPE","vocab":{"a":0},"merges":[]},"pre_tokenizer":null}')
    vocab = {t: i for i, t in enumerate(alphabet())}
    flaw("tokenizer_json", "count_overflow_id", tokenizer(vocab={**vocab, "x": 2**64 - 1}))
    flaw("tokenizer_json", "count_large_id", tokenizer(vocab={"a": (1 << 20) - 1}))
    flaw("tokenizer_json", "count_larger_id", tokenizer(vocab={"a": 1 << 22}))
    flaw("tokenizer_json", "count_added_id", tokenizer(words=[added(2**32, "x")]))
    flaw("tokenizer_json", "hole_in_ids", tokenizer(vocab={**vocab, "ab": 300}, words=[]))
    flaw("tokenizer_json", "duplicate_id", tokenizer(vocab={**vocab, "ab": 5}))
    flaw("tokenizer_json", "duplicate_name", tokenizer().replace(b'"!":33,', b'"!":33,"!":256,'))
    flaw("tokenizer_json", "duplicate_key", tokenizer().replace(b'"version":"1.0"', b'"model":{}'))
    flaw("tokenizer_json", "duplicate_merge", tokenizer(merges=["a b", "a b"]))
    flaw("tokenizer_json", "merge_of_nothing", tokenizer(merges=["a b", "x y", " ", "", "a  b"]))
    flaw("tokenizer_json", "merge_of_one", tokenizer(merges=[["a"]]))
    flaw("tokenizer_json", "merge_nested", tokenizer(merges=[["a", ["b"]]]))
    flaw("tokenizer_json", "wrong_list_type", tokenizer(merges=[1, 2]))
    flaw("tokenizer_json", "wrong_vocabulary_type", tokenizer(vocab=[["a", 0.5]]))
    flaw("tokenizer_json", "missing_byte", tokenizer(vocab={"a": 0}, words=[]))
    flaw("tokenizer_json", "outside_alphabet", tokenizer(vocab={**vocab, "\u0144": 256}, words=[]))
    flaw("tokenizer_json", "empty_added_token", tokenizer(words=[added(256, "")]))
    flaw("tokenizer_json", "byte_token_negative", tokenizer(vocab={**vocab, "<0x-1>": 256}, model={"byte_fallback": True}))
    flaw("tokenizer_json", "nested_deep", b'{"model":' * 300)
    flaw("tokenizer_json", "nested_deep_setting", b'{"post_processor":' + b"[" * 500)
    flaw("tokenizer_json", "nested_deep_config", RS + b'{"chat_template":' + b"[" * 500)
    flaw("tokenizer_json", "wrong_config_types", RS + b'{"add_bos_token":1,"bos_token":[],"chat_template":[{}]}')
    flaw("tokenizer_json", "zero_byte", tokenizer().replace(b"version", b"ver\0ion"))


# ---- tokenizer.model -------------------------------------------------------------------------------------------------

def varint(n):
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def message(field, raw):
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def number(field, value):
    return varint(field << 3) + varint(value)


def piece(spelling, score=0.0, kind=1):
    raw = spelling if isinstance(spelling, bytes) else spelling.encode()
    return message(1, message(1, raw) + b"\x15" + struct.pack("<f", score) + number(3, kind))


def sp_model(pieces, trainer=b"", normalizer=b"", fallback=False):
    return (b"".join(pieces) + message(2, number(3, 2) + number(35, int(fallback)) + trainer)
            + message(3, message(1, b"identity") + number(3, 1) + number(4, 0) + number(5, 1) + normalizer))


def make_sentencepiece():
    small = [piece(t, -float(i), k) for i, (t, k) in enumerate(zip(SP_TOKENS, SP_TYPES))]
    all_bytes = [piece(t, 0.0, 6) for t in byte_tokens()]
    seed("sentencepiece", "small", sp_model(small))
    seed("sentencepiece", "bytes", sp_model(small[:3] + all_bytes + small[3:], fallback=True))
    seed("sentencepiece", "settings", sp_model(small + [piece("unused", 0.0, 5)], message(44, b" ?? ") + message(46, b"<s>"),
                                               number(3, 0)) + message(4, b"self test") + message(5, number(5, 1)))
    flaw("sentencepiece", "count_overflow_length", b"\x0a" + varint(2**64 - 1) + b"abc")
    flaw("sentencepiece", "count_overflow_varint", b"\x0a" + b"\xff" * 11)
    flaw("sentencepiece", "length_beyond_file", b"\x0a\x7f\x0a\x01a")
    flaw("sentencepiece", "wrong_field_type", number(1, 5) + sp_model(small))
    flaw("sentencepiece", "wrong_score_type", message(1, message(1, b"x") + number(2, 7)) + sp_model(small))
    flaw("sentencepiece", "field_zero", b"\x02\x00" + sp_model(small))
    flaw("sentencepiece", "groups", b"\x0b\x0c" + sp_model(small))
    flaw("sentencepiece", "duplicate_name", sp_model(small + [piece("a")]))
    flaw("sentencepiece", "duplicate_settings", sp_model(small) + message(2, number(3, 2)))
    flaw("sentencepiece", "byte_token_negative", sp_model(small + [piece("<0x-1>", 0.0, 6)], fallback=True))
    flaw("sentencepiece", "byte_token_missing", sp_model(small + all_bytes[1:], fallback=True))
    flaw("sentencepiece", "score_not_finite", sp_model(small + [piece("x", float("inf"))]))
    flaw("sentencepiece", "spelling_not_utf8", sp_model(small + [piece(b"\xff\xfe")]))
    flaw("sentencepiece", "spelling_long", sp_model(small + [piece("x" * 1025)]))
    flaw("sentencepiece", "spelling_zero_byte", sp_model(small + [piece("a\0b")]))
    flaw("sentencepiece", "rules_table", sp_model(small, normalizer=message(2, b"\xff" * 64)))
    flaw("sentencepiece", "no_space_symbol", sp_model([p for p, t in zip(small, SP_TOKENS) if t != "\u2581"] + all_bytes,
                                                     fallback=True))
    flaw("sentencepiece", "two_unknown", sp_model(small + [piece("x", 0.0, 2)]))
    flaw("sentencepiece", "control_of_one_character", sp_model(small + [piece("x", 0.0, 3)]))


# ---- texts and blocks ------------------------------------------------------------------------------------------------

def make_texts():
    texts = {"english": "Once upon a time, there was a 12345-year-old fox.\n\n  It's called Ruby!",
             "controls": "<s>a</s><|begin_of_text|>user<|eot_id|> <0x0A> <unk>[INST]",
             "scripts": "\u4f60\u597d \u00e9\u00e8 \U0001F642 \u0639\u0631\u0628\u064a \u2581\u2581x \u180e\u00a0\u2003",
             "spaces": "  a   \n \r\n\t\n    b\u3000\n", "code": "def f(x):\n    return {'a': [1, 22, 333, 4444]}\n",
             "llama2": LLAMA2_CHAT, "llama3": LLAMA3_CHAT, "chatml": CHATML_CHAT, "tiktoken": "IQ== 0\nIg== 1\n"}
    for name, value in texts.items():
        seed("tokenizer_text", name, value.encode())
    flaw("tokenizer_text", "not_utf8", b"\xff\xc3a\xe2\x96\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf")
    flaw("tokenizer_text", "zero_bytes", b"a\0b\0\0")
    flaw("tokenizer_text", "half_a_character", b"abc\xf0\x9f\x99")
    flaw("tokenizer_text", "half_a_control", b"<|begin_of_te")
    flaw("tokenizer_text", "long_word", b"a" * 3000)
    flaw("tokenizer_text", "long_spaces", b" " * 3000 + b"x")
    flaw("tokenizer_text", "long_breaks", b" \n" * 1500)


def make_blocks():
    sizes = [4, 2, 2, 4, 34, 18, 20, 22, 24, 84, 110, 144, 176, 210]  # as kDtypeInfos has them
    for kind, size in enumerate(sizes):
        seed("blocks", "type_%d" % kind, bytes([kind, 1]) + bytes((i * 37) & 255 for i in range(2 * size)))
    flaw("blocks", "not_a_number", bytes([4, 0]) + struct.pack("<H", 0x7E00) + bytes(32))
    flaw("blocks", "infinite_scales", bytes([11, 0]) + struct.pack("<HH", 0x7C00, 0xFC00) + b"\xff" * 140)
    flaw("blocks", "less_than_a_row", bytes([13, 8]) + bytes(300))


# ---- words that mutation should know ---------------------------------------------------------------------------------

def dictionary(target, words):
    raws = [w if isinstance(w, bytes) else w.encode() for w in words]
    lines = ['"' + "".join("\\x%02x" % b for b in raw) + '"\n' for raw in raws]
    os.makedirs(os.path.join(HERE, "dictionaries"), exist_ok=True)
    with open(os.path.join(HERE, "dictionaries", target + ".dict"), "w") as out:
        out.writelines(lines)


def make_dictionaries():
    json_words = ["null", "true", "false", "1e999", "-1", "0.5", "18446744073709551615", "18446744073709551616", "[[", "{}",
                  "\\u0000", "\\ud800", '":', '",']
    numbers = [struct.pack("<I", n) for n in (0, 1, 13, 1 << 20, 2**31, 2**32 - 1)] + [
        struct.pack("<Q", n) for n in (0, 1, 32, 1 << 20, 1 << 32, 1 << 61, 2**63, 2**64 - 32, 2**64 - 1)]
    gguf_words = [e[0] for e in llama_entries() + sp_entries(chat="x") + bpe_entries()] + [t[0] for t in llama_tensors()] + [
        "general.alignment", "llama.vocab_size", "llama.rope.scaling.type", "llama.rope.scaling.factor", "rope_freqs.weight",
        "llama.attention.key_length", "llama.attention.value_length", "llama.rope.dimension_count", "llama.expert_count",
        "split.no", "split.count", "split.tensors.count", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.unknown_token_id",
        "tokenizer.ggml.add_space_prefix", "tokenizer.ggml.precompiled_charsmap", "<0x00>", "<0x-1>", "llama", "gpt2"]
    dictionary("gguf", dict.fromkeys(gguf_words + numbers))
    dictionary("safetensors", json_words + ["dtype", "shape", "data_offsets", "__metadata__", "F32", "BF16", "F4", "F6_E2M3",
                                            ".weight", ".qweight"])
    dictionary("index_json", json_words + ["weight_map", "metadata", "1.safetensors", "2.safetensors", ".safetensors", "../"])
    dictionary("config_json", json_words + list(CONFIG) + [
        "LlamaForCausalLM", "llama", "silu", "rope_parameters", "rope_type", "type", "linear", "llama3", "default", "factor",
        "low_freq_factor", "high_freq_factor", "original_max_position_embeddings", "quantization_config", "mlp_bias", RS])
    dictionary("tokenizer_json", json_words + [
        "added_tokens", "id", "content", "special", "single_word", "lstrip", "rstrip", "normalizer", "pre_tokenizer", "type",
        "Sequence", "pretokenizers", "Split", "pattern", "Regex", "ByteLevel", "behavior", "Isolated", "invert",
        "add_prefix_space", "use_regex", "post_processor", "TemplateProcessing", "single", "SpecialToken", "processors",
        "model", "BPE", "dropout", "byte_fallback", "ignore_merges", "vocab", "merges", "chat_template", "template", "name",
        "add_bos_token", "bos_token", "eos_token", "\u0120", "\u0100", "\u0143", RS])
    dictionary("sentencepiece", ["<0x00>", "<0xFF>", "<0x-1>", "<unk>", "<s>", "\u2581", "identity", number(3, 2), number(3, 3),
                                 number(3, 6), number(35, 1), number(24, 1), number(4, 1), b"\x15\x00\x00\xc0\x7f",
                                 b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"])
    dictionary("tokenizer_text", ["<s>", "</s>", "<|begin_of_text|>", "<|eot_id|>", "<0x0A>", "\u2581", "'ll", "'RE", "\r\n",
                                  "\u3000", "\u0085", "\u180e", "\U0001F642", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf",
                                  "[INST]", "<<SYS>>", "<|im_start|>system\n", "<|start_header_id|>", "\u0661", "\u00bd"])
    dictionary("blocks", [struct.pack("<H", h) for h in (0x7C00, 0xFC00, 0x7E00, 0x0001, 0x8000, 0x7BFF)])


for make in (make_gguf, make_safetensors, make_index, make_config, make_tokenizer_json, make_sentencepiece, make_texts,
             make_blocks, make_dictionaries):
    make()
