#!/usr/bin/env python3
"""Compares Auspex's tokenizers with `tokenizers` and `sentencepiece`: every Unicode code point alone and between letters,
random texts, one megabyte of one letter.

Run in the top folder: python3 tests/peers/tokenizers_compare.py PROGRAM [TEXTS]
PROGRAM: build/dev/tests/bin/tokenize_lines. TEXTS: how many random ones (100000).
Code points that differ are listed with their category in this Python's Unicode, and in Unicode 14 (that of PCRE2 10.42)
when run with Python 3.11. Exit status 1 when anything differs that an unassigned code point does not explain.
"""
import json
import random
import subprocess
import sys
import time
import unicodedata

SCRIPTS = [(0x20, 0x7f), (0x20, 0x7f), (0x20, 0x7f), (0xa0, 0x180), (0x370, 0x530), (0x5d0, 0x6f0), (0x900, 0x980), (0xe00, 0xe60),
           (0x2000, 0x2070), (0x3040, 0x3100), (0x4e00, 0x9fff), (0xac00, 0xd7a4), (0x1f300, 0x1f700), (0x0, 0x20)]
SPACES = [" ", " ", "  ", "   ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\n\n", " \n", "\u2028", "\x0b", "\x85"]
CODE = ["for", "(", ")", "{", "}", ";", "==", "->", "i", "++", "    ", "\n", "\t", "0x", "1234", "return", "'s", "'LL", "\"", "//",
        "self", ".", "_", "x1", "'re", "'\u017f", "<|", "|>", "<|eot_id|>", "<s>", "</s>", "<0x0A>", "\u2581", "<<word>>"]
WORDS = open("README.md", encoding="utf-8").read().split()


def random_text(dice):
    out = []
    for _ in range(dice.randrange(1, 30)):
        kind = dice.randrange(5)
        if kind == 0:
            out.append(dice.choice(SPACES) * dice.choice([1, 1, 1, 2, 5]))
        elif kind == 1:
            out.append(dice.choice(CODE))
        elif kind == 2:
            out.append(dice.choice(WORDS))
        elif kind == 3:
            low, high = dice.choice(SCRIPTS)
            out.append("".join(chr(dice.randrange(low, high)) for _ in range(dice.randrange(1, 6))))
        else:
            code = dice.randrange(0x110000)
            out.append(chr(code) if not 0xd800 <= code < 0xe000 else " ")
    return "".join(out)


class Ours:
    def __init__(self, program, model, *flags):
        self.command = [program, model, *flags]

    def encode(self, texts):
        lines = "".join(json.dumps(text) + "\n" for text in texts)
        done = subprocess.run(self.command, input=lines.encode(), capture_output=True, check=False)
        if done.returncode != 0:
            sys.exit("failed: " + done.stderr.decode())
        return [[int(word) for word in line.split()] for line in done.stdout.decode().split("\n")[:-1]]


def differences(ours, reference, texts, chunk=50000):
    out = []
    for at in range(0, len(texts), chunk):
        part = texts[at:at + chunk]
        got, expected = ours.encode(part), reference(part)
        assert len(got) == len(expected) == len(part)
        out += [(text, a, b) for text, a, b in zip(part, got, expected) if a != b]
    return out


def compare(name, ours, reference, n_texts):
    points = [chr(code) for code in range(1, 0x110000) if not 0xd800 <= code < 0xe000]
    faults, explained = 0, True
    for what, texts in [("alone", points), ("between letters", ["a" + c + "b" for c in points])]:
        begin = time.time()
        found = differences(ours, reference, texts)
        faults += len(found)
        print(f"{name}: {len(texts)} code points {what}: {len(found)} differ ({time.time() - begin:.0f} s)", flush=True)
        if found:
            codes = [ord(text if len(text) == 1 else text[1]) for text, _, _ in found]
            begin = previous = codes[0]
            for code in codes[1:] + [None]:
                if code != previous + 1 if code is not None else True:
                    categories = sorted({unicodedata.category(chr(c)) for c in range(begin, previous + 1)})
                    print(f"  U+{begin:04X}..U+{previous:04X} {categories} in Unicode {unicodedata.unidata_version}")
                    begin = code
                previous = code
            json.dump(codes, open(f"/tmp/differing_{name}_{what.split()[0]}.json", "w"))
    dice = random.Random(20261121)
    known = set()
    if faults:
        known = set(json.load(open(f"/tmp/differing_{name}_between.json")))
    texts = [random_text(dice) for _ in range(n_texts)]
    found = differences(ours, reference, texts)
    without = [row for row in found if not any(ord(c) in known for c in row[0])]
    print(f"{name}: {len(texts)} random texts: {len(found)} differ, {len(without)} of them without such code points")
    for text, a, b in without[:10]:
        explained = False
        print("  ", ascii(text), a, b)
    for text in ["a" * 1000000, " " * 1000000, "7" * 1000000, "\n" * 1000000, "\U0001F642" * 250000, "\u4e00" * 300000, "ab " * 300000]:
        begin = time.time()
        found = differences(ours, reference, [text])
        print(f"{name}: {len(text)} characters of {ascii(text[:2])}: {len(found)} differ ({time.time() - begin:.1f} s)", flush=True)
        explained = explained and not found
    return explained


def main():
    import sentencepiece
    import tokenizers
    program, n_texts = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100000
    print("tokenizers", tokenizers.__version__, "sentencepiece", sentencepiece.__version__)
    bpe = tokenizers.Tokenizer.from_file("tests/data/bpe/tokenizer.json")
    bpe.encode_special_tokens = True
    fine = compare("tokenizers", Ours(program, "tests/data/bpe"),
                   lambda texts: [e.ids for e in bpe.encode_batch_fast(texts, add_special_tokens=False)], n_texts)
    controls = tokenizers.Tokenizer.from_file("tests/data/bpe/tokenizer.json")
    dice = random.Random(7)
    texts = [random_text(dice) for _ in range(n_texts // 10)]
    found = differences(Ours(program, "tests/data/bpe", "--controls"),
                        lambda t: [e.ids for e in controls.encode_batch_fast(t, add_special_tokens=False)], texts)
    print(f"tokenizers, with control tokens: {len(texts)} random texts: {len(found)} differ")
    pieces = sentencepiece.SentencePieceProcessor(model_file="apps/pair/target/tokenizer.model")
    fine = compare("sentencepiece", Ours(program, "apps/pair/target"), lambda texts: pieces.encode(texts), n_texts) and fine
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
