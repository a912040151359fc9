#!/usr/bin/env python3
"""Makes tests/golden/tokenizer/: small tokenizers in the pipelines of Qwen and GPT-2, trained with
the `tokenizers` library, and the ids that the library gives for strings that are hard to get right.

Run from anywhere; needs the Python package `tokenizers`. The result is committed, so that the tests
need neither. Offsets (in characters) are recorded where normalization leaves the text alone.
"""

import json
import pathlib
import random
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = pathlib.Path(__file__).resolve().parent / "tokenizer"

QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content']"
    " + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

TEXTS = """\
A mixture-of-experts model sends each token to a few of its experts. The router's scores decide.
Don't panic: it's what we've planned, they'll see; I'm sure you'd agree, aren't you? WE'VE, IT'S.
def step(batch):\n    loss = model(batch['ids'], batch["labels"])\n    return loss / 1024.0\n
for (int i = 0; i < 100; ++i) {\n\tsum += values[i] * 2;\n}\n\n\n// done
专家混合模型把每个词元送到少数几个专家。路由器的分数决定。今天天气很好，我们去公园散步吧。
今日は天気がいいので、公園を散歩しましょう。カタカナとひらがな。 한국어 문장도 몇 개 있습니다.
Der Straßenbahnfahrer aß Äpfel. L'été dernier, j'étais à Besançon; ça m'a plu. Niño, mañana, señor.
Привет, мир! Как дела? Γειά σου Κόσμε. שלום עולם. مرحبا بالعالم. नमस्ते दुनिया। สวัสดีชาวโลก
12345 67,890.12 3e-10 0xDEADBEEF 1/2 50% $99 #hashtag @user user@example.org https://example.org/a?b=c
🙂🙃 👩‍👩‍👧‍👦 🇩🇪 ❤️ 👍🏽 é é ﬁ ½ Ⅷ ① ㎏
""".replace("\\n", "\n").replace("\\t", "\t")


def corpus():
    yield from TEXTS.splitlines(keepends=True)
    for path in sorted((ROOT / "src" / "base").glob("*.h")):
        yield path.read_text()


def qwen():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN_PATTERN), "isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=256 + 600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.add_special_tokens([AddedToken(s, normalized=False, special=True) for s in SPECIALS])
    tokenizer.add_tokens([AddedToken(s, normalized=False) for s in ["<think>", "</think>", "<t"]])
    return tokenizer


def gpt2():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=256 + 300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=SPECIALS, show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def strings():
    cases = [
        "", " ", "  ", "\n", "\r\n", "\n\n \n", "\t", " \t ", "a", " a", "a ", "  a", "a  b", "a \n b",
        "a\n\n\nb", "a \r\n\r\n  b", "   leading", "trailing   ", "\u00a0", "a\u00a0b", "\u2003x\u3000y",
        "\u200b", "\ufeff", "\u0000", "a\u0000b", "\u0085", "\u2028 \u2029", "\x1c\x1d\x1e\x1f", "\x7f",
        "Hello, world!", "it's IT'S I'LL we'VE they'd 'tis 's ' s ''s it\u2019s", "'\u017f \u212a'S",
        "don't 'll", "x's's's", "0", "12", "123", "1234567890", " 1 22 333", "3.14159", "1,000,000",
        "\u0661\u0662\u0663", "\u00bd\u2167\u2460", "x\u00b2", "\u0e51\u0e52", "...", "!!!\n\n", " ...\r\n",
        "-->\n", "a.b.c", "foo(bar)[baz]{qux}", "C++", "C#", "#!/bin/sh\n", "snake_case camelCase", "__init__",
        "\u4e13\u5bb6\u6df7\u5408", "\u4eca\u5929 \u5929\u6c14", "\u3042\u3044\u3046", "\u304b\u3099",
        "\u30ac", "\uac00\u11a8", "\u1100\u1161\u11a8", "\ud55c\uad6d\uc5b4", "\uff21\uff22",
        "e\u0301", "\u00e9", "a\u0323\u0302", "a\u0302\u0323", "\u1ea5", "q\u0307\u0323", "\u0301",
        " \u0301x", "\n\u0301", "\u212b \u2126 \u212a", "\ufb01", "\u0344", "\u0958", "\u2adc",
        "\u0f73\u0f75", "\u1e9b\u0323", "\u00c5\u0327", "\U0001d15e", "\u09c7\u09be", "\u0b47\u0b56",
        "\u0cc6\u0cc2\u0cd5", "\u0dd9\u0dcf\u0dca", "\u1025\u102e", "\U00011131\U00011127",
        "\u03b9\u0308\u0301", "\u0415\u0308", "\u05d0\u05bc", "\u0627\u0653", "\u0928\u093c",
        "\U0001f642", "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f",
        "\U0001f44d\U0001f3fd", "x\U0001f642y", "\U0010ffff", "\ue000", "\ufffd", "\ufffe", "\U000e0041",
        "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|im_start|>user\nhi<|im_end|>\n",
        "a<|im_end|>b", " <|im_end|> ", "<|im_end|><|im_end|>", "<|im_end", "<|im_end|", "<|im_endx|>",
        "<<|im_start|>", "<|im_start|>>", "<think>", "<think>\n\n</think>\n\n", "<t", "<th", "<thin",
        "<t<think>", "</t", "</think", "<|IM_END|>", "\u00e9<|im_end|>e\u0301", "e<|im_end|>\u0301",
        "<|endoftext|>\n<|endoftext|>", "word<t", "aaaa", "a" * 40, "ab" * 30, " " * 40, "\n" * 17,
        " \n" * 9, "=" * 33, "- " * 12, "the the the", "theretherethere", "THE The tHE",
        "\u0130stanbul \u0131\u015f\u0131k", "stra\u00dfe STRASSE", "\u01c5 \u02b0 \u00aa",
        "\u0915\u094d\u0937\u093f", "\u0e01\u0e33\u0e49", "\u0627\u0644\u0639\u0631\u0628\u064a\u0629",
        "\u05e9\u05dc\u05d5\u05dd", "\u1780\u17d2\u1798", "\u0b95\u0bca", "\u180e",
        "mixed\u4e2d\u6587text123\u6570\u5b57", "tab\tseparated\tvalues", "line1\rline2", "a\u000bb\u000cc",
        "if (x < 3) {\n    y = x << 2;\n}\n", "\"quoted\" 'single' `back`", "50% of $100 & more",
        "https://example.org/path?q=1&r=2#frag", "user@example.org", "\\n\\t\\\\", "{\"a\": [1, 2.5, null]}",
    ]
    draw = random.Random(20240607)
    alphabets = [
        "ab \n", "a1 '.\n", " \t\r\n\u00a0\u3000", "e\u0301\u0323\u0302a\u0308 ", "\u4e2d\u6587 a1\u3002",
        "<|im_end>\n/think", "'sSdDlLvVeErRtTmM x", "0123456789., ", "\u1100\u1161\u11a8\uac00\u11a7 ",
        "\U0001f642\u200d\ufe0f\U0001f3fd x", "\u0915\u093c\u094d\u093e\u0958 ", "the mixture of experts ",
    ]
    for alphabet in alphabets:
        for _ in range(10):
            cases.append("".join(draw.choice(alphabet) for _ in range(draw.randint(1, 30))))
    for _ in range(30):
        cases.append("".join(
            chr(draw.choice([draw.randint(0, 0x7f), draw.randint(0xa0, 0x17f),
                             draw.randint(0x370, 0x6ff), draw.randint(0x900, 0xd7f),
                             draw.randint(0x3041, 0x30ff), draw.randint(0x4e00, 0x9fff)]))
            for _ in range(draw.randint(2, 20))))
    # U+180E counts as a space in PCRE2, and not in Oniguruma: a known difference on a character that
    # Unicode 6.3 moved. Unassigned characters depend on the Unicode version of either library.
    return [c for c in dict.fromkeys(cases) if "\u180e" not in c and not unassigned(c)]


def unassigned(text):
    return any(unicodedata.category(c) == "Cn" and ord(c) & 0xfffe != 0xfffe for c in text)


def save(name, tokenizer, merges_as_strings):
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    data = json.loads(tokenizer.to_str())
    if merges_as_strings:
        data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
    (folder / "tokenizer.json").write_text(json.dumps(data, ensure_ascii=False) + "\n")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>",
              "pad_token": {"content": "<|endoftext|>", "special": True}, "chat_template": CHATML}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    cases = []
    for text in strings():
        encoding = tokenizer.encode(text)
        case = {"text": text, "ids": encoding.ids}
        if name == "qwen" and unicodedata.is_normalized("NFC", text):
            case["offsets"] = [n for span in encoding.offsets for n in span]
        cases.append(json.dumps(case))
    (folder / "cases.json").write_text("[\n" + ",\n".join(cases) + "\n]\n")
    print(f"{name}: {tokenizer.get_vocab_size()} tokens, {len(cases)} cases")


save("qwen", qwen(), merges_as_strings=False)
save("gpt2", gpt2(), merges_as_strings=True)
