#!/usr/bin/env python3
"""What transformers computes for the models of make_models.py: writes MODEL.reference.json beside each of them.

    python3 tests/peers/reference_logits.py OUT [--llama.cpp] [--only TEXT]     (OUT: the folder of make_models.py)

A Hugging Face folder is loaded by transformers itself (float32, CPU). Of a GGUF file, gguf-py turns every tensor into
float32, Q and K rows are put back into halves, and the same transformers model takes them: the exact weights of the
quantised file, and no quantised arithmetic. rope_freqs.weight divides the rotary frequencies.

In the JSON: the prompt's tokens; the log-probability of every token but the first after those before it (nats); nll,
their negated mean; full rows of logits after a few positions; cache_f16, the largest change of those logits when keys and
values pass through f16, and cache_f16_logprobs, that of all log-probabilities, say what an f16 cache may cost; greedy, a plain continuation with its margins.

--llama.cpp also asks llama-server (CPU) for the likeliest tokens after several prefixes of the prompt, and stops where
their log-probabilities are not ours: it reads the files on its own, so it judges make_models.py and gguf-py as well.
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

import gguf
import torch
from transformers import AutoModelForCausalLM, DynamicCache, LlamaConfig, LlamaForCausalLM

import tiny_models
from make_models import NAMES, SPECS

N_PROMPT, N_LONG, N_GREEDY = 48, 9000, 16
PREFIXES, N_TOP = [1, 8, 16, 24, 32, 40, 48], 20
# llama.cpp multiplies quantised weights with 8-bit activations, and F16 ones with f16 activations. What its
# log-probabilities may be off, root mean square; unrelated ones would be off by 2 and more.
LLAMA_CPP_RMS = {"F32": 1e-3, "F16": 1e-2, "BF16": 5e-2, "other": 0.15}


# ---- GGUF to transformers ----------------------------------------------------------------------------------------------


def shards_of(path):
    found = re.fullmatch(r"(.*)-00001-of-(\d{5})\.gguf", path)
    return [f"{found[1]}-{i:05}-of-{found[2]}.gguf" for i in range(1, int(found[2]) + 1)] if found else [path]


def halves_again(w, n_heads):
    return w.reshape(n_heads, -1, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def load_gguf(path):
    readers = [gguf.GGUFReader(file) for file in shards_of(path)]

    def value(key, default=None):
        field = readers[0].get_field("llama." + key)
        return default if field is None else field.contents()

    tensors = {t.name: gguf.quants.dequantize(t.data, t.tensor_type).copy() for r in readers for t in r.tensors}
    heads, kv_heads = value("attention.head_count"), value("attention.head_count_kv")
    scaling = None
    if value("rope.scaling.type", "none") == "linear":
        scaling = {"rope_type": "linear", "factor": value("rope.scaling.factor")}
    config = LlamaConfig(
        hidden_size=value("embedding_length"), intermediate_size=value("feed_forward_length"),
        num_hidden_layers=value("block_count"), num_attention_heads=heads, num_key_value_heads=kv_heads,
        head_dim=value("attention.key_length"), vocab_size=tensors["token_embd.weight"].shape[0],
        rms_norm_eps=value("attention.layer_norm_rms_epsilon"), rope_theta=value("rope.freq_base"), rope_scaling=scaling,
        max_position_embeddings=value("context_length"), tie_word_embeddings="output.weight" not in tensors)
    model = LlamaForCausalLM(config).eval()
    names, divisors, state = {ours: theirs for theirs, ours in NAMES.items()}, tensors.pop("rope_freqs.weight", None), {}
    for name, w in tensors.items():
        stem, layer = name.removesuffix(".weight"), ""
        if stem.startswith("blk."):
            _, number, stem = stem.split(".")
            layer = f"model.layers.{number}."
        if stem in ("attn_q", "attn_k"):
            w = halves_again(w, heads if stem == "attn_q" else kv_heads)
        state[f"{layer}{names[stem]}.weight"] = torch.from_numpy(w)
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    if divisors is not None:
        rotary = model.model.rotary_emb
        rotary.inv_freq = rotary.inv_freq / torch.from_numpy(divisors)
    return model


def load(path):
    if path.endswith(".gguf"):
        return load_gguf(path)
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()


# ---- logits ------------------------------------------------------------------------------------------------------------


class HalfCache(DynamicCache):
    """Keys and values as an f16 cache gives them back."""

    def update(self, keys, values, *more, **named):
        return super().update(keys.half().float(), values.half().float(), *more, **named)


def logits_of(model, tokens, cache):
    with torch.no_grad():
        return model(torch.tensor([tokens]), past_key_values=cache, use_cache=True).logits[0]


def log_probs_of(logits, tokens):
    return logits[:-1].double().log_softmax(-1).gather(1, torch.tensor(tokens[1:])[:, None])[:, 0]


def greedy(model, tokens):
    out, margins, cache, fed = [], [], DynamicCache(), tokens
    for _ in range(N_GREEDY):
        top = logits_of(model, fed, cache)[-1].topk(2)
        out.append(int(top.indices[0]))
        margins.append(float(top.values[0] - top.values[1]))
        fed = [out[-1]]
    return out, margins


def rounded(values):
    return [float(f"{v:.8g}") for v in values]


def reference(path, spec):
    model = load(path)
    is_long = spec.layers == 1
    tokens = [1] + tiny_models.tokens(spec, (N_LONG if is_long else N_PROMPT) - 1)
    rows = [0, 5, len(tokens) - 1] + ([8191, 8192, 8700] if is_long else [])
    logits = logits_of(model, tokens, DynamicCache())
    half = logits_of(model, tokens, HalfCache())
    assert torch.isfinite(logits).all() and not torch.equal(logits, half)
    log_probs, half_log_probs = log_probs_of(logits, tokens), log_probs_of(half, tokens)
    out = {
        "tokens": tokens,
        "logprobs": rounded(log_probs.tolist()),
        "nll": float(-log_probs.mean()),
        "cache_f16": float((logits - half)[rows].abs().max()),
        "cache_f16_logprobs": float((log_probs - half_log_probs).abs().max()),
        "spread": float(logits[rows].std()),
        "logits": {str(r): rounded(logits[r].tolist()) for r in rows},
    }
    if not is_long:
        out["greedy"], out["margins"] = greedy(model, tokens)
    return out, logits


# ---- llama.cpp ---------------------------------------------------------------------------------------------------------


def start_llama_server(path, url, log):
    command = ["llama-server", "-m", path, "--port", url.rsplit(":")[-1], "-c", "512", "-ngl", "0", "-t", "2", "-fa", "off",
               "-ctk", "f32", "-ctv", "f32", "--parallel", "1", "--no-warmup"]
    server = subprocess.Popen(command, stdout=log, stderr=log)
    for _ in range(600):
        try:
            with urllib.request.urlopen(url + "/health", timeout=2) as answer:
                if answer.status == 200:
                    return server
        except OSError:
            if server.poll() is not None:
                break
            time.sleep(0.1)
    server.kill()
    log.seek(0)
    sys.exit(f"{path}: llama-server does not answer: {log.read()[-2000:]}")


def compare_with_llama_cpp(name, path, tokens, logits):
    url, squares = "http://127.0.0.1:18765", []
    with tempfile.TemporaryFile("w+") as log:
        server = start_llama_server(path, url, log)
        try:
            for n in PREFIXES:
                body = {"prompt": tokens[:n], "n_predict": 1, "temperature": 0, "n_probs": N_TOP, "cache_prompt": False,
                        "ignore_eos": True}
                headers = {"Content-Type": "application/json"}
                request = urllib.request.Request(url + "/completion", json.dumps(body).encode(), headers)
                with urllib.request.urlopen(request, timeout=60) as answer:
                    found = json.load(answer).get("completion_probabilities")
                if not found:  # the likeliest token is one byte of a character, which the server holds back
                    continue
                top = found[0]["top_logprobs"]
                ours = logits[n - 1].double().log_softmax(-1)
                squares += [(float(ours[one["id"]]) - one["logprob"]) ** 2 for one in top]
        finally:
            server.terminate()
            server.wait()
    if len(squares) < 4 * N_TOP:
        sys.exit(f"{name}: llama-server gave {len(squares)} log-probabilities, expected {len(PREFIXES) * N_TOP}")
    rms = (sum(squares) / len(squares)) ** 0.5
    allowed = LLAMA_CPP_RMS.get(name.removesuffix(".gguf").split("-")[-1], LLAMA_CPP_RMS["other"])
    if not rms <= allowed:
        sys.exit(f"{name}: llama.cpp's log-probabilities are off by {rms:.3g} (root mean square), allowed {allowed}")
    return rms


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, only = sys.argv[1], sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    torch.set_num_threads(2)
    paths = sorted(glob.glob(f"{folder}/hf-*") + glob.glob(f"{folder}/*.gguf"))
    paths = [p for p in paths if not re.search(r"-0000[2-9]-of-|\.json$", p) and only in p]
    for path in paths:
        name = os.path.basename(path)
        spec = SPECS[re.match(r"(?:hf-)?([a-z0-9]+)-", name)[1]]
        found, logits = reference(path, spec)
        with open(path + ".reference.json", "w", encoding="utf-8") as file:
            json.dump(found, file)
        line = f"{name:36} nll {found['nll']:.4f}  logits ±{found['spread']:.2f}  f16 cache {found['cache_f16']:.1e}"
        if "--llama.cpp" in sys.argv and path.endswith(".gguf") and spec.layers > 1:
            line += f"  llama.cpp {compare_with_llama_cpp(name, path, found['tokens'], logits):.1e}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
