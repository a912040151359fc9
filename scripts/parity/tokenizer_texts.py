"""Texts that are hard to get right, the same ones for every pipeline."""
import random
import unicodedata

HARD = [
    "", " ", "  ", "\n", "\r\n", "\n\n \n", "\t", " \t ", "a", " a", "a ", "  a", "a  b", "a \n b",
    "a\n\n\nb", "a \r\n\r\n  b", "   leading", "trailing   ", "\u00a0", "a\u00a0b", "\u2003x\u3000y",
    "\u200b", "\ufeff", "\u0000", "a\u0000b", "\u0085", "\u2028 \u2029", "\x1c\x1d\x1e\x1f", "\x7f",
    "Hello, world!", "hello Hello HELLO xHello Hellox", "the THE  THE the THEx",
    "it's IT'S I'LL we'VE they'd 'tis 's ' s ''s it\u2019s", "'\u017f \u212a'S", "x's's's",
    "0", "12", "123", "1234567890", " 1 22 333", "3.14159", "1,000,000", "\u0661\u0662\u0663",
    "\u00bd\u2167\u2460", "x\u00b2", "...", "!!!\n\n", " ...\r\n", "a.b.c", "foo(bar)[baz]{qux}",
    "snake_case camelCase HTMLParser", "__init__", "\u4e13\u5bb6\u6df7\u5408", "\u3042\u3044\u3046",
    "\u304b\u3099", "\uff76\uff9e\uff8a\uff9f", "\u30ac", "\uac00\u11a8", "\u1100\u1161\u11a8",
    "\ud55c\uad6d\uc5b4", "\uff21\uff22\uff11", "e\u0301", "\u00e9", "a\u0323\u0302", "a\u0302\u0323",
    "\u1ea5", "\u0301", " \u0301x", "\u212b \u2126 \u212a", "\ufb01 \ufb03 \ufdfa", "\u0958", "\u1e9b\u0323",
    "\u0130stanbul \u0131", "\u03a3\u03a4\u03a3 \u03a3", "stra\u00dfe STRASSE", "\u01c5 \u02b0 \u00aa",
    "\u0915\u094d\u0937\u093f", "\u0e01\u0e33\u0e49", "\u05e9\u05dc\u05d5\u05dd", "\u0b95\u0bca",
    "\U0001f642", "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f", "x\U0001f642y",
    "\U0010ffff", "\ue000", "\ufffd", "\u2581", "a\u2581b \u2581 c", "\u2581\u2581x", "\u24b6\u24d0 \u2118",
    "<|im_start|>user\nhi<|im_end|>\n", "a<|im_end|>b", " <|im_end|> ", "<|im_end|><|im_end|>",
    "<|im_end", "<<|im_start|>", "<think>\n\n</think>\n\n", "<t<think>", "</think", "e<|im_end|>\u0301",
    "<s>", "<s>a</s>", " <s> a </s> b", "</s><s>", "<mask>", "a <mask> b", "a<mask>b", "  <mask>  ",
    "<unk>", "<0x41>", "<0xE4>", "<|end|>  x", "<|user|>\n\nhi<|end|>\n<|user|>", "<pad>", " <pad>", "x<pad>",
    "<eot> a", "a  <lr>  b", "a  <l>  b", "a  <r>  b", "<l><r>", "<r>  <l>", "<r>  <lr>  <l>", "<lr> <lr>",
    "word", "a word b", "words", "sword", "word_", "_word", "(word)", "word\u0301", "\u200dword",
    "<w>", "a<w>b", "a <w> b", "a<w>", "\u00e9<w>", "lo", "hello", "lo lo", "LO Lo.", " x ", " x y", "x y",
    "a x y b", "<l", "<lx", " <e> ", " <E> ", "x <e>  y", "word<w>word", "word word", "\u00c4word wordy word",
    "e" * 9, "a" * 40, "ab" * 30, " " * 40, "\n" * 17, " \n" * 9, "=" * 33, "theretherethere",
    "mixed\u4e2d\u6587text123\u6570\u5b57", "tab\tseparated\tvalues", "line1\rline2", "a\u000bb\u000cc",
    "if (x < 3) {\n    y = x << 2;\n}\n", "https://example.org/path?q=1&r=2#frag",
    "The  quick\tbrown\n\n\nfox, jumps; over: the lazy dog.", "{\"a\": [1, 2.5, null]}",
]
ALPHABETS = [
    "ab \n", "a1 '.\n", " \t\r\n\u00a0\u3000", "e\u0301\u0323\u0302a\u0308 ", "\u4e2d\u6587 a1\u3002",
    "<|im_end>\n/think", "'sSdDlLvVeErRtTmM x", "0123456789., ", "\u1100\u1161\u11a8\uac00 \uff9e\uff76",
    "\U0001f642\u200d\ufe0f\U0001f3fd x", "\u0915\u093c\u094d\u093e\u0958 ", "the mixture of experts ",
    "<lrw> x", "word<w> lo", "\u2581 a<mask>", "Hello the THE", "efgh xo \n", "\u00df\u0130\u01c5\u03a3 aA",
]
PIECES = ["<|im_end|>", "<s>", "</s>", "<mask>", "<l>", "<r>", "<lr>", "<w>", "word", "lo", "Hello", "THE",
          "x y", " x ", " ", "  ", "\n", "a", "\u00e9", "e\u0301", "\u4e2d", "<pad>", "<|end|>", "12", "\u2581"]


def random_texts(count, seed=20240607):
    draw = random.Random(seed)
    for i in range(count):
        kind = i % 3
        if kind == 0:
            alphabet = draw.choice(ALPHABETS)
            yield "".join(draw.choice(alphabet) for _ in range(draw.randint(1, 30)))
        elif kind == 1:
            yield "".join(draw.choice(PIECES) for _ in range(draw.randint(1, 10)))
        else:
            yield "".join(
                chr(draw.choice([draw.randint(0, 0x7f), draw.randint(0xa0, 0x17f),
                                 draw.randint(0x370, 0x6ff), draw.randint(0x900, 0xd7f),
                                 draw.randint(0x3041, 0x30ff), draw.randint(0x4e00, 0x9fff)]))
                for _ in range(draw.randint(2, 20)))


def exempt(code):
    """U+180E, which Unicode 6.3 moved, and what Unicode 14 (Python's tables) does not have."""
    return code == 0x180e or unicodedata.category(chr(code)) == "Cn"


def swept():
    """Every code point up to U+2FFFF and in planes 14, but surrogates and the exempt; of the large
    blocks of ideographs, syllables and private use every 61st."""
    large = [(0x3400, 0x4dbf), (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0xe000, 0xf8ff), (0x17000, 0x18cff),
             (0x20000, 0x2fa1f), (0xe0200, 0xeffff)]
    for code in [*range(0x30000), *range(0xe0000, 0xf0000)]:
        if 0xd800 <= code <= 0xdfff or exempt(code):
            continue
        if code % 61 and any(first <= code <= last for first, last in large):
            continue
        yield chr(code)


def sweep_texts(at_once=8):
    """Each character alone, between letters, and behind spaces and digits; none beside another."""
    characters = list(swept())
    for i in range(0, len(characters), at_once):
        yield "".join(f"{c}a{c}b {c} 1{c}." for c in characters[i:i + at_once])


def rare_marks(normalize):
    """Marks that the library's older tables do not put in order: `normalize` is its NFD."""
    marks = []
    for c in swept():
        if unicodedata.combining(c):
            partner = "\u0323" if unicodedata.combining(c) != 220 else "\u0301"
            if any(normalize(p) != unicodedata.normalize("NFD", p) for p in (c + partner, partner + c)):
                marks.append(c)
    return marks


def recorded():
    texts = HARD + list(random_texts(36))
    return [t for t in dict.fromkeys(texts) if not any(exempt(ord(c)) for c in t)]
