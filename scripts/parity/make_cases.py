#!/usr/bin/env python3
"""Writes the parity cases below a folder: <case>/model, <case>/rows.jsonl, <case>/case.json.

    make_cases.py OUT [CASE...]

Checkpoints come from transformers' own save_pretrained. Every one-dimensional tensor is random
too, so that nothing hides behind ones and zeros.
"""
import json
import random
import shutil
import sys
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

import cases

logging.disable_progress_bar()


def make_model(case):
    config = AutoConfig.for_model(case.family, **case.settings())
    torch.manual_seed(case.seed)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("norm.weight"):
                p.copy_(0.5 + torch.rand_like(p))
            elif p.dim() == 1:
                p.normal_(0, 0.3)
            elif name.endswith("embed_tokens.weight") and config.pad_token_id is not None:
                p[config.pad_token_id].normal_(0, config.initializer_range)
            elif name.endswith("mlp.gate.weight"):
                p.mul_(2)  # routing well away from ties
                if case.idle_expert:
                    make_idle_expert(p, config.num_experts_per_tok)
    return model.to(getattr(torch, case.dtype))


def make_idle_expert(gate, top_k):
    """Pairs of opposite rows give at least top_k positive logits; the last row stays near 0."""
    experts = gate.shape[0]
    assert experts - 1 >= 2 * top_k
    for i in range(0, experts - 2, 2):
        gate[i + 1] = -gate[i] * 1.1
    gate[experts - 1] *= 0.01


def as_transformers_4(config, dtype):
    """config.json with the keys that published checkpoints carry."""
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope["rope_theta"]
    config["rope_scaling"] = None
    config.pop("dtype")
    config["torch_dtype"] = dtype
    config["transformers_version"] = "4.51.0"
    if config["model_type"] == "qwen3_moe":
        config["num_experts"] = config.pop("num_local_experts")
        config["use_sliding_window"] = False
        config["sliding_window"] = None
        config["max_window_layers"] = 2
    elif config["model_type"] == "qwen2_moe":
        del config["layer_types"], config["qkv_bias"]


def change_config(case, path):
    config = json.loads(path.read_text())
    if case.old_config:
        as_transformers_4(config, case.dtype)
    config.update(case.published)
    path.write_text(json.dumps(config, indent=2) + "\n")


def make_rows(case):
    """Rows of many lengths: without labels, partly trained, not trained at all, of one id."""
    rng = random.Random(case.seed)
    vocabulary = case.settings()["vocab_size"]
    rows = []
    for i in range(case.rows):
        length = 1 if i == 6 else rng.randint(5, 26)
        ids = [rng.randrange(vocabulary) for _ in range(length)]
        row = {"input_ids": ids}
        if i % 3 != 0:
            start = rng.randint(0, length // 2)
            row["labels"] = [-100] * start + ids[start:]
            if length > 8:
                row["labels"][length - 3] = -100
        if i == 4:
            row["labels"] = [-100] * length
        rows.append(row)
    return rows


def main(out, names):
    for case in cases.CASES:
        if names and case.name not in names:
            continue
        directory = out / case.name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        model = make_model(case)
        model.save_pretrained(directory / "model", max_shard_size=case.shard)
        (directory / "model" / "generation_config.json").unlink(missing_ok=True)
        for path in (directory / "model").iterdir():
            path.chmod(0o644)
        change_config(case, directory / "model" / "config.json")
        with open(directory / "rows.jsonl", "w") as f:
            for row in make_rows(case):
                f.write(json.dumps(row, separators=(",", ":")) + "\n")
        record = dict(name=case.name, about=case.about, dtype=case.dtype, extra=case.extra,
                      idle_expert=case.idle_expert, train={**cases.BASE_TRAIN, **case.train})
        (directory / "case.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2:])
