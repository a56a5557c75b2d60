#!/usr/bin/env python3
"""Tokenisation throughput beside `tokenizers` and `sentencepiece`: one thread, the same texts, alternating.

Run in the top folder: python3 tests/peers/tokenizers_speed.py PROGRAM [REPETITIONS]
PROGRAM: build/dev/tests/bin/tokenize_lines. The vocabularies are the bundled SentencePiece one and one of Llama 3's size and
rules (true_shapes.py); the texts are this project's files in pieces of about 4 kB, 4 MB in all.
"""
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import sentencepiece
import tokenizers

import true_shapes

PIECE, TOTAL = 4000, 4_000_000  # bytes


def texts():
    """Pieces of whole lines; the files again and again until there are enough."""
    files = subprocess.run(["git", "ls-files", "*.md", "*.cpp", "*.h", "*.py", "*.comp"], capture_output=True, text=True, check=True).stdout.split()
    lines = [line for name in files for line in pathlib.Path(name).read_text(encoding="utf-8").splitlines(keepends=True)
             if "<|" not in line]  # `tokenizers` would make control tokens of their spellings
    pieces, size, piece = [], 0, ""
    while size < TOTAL:
        for line in lines:
            piece += line
            if len(piece) >= PIECE:
                pieces.append(piece)
                size, piece = size + len(piece.encode()), ""
    return pieces


def ours(program, model, lines):
    done = subprocess.run([program, model], input=lines, capture_output=True, text=True, check=True)
    ids = [[int(token) for token in line.split()] for line in done.stdout.splitlines()]
    return ids, float(re.search(r"([\d.e+]+) MB/s", done.stderr).group(1))


def theirs(encode, pieces):
    n_bytes = sum(len(piece.encode()) for piece in pieces)
    begin = time.perf_counter()
    ids = [encode(piece) for piece in pieces]
    return ids, n_bytes / 1e6 / (time.perf_counter() - begin)


def compare(name, program, model, encode, pieces, repetitions):
    lines = "".join(json.dumps(piece) + "\n" for piece in pieces)
    rates = ([], [])
    for _ in range(repetitions):
        for side, (ids, rate) in enumerate((ours(program, model, lines), theirs(encode, pieces))):
            rates[side].append(rate)
            if side == 0:
                expected = ids
            elif ids != expected:
                sys.exit(f"{name}: the ids differ")
    mine, peer = map(statistics.median, rates)
    print(f"| {name} | {mine:.3g} | {peer:.3g} | {mine / peer:.2f} |", flush=True)


def main(program, repetitions=5):
    pieces = texts()
    print("| vocabulary, peer | ours, MB/s | peer, MB/s | ratio |\n|---|---:|---:|---:|")
    bundled = "apps/pair/target"
    model = sentencepiece.SentencePieceProcessor(model_file=f"{bundled}/tokenizer.model")
    compare("SentencePiece, bundled; sentencepiece", program, bundled, model.encode, pieces, repetitions)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        true_shapes.write_tokenizer(folder, true_shapes.COMMON["vocab_size"])
        (folder / "config.json").write_text(json.dumps({**true_shapes.COMMON, **true_shapes.SHAPES["1b"]}))
        model = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        compare("BPE, Llama 3's size and rules; tokenizers", program, folder, lambda text: model.encode(text, add_special_tokens=False).ids, pieces, repetitions)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:]))
