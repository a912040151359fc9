"""The measurement of scripts/bench text: makes texts, trains tokenizers, times both programs."""
import argparse
import json
import random
import subprocess
import time
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

ROOT = Path(__file__).resolve().parents[3]
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+")
MARK = "\u2581"


def zipf(draw, items):
    """Draws items with weights 1, 1/2, 1/3, ..."""
    weights = [1 / (i + 1) for i in range(len(items))]
    while True:
        yield from draw.choices(items, weights, k=4096)


def english(draw, size):
    """Words of syllables, as frequent as words are, in sentences and paragraphs."""
    syllables = ["ba", "con", "de", "er", "for", "ing", "ment", "in", "ly", "mis", "o", "per", "qua", "re",
                 "sta", "tion", "un", "ver", "wi", "ous", "al", "ed", "th", "sh", "est", "a", "i", "ness"]
    words = ["the", "of", "and", "to", "a", "in", "is", "that", "it", "was", "for", "on", "as", "with"]
    words += ["".join(draw.choices(syllables, k=draw.randint(1, 4))) for _ in range(30000)]
    take = zipf(draw, words)
    text, length = [], 0
    while length < size:
        sentence = [next(take) for _ in range(draw.randint(4, 22))]
        if draw.random() < 0.1:
            sentence[draw.randrange(len(sentence))] = str(draw.randint(0, 20000))
        line = " ".join(sentence).capitalize() + draw.choice([". ", ". ", "? ", ", it's so. ", ".\n\n"])
        text.append(line)
        length += len(line)
    return "".join(text)


def code(draw, size):
    """Files of this repository, in an order drawn, as often as needed."""
    files = sorted(p for d in ("src", "tools", "cpu_kernels", "scripts") for p in (ROOT / d).rglob("*")
                   if p.suffix in (".cpp", ".h", ".py"))
    text = ""
    while len(text) < size:
        text += draw.choice(files).read_text()
    return text[:size]


def chinese(draw, size):
    """Words of one to three common characters, as frequent as words are."""
    characters = [chr(c) for c in range(0x4e00, 0x9fa5)]
    draw.shuffle(characters)
    common = characters[:3500]
    words = ["".join(draw.choices(common, [1 / (i + 8) for i in range(3500)], k=draw.choice([1, 2, 2, 3])))
             for _ in range(40000)]
    take = zipf(draw, words)
    text, length = [], 0
    while length < size // 3:
        line = "".join(next(take) for _ in range(draw.randint(3, 12))) + draw.choice("，，。？\n")
        text.append(line)
        length += len(line)
    return "".join(text)


def train(texts, kind):
    if kind == "qwen":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(QWEN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        tokenizer.decoder = decoders.ByteLevel()
        alphabet, special = pre_tokenizers.ByteLevel.alphabet(), ["<|endoftext|>", "<|im_start|>"]
    else:
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(MARK, "first")
        alphabet, special = [], ["<unk>", "<s>"] + [f"<0x{b:02X}>" for b in range(256)]
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=30000, initial_alphabet=alphabet, special_tokens=special, show_progress=False,
        limit_alphabet=4000, max_token_length=24))
    description = json.loads(tokenizer.to_str())
    if kind != "qwen":  # as Mixtral's: one word of a whole text
        description["pre_tokenizer"]["split"] = False
    return description


def library_rate(tokenizer, texts):
    best = None
    for _ in range(3):
        begin = time.thread_time()
        tokens = sum(len(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts)
        seconds = time.thread_time() - begin
        best = min(best or seconds, seconds)
    return tokens, tokens / best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--size", type=float, default=2)
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "bench-text")
    options = parser.parse_args()
    size = int(options.size * 1e6)
    kinds = {name: make(random.Random(5), size)
             for name, make in (("english", english), ("code", code), ("chinese", chinese))}
    documents = {name: [text[i:i + 4000] for i in range(0, len(text), 4000)]
                 for name, text in kinds.items()}
    documents["mixed"] = [d for three in zip(*documents.values()) for d in three]
    print(f"{'pipeline':9} {'text':8} {'tokens':>9} {'hearth tok/s':>13} {'library tok/s':>14} "
          f"{'ratio':>6} {'2 threads':>10}")
    for kind in ("qwen", "mixtral"):
        directory = options.work / kind
        directory.mkdir(parents=True, exist_ok=True)
        saved = directory / "tokenizer.json"
        if not saved.is_file():
            saved.write_text(json.dumps(train(documents["mixed"][:600], kind)))
        tokenizer = Tokenizer.from_file(str(saved))
        for name, texts in documents.items():
            path = directory / f"{name}.json"
            path.write_text(json.dumps(texts))
            one, two = (json.loads(subprocess.run(
                [options.program, directory, path, str(threads)], check=True,
                capture_output=True, text=True).stdout) for threads in (1, 2))
            tokens, rate = library_rate(tokenizer, texts)
            if tokens != one["tokens"]:
                raise SystemExit(f"{kind} {name}: {one['tokens']} tokens, the library {tokens}")
            print(f"{kind:9} {name:8} {tokens:9} {one['tokens_per_s']:13.0f} {rate:14.0f} "
                  f"{one['tokens_per_s'] / rate:6.2f} {two['tokens_per_s'] / one['tokens_per_s']:10.2f}",
                  flush=True)


if __name__ == "__main__":
    main()
