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
from transformers import AutoConfig, AutoModelForCausalLM

from cases import BASE_CONFIGS
from hearth import Failed, Hearth
from models import load_tensors, published

# name: family, changes of config.json, storage type, shard size
VARIANTS = {
    "single": ("qwen3_moe", {}, torch.float32, None),
    "shards": ("qwen3_moe", {"attention_bias": True}, torch.float32, "20KB"),
    "tied": ("qwen3_moe", {"tie_word_embeddings": True}, torch.float32, None),
    "bf16": ("qwen3_moe", {"mlp_only_layers": [1]}, torch.bfloat16, None),
    "f16-shards": ("qwen3_moe", {"decoder_sparse_step": 2}, torch.float16, "20KB"),
    "olmoe": ("olmoe", {"attention_bias": True}, torch.float32, None),
    "olmoe-shards": ("olmoe", {"clip_qkv": 8.0, "tie_word_embeddings": True}, torch.bfloat16,
                     "20KB"),
    "mixtral": ("mixtral", {}, torch.float32, None),
    "mixtral-shards": ("mixtral", {"sliding_window": 8}, torch.bfloat16, "20KB"),
    "qwen2": ("qwen2_moe", {}, torch.float32, None),
    "qwen2-shards": ("qwen2_moe", {"mlp_only_layers": [1], "qkv_bias": False}, torch.bfloat16,
                     "20KB"),
}


def check_init(hearth, config, directory):
    path = directory.with_suffix(".json")
    path.write_text(json.dumps(config))
    hearth.call("init", "--config", path, "--out", directory)
    model, info = AutoModelForCausalLM.from_pretrained(directory, output_loading_info=True)
    wrong = {kind: found for kind, found in info.items() if found}
    if wrong:
        raise Failed(f"init: transformers finds {wrong}")
    loaded = published(model.state_dict().items(), config["model_type"])
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
    for name, (family, changes, dtype, shard_size) in VARIANTS.items():
        torch.manual_seed(1)
        saved = work / name
        # 300: room for the built-in tokenizer of init.
        settings = {**BASE_CONFIGS[family], "vocab_size": 300, **changes}
        config = AutoConfig.for_model(family, **settings)
        options = {"max_shard_size": shard_size} if shard_size else {}
        AutoModelForCausalLM.from_config(config).to(dtype).save_pretrained(saved, **options)
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
