"""Small tokenizers in the pipelines of the published families, trained with the `tokenizers` library
on our own text: NAME -> the contents of tokenizer.json, and settings that no family has."""
import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
          r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3 = QWEN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
          r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
             r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
MARK = "\u2581"

TEXTS = """\
A mixture-of-experts model sends each token to a few of its experts. The router's scores decide.
Don't panic: it's what we've planned, they'll see; I'm sure you'd agree, aren't you? WE'VE, IT'S.
the quick brown fox jumps over the lazy dog and then the other dog; this is that, and so on, 2024
def step(batch):\n    loss = model(batch['ids'], batch["labels"])\n    return loss / 1024.0\n
for (int i = 0; i < 100; ++i) {\n\tsum += values[i] * 2;\n}\n\n\n// done
\u4e13\u5bb6\u6df7\u5408\u6a21\u578b\u628a\u6bcf\u4e2a\u8bcd\u5143\u9001\u5230\u5c11\u6570\u51e0\u4e2a\u4e13\u5bb6\u3002\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff0c\u6211\u4eec\u53bb\u516c\u56ed\u3002
\u4eca\u65e5\u306f\u5929\u6c17\u304c\u3044\u3044\u306e\u3067\u3001\u6563\u6b69\u3057\u307e\u3057\u3087\u3046\u3002\u30ab\u30bf\u30ab\u30ca\u3002 \ud55c\uad6d\uc5b4 \ubb38\uc7a5\ub3c4 \uc788\uc2b5\ub2c8\ub2e4.
Der Stra\u00dfenbahnfahrer a\u00df \u00c4pfel. L'\u00e9t\u00e9 dernier, \u00e7a m'a plu. Ni\u00f1o, ma\u00f1ana, se\u00f1or.
\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u041a\u0430\u043a \u0434\u0435\u043b\u0430? \u0393\u03b5\u03b9\u03ac \u03c3\u03bf\u03c5. \u05e9\u05dc\u05d5\u05dd. \u0645\u0631\u062d\u0628\u0627. \u0928\u092e\u0938\u094d\u0924\u0947
12345 67,890.12 3e-10 0xDEADBEEF 1/2 50% $99 #hashtag @user https://example.org/a?b=c
\U0001f642 \U0001f469\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f e\u0301 \ufb01 \u00bd \u2167 \u2460 \u338f
""".replace("\\n", "\n").replace("\\t", "\t")


def corpus():
    yield from TEXTS.splitlines(keepends=True)
    for path in sorted((ROOT / "src" / "base").glob("*.h"))[:4]:
        yield path.read_text()


def added(content, **flags):
    return AddedToken(content, **{"normalized": False, **flags})


def train(model, size, *, normalizer=None, words=None, decoder=None, processor=None, specials=(),
          alphabet=(), limit=None, tokens=(), trained_on=None, **trainer):
    tokenizer = Tokenizer(model)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if words is not None or trained_on is not None:
        tokenizer.pre_tokenizer = trained_on or words
    if limit is not None:
        trainer["limit_alphabet"] = limit
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(specials), initial_alphabet=list(alphabet),
        show_progress=False, **trainer))
    if words is not None:
        tokenizer.pre_tokenizer = words
    if decoder is not None:
        tokenizer.decoder = decoder
    if processor is not None:
        tokenizer.post_processor = processor(tokenizer) if callable(processor) else processor
    for token in tokens:
        if token.special:
            tokenizer.add_special_tokens([token])
        else:
            tokenizer.add_tokens([token])
    return json.loads(tokenizer.to_str())


def byte_level(pattern, size=420, *, regexes=(), model=None, prefix=False, last=True, **more):
    """Splits by regexes, then bytes: the way of most families."""
    steps = [pre_tokenizers.Split(Regex(p), "isolated") for p in ([pattern] if pattern else [])]
    steps = list(regexes) + steps
    if last:
        steps.append(pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=False))
    words = pre_tokenizers.Sequence(steps) if len(steps) > 1 else steps[0]
    return train(model or models.BPE(), size, words=words, decoder=decoders.ByteLevel(),
                 alphabet=pre_tokenizers.ByteLevel.alphabet(), **more)


def gpt2(**more):
    return train(more.pop("model", models.BPE()), 400, decoder=decoders.ByteLevel(),
                 words=pre_tokenizers.ByteLevel(add_prefix_space=more.pop("prefix", False)),
                 alphabet=pre_tokenizers.ByteLevel.alphabet(), **more)


def bos(tokenizer):
    return processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B",
        special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])


def sentence_pieces(size=560, *, normalizer=None, words=None, decoder=None, model=None,
                    specials=None, **more):
    """The way of SentencePiece models: marks for spaces, bytes for characters that are not known."""
    if decoder is None:
        decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(),
                                     decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return train(model or models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True), size,
                 normalizer=normalizer, words=words, decoder=decoder, processor=bos, limit=90,
                 specials=specials or ["<unk>", "<s>", "</s>"] + BYTES, max_token_length=9, **more)


def words_of(pre_tokenizer, **more):
    """Characters of words cut in some way, with merges across the cuts; what is not known is unknown."""
    model = more.pop("model", models.BPE(unk_token="<unk>", fuse_unk=False))
    return train(model, 300, words=pre_tokenizer, trained_on=split(Regex("[^ -~]"), "isolated"), specials=["<unk>"], limit=120, **more)


def split(pattern, behavior, invert=False):
    return pre_tokenizers.Split(pattern, behavior, invert)


def families():
    im = [added("<|endoftext|>", special=True), added("<|im_start|>", special=True),
          added("<|im_end|>", special=True), added("<think>"), added("</think>"), added("<t")]
    both = [added("<s>", special=True), added("</s>", special=True)]
    mixtral = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
    roberta = lambda t: processors.RobertaProcessing(  # noqa: E731
        ("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")))
    llama3 = lambda t: processors.Sequence([processors.ByteLevel(trim_offsets=False), bos(t)])  # noqa
    digits = pre_tokenizers.Digits(individual_digits=True)
    return {
        "qwen": lambda: byte_level(QWEN, normalizer=normalizers.NFC(), tokens=im),
        "qwen3.5": lambda: byte_level(QWEN35, normalizer=normalizers.NFC(), tokens=im),
        "gpt2": lambda: gpt2(specials=["<|endoftext|>"]),
        "olmo": lambda: gpt2(normalizer=normalizers.NFC(), tokens=im[:1] + [
            added(" " * n, normalized=True) for n in (2, 3, 4)]),
        "gpt-oss": lambda: byte_level(O200K, model=models.BPE(ignore_merges=True), tokens=im),
        "cl100k": lambda: byte_level(CL100K, tokens=im),
        "llama3": lambda: byte_level(LLAMA3, model=models.BPE(ignore_merges=True), tokens=both,
                                     specials=["<s>"], processor=llama3),
        "deepseek2": lambda: byte_level(None, regexes=[
            split(Regex(r"[\r\n]"), "isolated"), split(Regex(r"\s?\p{L}+"), "isolated"),
            split(Regex(r"\s?\p{P}+"), "isolated"), split(Regex("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"), "isolated"),
            digits], specials=["<s>"], processor=bos, tokens=both),
        "deepseek3": lambda: byte_level(DEEPSEEK3, regexes=[
            split(Regex(r"\p{N}{1,3}"), "isolated"),
            split(Regex("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), "isolated")],
            normalizer=normalizers.Sequence([]), specials=["<s>"], processor=bos),
        "granite": lambda: byte_level(GPT2, regexes=[digits], tokens=im[:1]),
        "starcoder": lambda: train(
            models.BPE(), 400, alphabet=pre_tokenizers.ByteLevel.alphabet(),
            words=pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(False, use_regex=True)]),
            decoder=decoders.ByteLevel(), specials=["<|endoftext|>"]),
        "phi": lambda: gpt2(tokens=[added(" " * n, normalized=True) for n in (2, 3, 4, 7)] + [
            added("\t\t", normalized=True), added("<|im_end|>", special=True, rstrip=True)]),
        "roberta": lambda: gpt2(prefix=True, specials=["<s>", "</s>"], processor=roberta, tokens=[
            added("<mask>", special=True, lstrip=True)]),
        "mixtral old": lambda: sentence_pieces(normalizer=mixtral),
        "mixtral new": lambda: sentence_pieces(
            words=pre_tokenizers.Metaspace(MARK, "first", split=False)),
        "llama2 legacy": lambda: sentence_pieces(
            normalizer=mixtral, tokens=[added("<pad>", normalized=True), added("<eot>", rstrip=True)]),
        "phi3": lambda: sentence_pieces(normalizer=mixtral, tokens=[
            added("<|end|>", special=True, rstrip=True), added("<|user|>", special=True, rstrip=True)]),
        "gemma": lambda: sentence_pieces(
            normalizer=normalizers.Replace(" ", MARK), words=split(" ", "merged_with_previous"),
            decoder=decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(),
                                       decoders.Fuse()])),
    }


def settings():
    plain = {}
    n = normalizers
    for name, normalizer in {
            "NFD": n.NFD(), "NFKC": n.NFKC(), "NFKD": n.NFKD(), "lowercase": n.Lowercase(),
            "strip": n.Strip(), "strip left": n.Strip(True, False),
            "replace regex": n.Sequence([n.Replace(Regex(r"\s{2,}"), " "), n.Replace("e", "EE")]),
            "accents": n.Sequence([n.NFD(), n.StripAccents(), n.Lowercase()]), "nmt": n.Nmt(),
            "spelled bytes": n.Sequence([n.NFC(), n.ByteLevel()])}.items():
        plain["normalizer " + name] = lambda normalizer=normalizer: words_of(
            pre_tokenizers.Metaspace(), normalizer=normalizer, decoder=decoders.Metaspace(),
            tokens=[added("<mask>", normalized=True), added(" <e> ", normalized=True),
                    added("Hello", normalized=True, special=True)])
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        plain["split " + behavior] = lambda b=behavior: words_of(split(Regex(r"[e-h]|\s"), b))
        plain["split inverted " + behavior] = lambda b=behavior: words_of(
            split(Regex(r"\p{L}+"), b, True))
        plain["punctuation " + behavior] = lambda b=behavior: words_of(pre_tokenizers.Punctuation(b))
    plain["split string"] = lambda: words_of(split(", ", "merged_with_previous"))
    plain["split words"] = lambda: words_of(split(Regex(r"\w+|[^\w\s]+|\s*$|^\t"), "isolated"))
    plain["split empty"] = lambda: words_of(split(Regex(r"x*|(?<=o)"), "merged_with_next"))
    for scheme in ("always", "first", "never"):
        for cut in (True, False):
            plain[f"metaspace {scheme} {cut}"] = lambda s=scheme, c=cut: words_of(
                pre_tokenizers.Metaspace(MARK, s, c), decoder=decoders.Metaspace(MARK, s, c),
                tokens=[added("<mask>")])
    p = pre_tokenizers
    for name, words in {
            "whitespace": p.Whitespace(), "whitespace split": p.WhitespaceSplit(),
            "bert": p.BertPreTokenizer(), "digits": p.Digits(False),
            "delimiter": p.CharDelimiterSplit("e"),
            "metaspace behind a split": p.Sequence([p.Digits(True), p.Metaspace(MARK, "first")]),
            "bytes, then digits": p.Sequence([p.ByteLevel(True, use_regex=False), p.Digits(True)]),
    }.items():
        plain[name] = lambda words=words: words_of(words)
    unknown = dict(words=p.WhitespaceSplit(), limit=40, decoder=decoders.Fuse())
    plain["fuse_unk"] = lambda: train(models.BPE(unk_token="<unk>", fuse_unk=True), 150,
                                      specials=["<unk>"], **unknown)
    plain["no unk"] = lambda: train(models.BPE(), 150, **unknown)
    some = ["<unk>"] + BYTES[:0xc4] + BYTES[0xe0:0xe9]
    plain["some byte_fallback"] = lambda: train(
        models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True), 600, specials=some,
        **{**unknown, "decoder": decoders.ByteFallback()})
    plain["suffix"] = lambda: train(
        models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), 300, specials=["<unk>"],
        words=p.BertPreTokenizer(), decoder=decoders.BPEDecoder("</w>"), limit=100,
        end_of_word_suffix="</w>", normalizer=n.Sequence([n.NFC(), n.Lowercase()]))
    plain["prefix"] = lambda: train(
        models.BPE(unk_token="<unk>", continuing_subword_prefix="##"), 300, specials=["<unk>"],
        words=p.Whitespace(), limit=100, continuing_subword_prefix="##")
    plain["bytes without some"] = lambda: train(
        models.BPE(unk_token="<unk>"), 300, words=p.ByteLevel(False), decoder=decoders.ByteLevel(),
        specials=["<unk>"], limit=70)
    plain["bert ends"] = lambda: words_of(p.Whitespace(), processor=lambda t: processors.Sequence([
        processors.BertProcessing(("<unk>", 0), ("<unk>", 0)), processors.TemplateProcessing(
            single="a $A a:1", pair="$A $B", special_tokens=[("a", t.token_to_id("a"))])]))
    corners = [added("<lr>", lstrip=True, rstrip=True), added("<l>", lstrip=True),
               added("<r>", rstrip=True), added("word", single_word=True), added("<w>", single_word=True),
               added("lo", single_word=True, normalized=True), added("Hello", normalized=True),
               added(" x "), added("x y", special=True), added("<l", special=True),
               added("THE", normalized=True, lstrip=True, single_word=True)]
    plain["added tokens"] = lambda: gpt2(normalizer=n.Lowercase(), tokens=corners)
    plain["added tokens, prepended"] = lambda: sentence_pieces(
        normalizer=n.Sequence([n.Prepend(MARK), n.Replace(" ", MARK)]), tokens=corners)
    return plain


def pipelines():
    return {**families(), **settings()}
