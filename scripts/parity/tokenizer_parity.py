#!/usr/bin/env python3
"""Compares ids and decoded text with the official library, over tokenizers of every pipeline
in tokenizer_pipelines.py.

    tokenizer_parity.py HEARTH TEST_DATA WORK [PIPELINE...]   HEARTH: the program; TEST_DATA: the test
                                                            executable that reads the same cases
    tokenizer_parity.py --record DIRECTORY                    the recorded cases, small

One line a pipeline, then what is exempt; exit 1 on a difference.
"""
import json
import subprocess
import sys
from pathlib import Path

from tokenizers import Tokenizer, normalizers

import tokenizer_pipelines
import tokenizer_texts

LONG = ["a" * (1 << 20), "the mixture of experts " * 9000, "\u4e2d\u6587" * 60000, "x" + " " * 200000]


def cases(tokenizer, texts):
    """For each text: ids, decoded text, decoded text without special tokens."""
    plain = tokenizer.encode_batch(texts, add_special_tokens=False)
    ids = [encoding.ids for encoding in plain]
    decoded = [tokenizer.decode(i, skip_special_tokens=False) for i in ids]
    without = [tokenizer.decode(i, skip_special_tokens=True) for i in ids]
    return {
        "ids": ids,  # the others only where they differ from the text, and from each other
        "decoded": {i: d for i, (d, t) in enumerate(zip(decoded, texts)) if d != t},
        "without_special": {i: w for i, (w, d) in enumerate(zip(without, decoded)) if w != d},
    }


def ends(tokenizer):
    """What the post-processor adds before and behind."""
    added = tokenizer.encode("bc", add_special_tokens=True).ids
    inner = tokenizer.encode("bc", add_special_tokens=False).ids
    for cut in range(len(added) - len(inner) + 1):
        if added[cut:cut + len(inner)] == inner:
            return [added[:cut], added[cut + len(inner):]]
    raise ValueError("the post-processor changed the text's ids")


def write(directory, name, description, texts):
    tokenizer = Tokenizer.from_str(json.dumps(description))
    # Where some bytes have a token and some not, the library turns bytes and unknown tokens round.
    content = {"tokenizer": description, "ends": ends(tokenizer),
               "ordered": name != "some byte_fallback", **cases(tokenizer, texts)}
    (directory / (name.replace(" ", "_").replace(",", "") + ".json")).write_text(
        json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n")
    return tokenizer


def record(directory):
    directory.mkdir(parents=True, exist_ok=True)
    texts = tokenizer_texts.recorded()
    (directory / "texts.json").write_text(json.dumps(texts, separators=(",", ":")) + "\n")
    for name, make in tokenizer_pipelines.pipelines().items():
        write(directory, name, make(), texts)
    size = sum(path.stat().st_size for path in directory.iterdir())
    print(f"{len(tokenizer_pipelines.pipelines())} pipelines, {len(texts)} texts, {size} bytes")


def by_command(hearth, directory, tokenizer, description, texts):
    """The lines of a file through `hearth tokenize`, with and without special tokens."""
    (directory / "tokenizer.json").write_text(json.dumps(description))
    lines = [t for t in texts if "\n" not in t]
    (directory / "lines.txt").write_bytes(b"".join(t.encode() + b"\n" for t in lines))
    wrong = 0
    for special in (True, False):
        words = [hearth, "tokenize", "--model", directory, directory / "lines.txt"]
        done = subprocess.run(words + ([] if special else ["--no-special"]), capture_output=True,
                              text=True, timeout=300)
        if done.returncode != 0:
            print("  " + done.stderr.strip())
            return len(lines)
        got = [json.loads(line) for line in done.stdout.splitlines()]
        wanted = [e.ids for e in tokenizer.encode_batch(lines, add_special_tokens=special)]
        wrong += abs(len(got) - len(wanted)) + sum(g != w for g, w in zip(got, wanted))
    return wrong


def compare(hearth, test, work, names):
    texts = tokenizer_texts.recorded() + list(tokenizer_texts.random_texts(3000, seed=7))
    texts = [t for t in texts if not any(tokenizer_texts.exempt(ord(c)) for c in t)]
    texts += list(tokenizer_texts.sweep_texts())
    print(f"{len(texts)} texts each; {sum(1 for _ in tokenizer_texts.swept())} code points swept; "
          "exempt: U+180E and code points that Unicode 14 does not have")
    rare = tokenizer_texts.rare_marks(normalizers.NFD().normalize_str)
    print(f"{len(rare)} rare marks, which the library leaves where they are beside other marks: "
          + " ".join(f"{ord(c):04X}" for c in rare))
    failed = 0
    for name, make in tokenizer_pipelines.pipelines().items():
        if names and name not in names:
            continue
        directory = work / name.replace(" ", "_")
        directory.mkdir(parents=True, exist_ok=True)
        for old in directory.iterdir():
            old.unlink()
        description = make()
        own = texts + (LONG if name in ("qwen", "mixtral old", "gpt2") else [])
        (directory / "texts.json").write_text(json.dumps(own))
        tokenizer = write(directory, name, description, own)
        wrong = by_command(hearth, directory, tokenizer, description, own)
        (directory / "tokenizer.json").unlink()
        (directory / "lines.txt").unlink()
        done = subprocess.run([test, "[pipelines]"], capture_output=True, text=True, timeout=600,
                              env={"HEARTH_TOKENIZER_CASES": str(directory)})
        good = wrong == 0 and done.returncode == 0
        failed += not good
        print(f"{'ok' if good else 'DIFFERS':8}{name}" + (f": {wrong} lines" if wrong else ""),
              flush=True)
        if done.returncode != 0:
            print("\n".join(done.stdout.splitlines()[-30:]))
    print(f"tokenizers: {failed} pipelines differ")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--record":
        record(Path(sys.argv[2]))
    elif len(sys.argv) >= 4:
        sys.exit(compare(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4:]))
    else:
        sys.exit(__doc__.strip())
