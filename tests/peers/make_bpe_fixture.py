#!/usr/bin/env python3
"""Makes tests/data/bpe: a small vocabulary of Llama 3's kind, and the ids that Hugging Face's `tokenizers` gives.

Run in the top folder, with python3-tokenizers installed: python3 tests/peers/make_bpe_fixture.py
The vocabulary is trained on this project's own text. Only the merges depend on the release of `tokenizers`.
"""
import glob
import json
import os

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

OUT = "tests/data/bpe"
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
           r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>",
           "<|finetune_right_pad_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>",
           "<|python_tag|>", "<|eot_id|>x"]
WORDS = ["<<word>>"]
MORE_TEXT = """
Ein Haus, zwei Häuser; größer, schöner, überall. Où est-ce que l'élève a laissé son café ? ¿Dónde está el niño?
Привет, мир! Как дела? Быстрая лиса. 你好，世界。今天天气很好。 こんにちは、世界。 안녕하세요 세계. مرحبا بالعالم. नमस्ते दुनिया.
I'm sure you're right, they've said we'll see it's what he'd do; don't. I'M SURE YOU'RE RIGHT, THEY'VE SAID WE'LL.
def main(argv):\n    for i in range(10):\n        print(f"{i}: {argv[i]}")\n\n\nif __name__ == "__main__":\n    main()\n
int main() {\n\tfor (int i = 0; i < 100; ++i)\n\t\tprintf("%d\\n", i);\n\treturn 0;\n}\n
1 12 123 1234 12345 2026-11-21 3.14159 1,000,000 0xff
"""


def train():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    texts = [open(path, encoding="utf-8").read() for path in sorted(glob.glob("engine/README.md") + ["README.md"])]
    trainer = trainers.BpeTrainer(vocab_size=820, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    tokenizer.train_from_iterator(texts + [MORE_TEXT] * 3, trainer)
    file = json.loads(tokenizer.to_str())
    # Words that no merges lead to: only ignore_merges makes them tokens.
    for word in ["Ġsoothsayer", "auspices", "Ġ" * 7, "Âłx", "''", "ðŁĻĤ"]:
        assert word not in file["model"]["vocab"], word
        file["model"]["vocab"][word] = len(file["model"]["vocab"])
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.add_tokens([AddedToken(word, normalized=False) for word in WORDS])
    bos = tokenizer.token_to_id(SPECIAL[0])
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single=SPECIAL[0] + " $A", pair=SPECIAL[0] + " $A " + SPECIAL[0] + ":1 $B:1",
                                      special_tokens=[(SPECIAL[0], bos)])])
    return tokenizer


def texts():
    out = ["", " ", "a", "Hello, world!", "hello hello  hello   hello", " leading", "trailing ", "trailing   ",
           "soothsayer", " soothsayer", " soothsayers", "auspices", " auspices", "Auspices auspices auspicesx", "a  b", "a   b", "a       b",
           "       ", "\u00a0x", "a\u00a0x", "it''s", "''", "'' x", "\U0001F642", "\U0001F642\U0001F642", " \U0001F642"]
    for word in ["s", "t", "re", "ve", "m", "ll", "d", "x", "S", "T", "RE", "Re", "rE", "VE", "M", "LL", "Ll", "D",
                 "\u017f", "st", "less", "mm", "dd"]:
        out.append("it'" + word)
        out.append("IT'" + word + " '" + word + " \u2019" + word)
    out += ["1", "12", "123", "1234", "12345678", "a1b22c333d4444", "1.5e-3", "1,000,000", "\u0661\u0662\u0663\u0664",
            "\u2167 \u00bd \u00b2x", "\u4e00\u4e8c\u4e09", "0xff 0b01", "12 34", " 1234 5"]
    out += ["\n", "\n\n", "\r\n", "\r\n\r\n", "a\nb", "a\n\nb", "a\r\nb", "a \n b", "a  \n  b", "a\n \nb", "\n \n ",
            " \n", "\t\n\t", "\n\t\tx", "x\n\n\n    y", "   \n\n   \n  z", "a\x0bb", "a\x0cb", "a\x85b", "a\u2028b\u2029c",
            "\u3000\u3000x", "a\u2003\u2003b", "\u180ex\u180e", "a \u180e b", "\u200b\u200bx", "\ufeffx", "a\u00adb", "a\x00b",
            "\x1f\x7f", "a \tb", "a\t b", "x;\n\n", "x; \n", "...\n\n\nx", "}\r\n}\r\n", "!!\r\r\n", " \n\n\r\n \r x"]
    out += ["def f(x):\n    return x**2  # square\n", "for(;;){i++;}", "a->b != c && !d", "/* x */", "http://a.b/c?d=e&f#g",
            "snake_case camelCase PascalCase", "#include <vector>\n\nint main() {}\n", "x\u0301y", "e\u0301t\u00e9",
            "Stra\u00dfe", "\u0130stanbul \u0131", "na\u00efve caf\u00e9", "\u01c5 \u02b0 \u0903 \u0e33",
            "\u4f60\u597d\uff0c\u4e16\u754c\u3002", "\u3053\u3093\u306b\u3061\u306f", "\uc548\ub155 \uc138\uacc4", "\u0645\u0631\u062d\u0628\u0627",
            "\u0928\u092e\u0938\u094d\u0924\u0947", "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440",
            "\U0001F468\u200d\U0001F469\u200d\U0001F467\u200d\U0001F466", "\U0001F44D\U0001F3FD!", "\U0001F1E9\U0001F1EA",
            "a\U0001F642b \U0001F642c", "\u2764\ufe0f", "\U00020000\U0010FFFF", "\ue000\uf8ff", "\ufffd\ufffd x"]
    for look_alike in SPECIAL + WORDS + ["<|eot_id|", "|eot_id|>", "<|eot_id |>", "<|EOT_ID|>", "<<|eot_id|>>", "<|<|eot_id|>",
                                         "<s>", "</s>", "<0x0A>", "[INST]", "<|eot_id|><|eot_id|>x<|eot_id|>xx", "< <word>>",
                                         "<<<word>>>", "a<<word>>b", " <<word>> ", "<<word>><<word>>", "<<word>>s 12"]:
        out.append(look_alike)
        out.append("Say " + look_alike + " now")
    return out


def main():
    tokenizer = train()
    os.makedirs(OUT, exist_ok=True)
    file = json.loads(tokenizer.to_str())
    with open(OUT + "/tokenizer.json", "w", encoding="utf-8") as out:
        json.dump(file, out, ensure_ascii=False, separators=(",", ":"))
        out.write("\n")
    with open(OUT + "/tokenizer_config.json", "w", encoding="utf-8") as out:
        json.dump({"bos_token": SPECIAL[0], "eos_token": "<|eot_id|>", "chat_template": "{{ bos_token }}{{ messages }}"}, out)
        out.write("\n")
    rows = []
    for text in dict.fromkeys(texts()):
        tokenizer.encode_special_tokens = True  # written in text, they stay text
        row = {"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids}
        tokenizer.encode_special_tokens = False
        with_controls = tokenizer.encode(text, add_special_tokens=False).ids
        if with_controls != row["ids"]:
            row["with_controls"] = with_controls
        rows.append(row)
    tokenizer.encode_special_tokens = True
    for raw in [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x99", b"x\x80\x80 y", b"\xc0\xafz", b"\xe4\xbd\xa0\xe5", b"\xf8\x88\x80\x80\x80"]:
        text, rest = "", raw
        while rest:  # byte by byte, as SentencePiece does it
            for length in (1, 2, 3, 4):
                try:
                    text += rest[:length].decode("utf-8")
                    rest = rest[length:]
                    break
                except UnicodeDecodeError:
                    pass
            else:
                text, rest = text + "\ufffd", rest[1:]
        rows.append({"hex": raw.hex(), "ids": tokenizer.encode(text, add_special_tokens=False).ids})
    with open(OUT + "/goldens.json", "w", encoding="utf-8") as out:
        out.write("[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]\n")
    print(tokenizer.get_vocab_size(), "tokens,", len(rows), "goldens")


if __name__ == "__main__":
    main()
