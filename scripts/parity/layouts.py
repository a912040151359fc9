"""Experts one by one and fused, as transformers saves them: hearth reads both, trains to results in
the layout of the base, and finds the same losses and weights.

    layouts.py PROGRAM WORK_DIRECTORY
"""
import filecmp
import json
import random
import shutil
import sys
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

from hearth import Failed, Hearth, last_state

logging.disable_progress_bar()

SIZES = dict(vocab_size=97, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, num_experts_per_tok=2,
             initializer_range=0.25, bos_token_id=1, eos_token_id=2, pad_token_id=None)
# Widths of 16: there 2I = H, and shapes say nothing about the order of dimensions.
FAMILIES = {
    "qwen3_moe": dict(num_experts=5, moe_intermediate_size=16, intermediate_size=24,
                      mlp_only_layers=[1], head_dim=8),
    "olmoe": dict(num_experts=5, intermediate_size=16),
    "mixtral": dict(num_local_experts=5, intermediate_size=16),
    "qwen2_moe": dict(num_experts=5, moe_intermediate_size=16, intermediate_size=24,
                      shared_expert_intermediate_size=16, mlp_only_layers=[1]),
}
# name: storage type, shard size, the layers whose experts become fused (None: all)
VARIANTS = {
    "f32": (torch.float32, None, None),
    "bf16-shards": (torch.bfloat16, "20KB", None),
    "mixed": (torch.float32, None, "model.layers.0."),
}


def save(model, directory, original, shard_size):
    options = {"max_shard_size": shard_size} if shard_size else {}
    model.save_pretrained(directory, save_original_format=original, **options)


def mix(directory, other, prefix):
    """Takes the experts of the layer `prefix` as `other` stores them."""
    of_layer = lambda name: name.startswith(prefix) and "layernorm" not in name \
        and "self_attn" not in name
    tensors = {n: t for n, t in load_file(directory / "model.safetensors").items()
               if not of_layer(n)}
    tensors |= {n: t for n, t in load_file(other / "model.safetensors").items() if of_layer(n)}
    save_file(tensors, directory / "model.safetensors", {"format": "pt"})


def names_and_shapes(directory):
    found = {}
    for path in sorted(directory.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            found |= {name: file.get_slice(name).get_shape() for name in file.keys()}
    return found


def require(holds, what):
    if not holds:
        raise Failed(what)


def check_same_files(base, result):
    names = sorted(p.name for p in base.iterdir())
    require(names == sorted(p.name for p in result.iterdir()), f"other files in {result}")
    for name in names:
        require(filecmp.cmp(base / name, result / name, shallow=False), f"{name} differs")


def check_inspected(hearth, directory):
    """`inspect` shows what is stored; `verify` passes."""
    shown = json.loads(hearth.call("inspect", directory, "--json"))
    stored = names_and_shapes(directory)
    require({t["name"]: t["shape"] for t in shown["tensors"]} == stored, "inspect: other tensors")
    digests = json.loads(hearth.call("inspect", directory, "--digest", "--json"))["digest"]
    require(set(digests) == set(stored), "inspect --digest: other tensors")
    hearth.call("verify", directory)


def check_loads(directory, what):
    model, info = AutoModelForCausalLM.from_pretrained(directory, output_loading_info=True)
    wrong = {kind: found for kind, found in info.items() if found}
    require(not wrong, f"{what}: transformers finds {wrong}")
    return model


def train(hearth, model, rows, out, lr):
    hearth.call("train", "--model", model, "--data", rows, "--out", out, "--quiet", "--steps", 3,
                "--seq-len", 32, "--lr", lr, "--warmup", 0, "--weight-decay", 0, "--threads", 1)
    return out / "model"


def check(hearth, model, variant, rows, work):
    dtype, shard_size, fused_layers = variant
    model = model.to(dtype)
    layouts = {"per-expert": work / "per-expert", "fused": work / "fused"}
    save(model, layouts["per-expert"], True, shard_size)
    save(model, layouts["fused"], False, shard_size)
    if fused_layers:
        mixed = work / "mixed"
        shutil.copytree(layouts["per-expert"], mixed)
        mix(mixed, layouts["fused"], fused_layers)
        layouts["mixed"] = mixed

    losses, states, trained = {}, {}, {}
    for layout, base in layouts.items():
        shown = json.loads(hearth.call("inspect", base, "--json"))
        require(shown["expert_layout"] == layout, f"{layout}: taken for {shown['expert_layout']}")
        check_inspected(hearth, base)
        losses[layout] = hearth.call("eval", "--model", base, "--data", rows, "--seq-len", 32,
                                     "--threads", 1, "--json")
        check_same_files(base, train(hearth, base, rows, work / f"{layout}-same", 0))
        run = work / f"{layout}-run"
        result = train(hearth, base, rows, run, 1e-2)
        require(names_and_shapes(result) == names_and_shapes(base), f"{layout}: other tensors")
        check_inspected(hearth, result)
        state = json.loads(hearth.call("inspect", last_state(run), "--digest", "--json"))
        states[layout] = state["root"]
        trained[layout] = check_loads(result, layout).state_dict()
    require(len(set(losses.values())) == 1, f"losses differ: {losses}")
    require(len(set(states.values())) == 1, f"trained states differ: {states}")
    start = model.state_dict()
    for layout, weights in trained.items():
        for name, value in weights.items():
            require(torch.equal(value, trained["per-expert"][name]), f"{layout}: {name} differs")
            require(not torch.equal(value, start[name]), f"{layout}: {name} was not trained")


def main(program, work):
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    rows = work / "rows.jsonl"
    draw = random.Random(5)
    rows.write_text("".join(
        json.dumps({"input_ids": [draw.randrange(97) for _ in range(32)]}) + "\n"
        for _ in range(6)))
    hearth = Hearth(program)
    failed = 0
    for family, sizes in FAMILIES.items():
        for name, variant in VARIANTS.items():
            torch.manual_seed(3)
            model = AutoModelForCausalLM.from_config(
                AutoConfig.for_model(family, **{**SIZES, **sizes}))
            for parameter in model.parameters():  # norms and biases are random, too
                torch.nn.init.normal_(parameter, 1 if parameter.dim() == 1 else 0, 0.25)
            try:
                check(hearth, model, variant, rows, work / f"{family}-{name}")
                print(f"layouts {family} {name}: ok")
            except Failed as error:
                failed += 1
                print(f"layouts {family} {name}: FAILED: {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
