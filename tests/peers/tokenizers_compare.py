#!/usr/bin/env python3
"""Compares Auspex's tokenizers with `tokenizers` and `sentencepiece`: every Unicode code point alone and between letters,
random texts, one megabyte of one letter.

Run in the top folder: python3 tests/peers/tokenizers_compare.py PROGRAM [TEXTS [PART...]]
PROGRAM: build/dev/tests/bin/tokenize_lines. TEXTS: how many random ones (100000). PART: cuts, points, texts,
sentencepiece; all of them when none is named. Minutes each.
Code points where the text is cut elsewhere are listed with their category in this Python's Unicode: the libraries know
different releases of it, so expect those that one release knows as letters or digits and the other not at all. Exit
status 1 when anything differs that these code points do not explain.
"""
import json
import random
import subprocess
import sys
import tempfile
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


def alphabet():
    """GPT-2's: the character that stands for each byte."""
    printable = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    rest = [byte for byte in range(256) if byte not in printable]
    out = {byte: chr(byte) for byte in printable}
    out.update({byte: chr(0x100 + i) for i, byte in enumerate(rest)})
    return out


def write_probe(folder):
    """A vocabulary that shows every cut: letters, marks and spaces of the probing text merge with any byte beside them."""
    spelled = alphabet()
    vocab = {spelled[byte]: byte for byte in range(256)}
    merges = []
    for left, right in [(ord(c), None) for c in "a! '"] + [(None, ord(c)) for c in "b! \n's"]:
        for byte in range(256):
            pair = spelled[byte if left is None else left], spelled[byte if right is None else right]
            if pair[0] + pair[1] not in vocab:
                vocab[pair[0] + pair[1]] = len(vocab)
                merges.append(" ".join(pair))
    file = json.load(open("tests/data/bpe/tokenizer.json", encoding="utf-8"))
    file["added_tokens"], file["post_processor"] = [], None
    file["model"].update(vocab=vocab, merges=merges, ignore_merges=False)
    json.dump(file, open(folder + "/tokenizer.json", "w", encoding="utf-8"))


def probing_text(c):
    return f"a{c}b !{c}! {c} {c}'s\n{c}\n1{c}2"


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


EVERY_POINT = [chr(code) for code in range(1, 0x110000) if not 0xd800 <= code < 0xe000]


def compare_points(name, ours, reference, text_of, points=EVERY_POINT):
    """The set of code points that differ."""
    begin = time.time()
    found = differences(ours, reference, [text_of(c) for c in points])
    print(f"{name}: {len(points)} code points as {ascii(text_of('X'))}: {len(found)} differ ({time.time() - begin:.0f} s)",
          flush=True)
    different = {row[0] for row in found}
    codes = [ord(c) for c in points if text_of(c) in different]
    ranges = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    for low, high in ranges:
        categories = sorted({unicodedata.category(chr(c)) for c in range(low, high + 1)})
        print(f"  U+{low:04X}..U+{high:04X} {','.join(categories)} in Unicode {unicodedata.unidata_version}")
    return set(codes)


def unexplained(name, found, compare_cuts):
    """Of the differing texts, those without a code point that is cut elsewhere when it is alone."""
    points = sorted({c for row in found for c in row[0] if ord(c) > 0x7f})
    known = compare_cuts(points) if points and compare_cuts else set()
    rest = [row for row in found if not any(ord(c) in known for c in row[0])]
    print(f"{name}: {len(found)} differ, {len(rest)} of them without a code point that is cut elsewhere", flush=True)
    return rest


def compare_texts(name, ours, reference, n_texts, compare_cuts=None):
    """Random texts and long runs; whether all differences are explained."""
    dice, explained = random.Random(20261121), True
    texts = [random_text(dice) for _ in range(n_texts)]
    found = differences(ours, reference, texts)
    print(f"{name}: {len(texts)} random texts", flush=True)
    without = unexplained(name, found, compare_cuts)
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
    parts = sys.argv[3:] or ["cuts", "points", "texts", "sentencepiece"]
    print("tokenizers", tokenizers.__version__, "sentencepiece", sentencepiece.__version__)
    fine = True

    def reference_ids(tokenizer):
        return lambda texts: [e.ids for e in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    with tempfile.TemporaryDirectory() as folder:
        write_probe(folder)
        probe = tokenizers.Tokenizer.from_file(folder + "/tokenizer.json")

        def compare_cuts(points):
            return compare_points("tokenizers, cuts", Ours(program, folder), reference_ids(probe), probing_text, points)

        bpe, controls = (tokenizers.Tokenizer.from_file("tests/data/bpe/tokenizer.json") for _ in range(2))
        bpe.encode_special_tokens = True  # written in text, they stay text
        ours = Ours(program, "tests/data/bpe")
        if "cuts" in parts:
            compare_cuts(EVERY_POINT)  # listed, to be held against the releases of Unicode
        if "points" in parts:
            for text_of in (lambda c: c, lambda c: "a" + c + "b"):
                fine = not compare_points("tokenizers", ours, reference_ids(bpe), text_of) and fine
        if "texts" in parts:
            fine = compare_texts("tokenizers", ours, reference_ids(bpe), n_texts, compare_cuts) and fine
            dice = random.Random(7)
            texts = [random_text(dice) for _ in range(n_texts // 10)]
            found = differences(Ours(program, "tests/data/bpe", "--controls"), reference_ids(controls), texts)
            fine = not unexplained(f"tokenizers, {len(texts)} texts with control tokens", found, compare_cuts) and fine
    if "sentencepiece" in parts:
        pieces = sentencepiece.SentencePieceProcessor(model_file="apps/pair/target/tokenizer.model")
        ours = Ours(program, "apps/pair/target")
        for text_of in (lambda c: c, lambda c: "a" + c + "b"):
            fine = not compare_points("sentencepiece", ours, pieces.encode, text_of) and fine
        fine = compare_texts("sentencepiece", ours, pieces.encode, n_texts) and fine
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
