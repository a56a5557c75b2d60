#!/usr/bin/env python3
"""Speed on one device: prompts, decoding, passes of a few rows and speculation, ours and llama.cpp's in turn on the same file,
and the true shapes of Llama-3.2 with weights that are made on the device. speed.sh runs it."""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import true_shapes

FEW_ROWS = 6
BUNDLED = pathlib.Path(__file__).resolve().parents[2] / "apps/pair/target"
PEER_MODELS = {  # name: (shape of true_shapes.py or the bundled target, type)
    "bundled f16": ("bundled", "f16"), "small f16": ("small", "f16"), "small q4_0": ("small", "q4_0"),
    "1b bf16": ("1b", "bf16"), "1b q4_0": ("1b", "q4_0"), "3b bf16": ("3b", "bf16"),
}


def run(command, env=None):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=env)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def gguf_of(program, folder, name):
    shape, kind = PEER_MODELS[name]
    path = folder / f"{shape}-{kind}.gguf"
    if not path.exists():
        source = BUNDLED if shape == "bundled" else folder / shape
        if not (source / "config.json").exists():
            print(f"writing {source} …", file=sys.stderr)
            true_shapes.write_model(folder, shape)
        partial = path.with_suffix(".partial")
        run([program, "quantize", source, partial, "--type", kind, "--force"])
        partial.rename(path)
    return path


class Table:
    """Rows of samples; a peer's beside ours."""

    def __init__(self, title):
        self.title, self.ours, self.theirs, self.units = title, {}, {}, {}

    def add(self, key, value, unit, of_peer=False):
        if value is not None:
            (self.theirs if of_peer else self.ours).setdefault(key, []).append(value)
            self.units.setdefault(key, unit)

    @staticmethod
    def shown(samples):
        if not samples:
            return "", ""
        middle = statistics.median(samples)
        return f"{middle:.4g}", f"{100 * (max(samples) - min(samples)) / middle:.0f} %" if middle else ""

    def __str__(self):
        lines = [f"**{self.title}**", "", "| what | unit | ours | spread | llama.cpp | spread | ours / llama.cpp |",
                 "|---|---|---:|---:|---:|---:|---:|"]
        for key in self.units:
            ours, theirs = self.ours.get(key, []), self.theirs.get(key, [])
            ratio = f"{statistics.median(ours) / statistics.median(theirs):.2f}" if ours and theirs else ""
            lines.append(f"| {key} | {self.units[key]} | {' | '.join(self.shown(ours) + self.shown(theirs))} | {ratio} |")
        return "\n".join(lines) + "\n"


def beside_llama(options, name, llama_bench):
    model = gguf_of(options.program, options.folder, name)
    table = Table(f"{name}, {model.name}: plain, alternating, medians of {options.repetitions}")
    prompts, tokens = ",".join(map(str, options.prompts)), str(options.tokens)
    ours = [options.program, "bench", "-m", model, "--no-draft", "-r", 1, "-p", prompts, "-n", tokens, "--rows", f"1,{FEW_ROWS}",
            "-c", max(*options.prompts, options.tokens) + 64, "--json"]
    theirs = [llama_bench, "-m", model, "-ngl", 99, "-r", 1, "-p", f"{FEW_ROWS},{prompts}", "-n", tokens, "-o", "jsonl"]
    environment = {"GGML_VK_VISIBLE_DEVICES": "0", **os.environ}  # llama.cpp passes over devices that are CPUs otherwise
    for repetition in range(options.repetitions):
        print(f"{name}: {repetition + 1} of {options.repetitions}", file=sys.stderr)
        report = json.loads(run(ours))
        for row in report["throughput"]:
            table.add(row["test"], row["tokens_per_second"], "tok/s")
            if row["n_gen"]:
                table.add("percent of copy bandwidth", row["floor_percent"], "%")
                table.add("CPU time per round", row["cpu_us_per_round"], "µs")
        few = next(row for row in report["passes"] if row["rows"] == FEW_ROWS)
        table.add(f"pp{FEW_ROWS} (a pass of {FEW_ROWS} rows)", FEW_ROWS * 1e3 / (few["gpu_ms"] or few["wall_ms"]), "tok/s")
        table.add(f"v({FEW_ROWS})", few["v"], "")
        if not llama_bench:
            continue
        for row in json_lines(run(theirs, environment)):
            test = f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}"
            if row["n_prompt"] == FEW_ROWS:
                test = f"pp{FEW_ROWS} (a pass of {FEW_ROWS} rows)"
            table.add(test, row["avg_ts"], "tok/s", of_peer=True)
    print(table, flush=True)


def pair(options, title, target, draft):
    """Speculation at a set acceptance; every round's work is real."""
    report = json.loads(run([options.program, "bench", "--shape", target, "--draft-shape", draft, "--alpha", options.alpha, "-p", 0,
                             "-n", options.tokens, "-r", options.repetitions, "--drafter", "model", "--draft-len", options.draft_len,
                             "--rows", f"1,{options.draft_len + 1}", "--json"]))
    table = Table(f"{title}, α = {options.alpha:g} simulated, K = {options.draft_len}, medians of {options.repetitions}")
    plain, spec = report["results"]
    for key, row in (("plain", plain), ("speculative", spec)):
        for sample in row["samples"]:
            table.add(f"{key}, {options.tokens} tokens", sample, "tok/s")
    table.add("speculative / plain", spec["speedup"], "times")
    table.add("tokens per round", spec["tokens_per_round"], "")
    table.add("c", spec["c"], "")
    table.add(f"v({options.draft_len + 1})", spec["v"], "")
    table.add("round / (K draft passes + verify pass), GPU time", spec["round_over_passes_gpu"], "")
    table.add("round wall time / GPU time of its passes", spec["round_over_passes_wall"], "")
    table.add("CPU time per round", spec["cpu_us_per_round"], "µs")
    table.add("time to first token", spec["first_token_ms"], "ms")
    print(table, flush=True)


def true_shape(options, title, shape, prompt):
    peak = ["--peak", options.peak] if options.peak else []
    report = json.loads(run([options.program, "bench", "--shape", shape, "--no-draft", "-p", 512 if prompt else 0, "-n", options.tokens,
                             "-r", options.repetitions, "--rows", "1,2,3,4,5,6,7,8", "--stages", "--json", *peak]))
    table = Table(f"{title}, weights made on the device, medians of {options.repetitions}")
    for row in report["throughput"]:
        for sample in row["samples"]:
            table.add(row["test"], sample, "tok/s")
        if row["n_gen"]:
            table.add(f"{row['test']}: of copy bandwidth", row["floor_percent"], "%")
            table.add("CPU time per round", row["cpu_us_per_round"], "µs")
        else:
            table.add(f"{row['test']}: time to first token", row["first_token_ms"], "ms")
            table.add(f"{row['test']}: of matrix peak", row["peak_percent"], "%")
    table.add("copy", report["copy"]["gb_per_second"], "GB/s, read + written")
    for row in report["passes"]:
        if row["rows"] == 1:
            table.add("pass of one row", row["gpu_ms"] or row["wall_ms"], "ms")
            table.add("pass of one row: of copy bandwidth", row["floor_percent"], "%")
            table.add("dispatches of it", row["dispatches"], "")
            for stage in row["stages"]:
                table.add(f"stage {stage['name']} × {stage['count']}", 1e3 * stage["ms"], "µs")
        else:
            table.add(f"v({row['rows']})", row["v"], "")
    print(table, flush=True)


def main():
    parser = argparse.ArgumentParser(prog="speed.sh PROGRAM FOLDER", description=__doc__)
    parser.add_argument("program", help=argparse.SUPPRESS)
    parser.add_argument("folder", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("-r", "--repetitions", type=int, default=5)
    parser.add_argument("-n", "--tokens", type=int, help="tokens generated each time (128; 16 on a CPU)")
    parser.add_argument("-p", "--prompts", type=lambda text: [int(n) for n in text.split(",")], default=[64, 256, 512])
    parser.add_argument("--alpha", type=float, default=0.8, help="simulated acceptance (0.8)")
    parser.add_argument("--draft-len", type=int, default=4)
    parser.add_argument("--peak", type=float, help="TFLOPS of the device's matrix units")
    parser.add_argument("--true-shapes", choices=["auto", "yes", "no"], default="auto", help="auto: on discrete GPUs")
    parser.add_argument("--files", action="store_true", help="the true shapes beside llama.cpp, too: 12 GB of files")
    parser.add_argument("--models", help="beside llama.cpp, of: " + ", ".join(PEER_MODELS))
    options = parser.parse_args()
    names = options.models.split(",") if options.models else ["small f16", "small q4_0"]
    unknown = [name for name in names if name not in PEER_MODELS]
    if unknown:
        parser.error(f"--models {unknown[0]}: expected some of " + ", ".join(PEER_MODELS))

    device = json.loads(run([options.program, "info", "--json"]))["devices"][0]
    is_cpu = device["kind"] == "cpu"
    options.tokens = options.tokens or (16 if is_cpu else 128)
    llama_bench = shutil.which(os.environ.get("LLAMA_BENCH", "llama-bench"))
    print(f"{device['name']}, {device['driver']} ({device['kind']})")
    print("spread: largest less smallest sample, of the median" + ("" if llama_bench else "; llama-bench was not found") + "\n")
    if options.files:
        names += [name for name in PEER_MODELS if name not in names]
    for name in names:
        beside_llama(options, name, llama_bench)
    small = "d=1024,L=12,ffn=2816,heads=16,kv_heads=4,head_dim=64,vocab=32000,tied=1"
    pair(options, "168 M f16 target, its shape in q4_0 with 3 layers as draft", small + ",dtype=f16",
         small.replace("L=12", "L=3") + ",dtype=q4_0")
    if options.true_shapes == "yes" or (options.true_shapes == "auto" and device["kind"] == "discrete"):
        true_shape(options, "llama-3.2-3b bf16", "llama-3.2-3b", True)
        true_shape(options, "llama-3.2-1b bf16", "llama-3.2-1b", True)
        true_shape(options, "llama-3.2-1b q4_0", "llama-3.2-1b,dtype=q4_0", True)
        pair(options, "llama-3.2-3b bf16 target, 1b q4_0 draft", "llama-3.2-3b", "llama-3.2-1b,dtype=q4_0")


if __name__ == "__main__":
    main()
