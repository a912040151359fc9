"""Checkpoints both ways: what `hearth init` makes loads in transformers without a missing or
unexpected key; what transformers saves comes out of hearth with equal files when nothing is trained.

    checkpoints.py PROGRAM WORK_DIRECTORY
"""
import filecmp
import json
import shutil
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

from cases import BASE_CONFIG
from hearth import Failed, Hearth
from models import load_tensors, published

# name: changes of config.json, storage type, shard size
VARIANTS = {
    "single": ({}, torch.float32, None),
    "shards": ({"attention_bias": True}, torch.float32, "20KB"),
    "tied": ({"tie_word_embeddings": True}, torch.float32, None),
    "bf16": ({"mlp_only_layers": [1]}, torch.bfloat16, None),
    "f16-shards": ({"decoder_sparse_step": 2}, torch.float16, "20KB"),
}


def check_init(hearth, config, directory):
    path = directory.with_suffix(".json")
    path.write_text(json.dumps(config))
    hearth.call("init", "--config", path, "--out", directory)
    model, info = AutoModelForCausalLM.from_pretrained(directory, output_loading_info=True)
    wrong = {kind: found for kind, found in info.items() if found}
    if wrong:
        raise Failed(f"init: transformers finds {wrong}")
    loaded = published(model.state_dict().items())
    for name, value in load_tensors(directory).items():
        if not torch.equal(loaded[name], value):
            raise Failed(f"init: transformers reads {name} differently")


def check_result(hearth, directory, rows, out):
    """With a rate of 0 the result has the bytes of what transformers saved."""
    hearth.call("train", "--model", directory, "--data", rows, "--out", out, "--quiet",
                "--steps", 1, "--seq-len", 16, "--lr", 0, "--weight-decay", 0)
    names = sorted(p.name for p in directory.iterdir())
    found = sorted(p.name for p in (out / "model").iterdir())
    if names != found:
        raise Failed(f"result: files {found}, not {names}")
    for name in names:
        if not filecmp.cmp(directory / name, out / "model" / name, shallow=False):
            raise Failed(f"result: {name} differs")


def main(program, work):
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    rows = work / "rows.jsonl"
    rows.write_text(json.dumps({"input_ids": list(range(16))}) + "\n")
    hearth = Hearth(program)
    failed = 0
    for name, (changes, dtype, shard_size) in VARIANTS.items():
        torch.manual_seed(1)
        saved = work / name
        # 300: room for the built-in tokenizer of init.
        config = Qwen3MoeConfig(**{**BASE_CONFIG, "vocab_size": 300, **changes})
        options = {"max_shard_size": shard_size} if shard_size else {}
        Qwen3MoeForCausalLM(config).to(dtype).save_pretrained(saved, **options)
        try:
            check_init(hearth, json.loads((saved / "config.json").read_text()),
                       work / f"{name}-init")
            check_result(hearth, saved, rows, work / f"{name}-run")
            print(f"checkpoint {name}: ok")
        except Failed as error:
            failed += 1
            print(f"checkpoint {name}: FAILED: {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
