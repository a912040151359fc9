"""Adapters against the real PEFT: what hearth writes loads there without a missing, unexpected or
invented tensor and computes the same; what PEFT writes is read here; merged weights are equal.

    adapters.py TEST_MODEL WORK_DIRECTORY [FAMILY...]
    adapters.py --record DIRECTORY     writes tests/golden/adapters anew

TEST_MODEL is the test program of src/model, whose hidden case writes and merges.
"""
import itertools
import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import peft
import torch
import transformers
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

from hearth import Failed

logging.disable_progress_bar()
logging.set_verbosity_error()

SIZES = dict(vocab_size=97, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, num_experts_per_tok=2,
             initializer_range=0.25, bos_token_id=1, eos_token_id=2, pad_token_id=None)
# Widths of 16: there 2I = H, and shapes say nothing about the order of dimensions.
FAMILIES = {
    "mixtral": dict(num_local_experts=5, intermediate_size=16),
    "olmoe": dict(num_experts=5, intermediate_size=16),
    "qwen2_moe": dict(num_experts=5, moe_intermediate_size=16, intermediate_size=24,
                      shared_expert_intermediate_size=16, mlp_only_layers=[1]),
    "qwen3_moe": dict(num_experts=5, moe_intermediate_size=16, intermediate_size=24,
                      mlp_only_layers=[1], head_dim=8),
}
QWEN = ("qwen2_moe", "qwen3_moe")
ALL = ("attention", "experts", "shared-experts", "dense", "router", "head")
# name: targets, other options, the families that have such parts (None: all)
WRITTEN = {
    "attention": (["attention"], {}, None),
    "experts": (["experts"], {}, None),
    "attention-experts": (["attention", "experts"], {}, None),
    "shared": (["shared-experts"], {}, ("qwen2_moe",)),
    "experts-shared": (["attention", "experts", "shared-experts"], {}, ("qwen2_moe",)),
    "dense": (["dense"], {}, QWEN),
    "experts-dense": (["experts", "dense"], {}, QWEN),
    "router": (["router"], {}, None),
    "head": (["head"], {}, None),
    "everything": (list(ALL), {}, None),
    "q-v": (["*q_proj*", "*v_proj*"], {}, None),
    "attention-of-a-layer": (["*layers.2.self_attn*_proj*"], {}, None),
    "router-of-a-layer": (["*layers.0.*gate.weight"], {}, None),
    "experts-of-a-layer": (["*layers.2.*experts.*"], {}, None),
    "experts-of-a-layer-q": (["*layers.2.*.experts.*", "*layers.0.*q_proj*"], {}, None),
    "shared-gate-up-of-a-layer": (["*layers.0.mlp.shared_expert.gate_proj*", "*layers.2.*up_proj*"],
                                  {}, ("qwen2_moe",)),
    "gate-and-up": (["*experts.*gate_proj*", "*experts.*up_proj*", "*.w1.*", "*.w3.*"], {}, None),
    "down": (["*experts.*down_proj*", "*.w2.*"], {}, None),
    "selected-experts": (["attention", "experts"], dict(experts=[[0, 3], [1], [4, 2]]), None),
    "expert-rank-smaller": (["attention", "experts", "router"], dict(rank=6, expert_rank=2), None),
    "expert-rank-larger": (list(ALL), dict(rank=2, expert_rank=5, alpha=7.0), None),
    "beside": (["attention", "experts"], dict(trained=[
        "model.norm.weight", "*gate.weight", "*layers.0.*layernorm.weight", "lm_head.weight"]),
        None),
    "rslora": (["attention", "experts"], dict(rank=3, expert_rank=2, alpha=5.0, rslora=True), None),
}
MISSING_IN = {"olmoe": "dense shared-experts", "mixtral": "dense shared-experts",
              "qwen3_moe": "shared-experts", "qwen2_moe": ""}


def make_model(family, dtype=torch.float32, **sizes):
    torch.manual_seed(5)
    values = {**SIZES, **FAMILIES[family], **sizes}
    config = AutoConfig.for_model(family, **values)
    return AutoModelForCausalLM.from_config(config).to(dtype).eval()


class Job:
    def __init__(self, program, work):
        self.program, self.work = program, Path(work)
        self.file = self.work / "job.json"

    def run(self, **job):
        for key in ("write", "merge"):
            if key in job:
                shutil.rmtree(job[key], ignore_errors=True)
        self.file.write_text(json.dumps({k: str(v) if isinstance(v, Path) else v
                                         for k, v in job.items()}))
        done = subprocess.run([self.program, "adapters: a job of the live check"],
                              env={**os.environ, "HEARTH_ADAPTER_JOB": str(self.file)},
                              capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise Failed(" ".join(done.stdout.split())[-600:])


def load_in_peft(directory, base, trainable=False):
    """PEFT's model; fails where a key is missing, unexpected, or a pair has no tensors."""
    # grouped_mm, the default for experts, refuses widths that are no multiple of 16 bytes.
    base = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32,
                                                experts_implementation="eager")
    seen = {}
    import peft.peft_model as module
    original = module.set_peft_model_state_dict

    def spy(*args, **kwargs):
        result = original(*args, **kwargs)
        seen["missing"] = [k for k in result.missing_keys if "lora_" in k]
        seen["unexpected"] = list(result.unexpected_keys)
        return result

    module.set_peft_model_state_dict = spy
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = peft.PeftModel.from_pretrained(base, directory, is_trainable=trainable)
    finally:
        module.set_peft_model_state_dict = original
    for kind, keys in seen.items():
        if keys:
            raise Failed(f"{len(keys)} keys {kind}: {keys[0]}")
    return model.eval()


def loss_of(model):
    ids = (torch.arange(64).reshape(2, 32) * 7 + 3) % SIZES["vocab_size"]
    with torch.no_grad():
        return model(input_ids=ids, labels=ids).loss.item()


def published(model, path):
    shutil.rmtree(path, ignore_errors=True)
    model.save_pretrained(path)
    return load_tensors(path)


def load_tensors(path):
    tensors = {}
    for file in sorted(Path(path).glob("*.safetensors")):
        tensors.update(load_file(file))
    return tensors


def ulps(ours, theirs, base):
    """The largest distance of two merged bf16 tensors in units of the last place: of the largest of
    what is added and the sum, because PEFT rounds the addition before it adds, and a sum near zero
    has smaller units than what went into it."""
    ours, theirs, base = (t.double() for t in (ours, theirs, base))
    sizes = [ours, theirs, base, ours - base, theirs - base]
    largest = torch.stack([t.abs() for t in sizes]).amax(0).clamp(min=1e-30)
    return ((ours - theirs).abs() / 2.0 ** (largest.log2().floor() - 7)).max().item()


def require_equal_weights(ours, theirs, base=None):
    if ours.keys() != theirs.keys():
        raise Failed(f"other names: {sorted(ours.keys() ^ theirs.keys())[:3]}")
    for name, tensor in ours.items():
        if base is None:
            error = ((tensor - theirs[name]).abs().max() / theirs[name].abs().max()).item()
            if error > 1e-6:
                raise Failed(f"merged {name} differs by {error:.1e}")
        elif (error := ulps(tensor, theirs[name], base[name])) > 1:
            raise Failed(f"merged {name} differs by {error} units in the last place")


def targets_of(family, targets):
    return [t for t in targets if t not in MISSING_IN[family].split()
            and (t.startswith("*") is False or matches_family(family, t))]


def matches_family(family, glob):
    mixtral = any(w in glob for w in ("w1", "w2", "w3"))
    own = any(w in glob for w in ("gate_proj", "up_proj", "down_proj"))
    return not (mixtral and family != "mixtral") and not (own and family == "mixtral")


def check_written(job, family, base, name, layout):
    targets, options, families = WRITTEN[name]
    if families and family not in families:
        return False
    options = {"rank": 4, "expert_rank": 4, "alpha": 8.0, "rslora": False, "experts": [],
               "trained": [], **options}
    written, merged = job.work / "adapter", job.work / "merged"
    job.run(model=base, write=written, merge=merged, layout=layout,
            targets=targets_of(family, targets), **options)
    model = load_in_peft(written, base)
    ours = AutoModelForCausalLM.from_pretrained(merged, dtype=torch.float32).eval()
    difference = abs(loss_of(model) - loss_of(ours))
    if difference > 1e-5:
        raise Failed(f"losses differ by {difference:.1e}")
    theirs = published(model.merge_and_unload(), job.work / "theirs")
    require_equal_weights(load_tensors(merged), theirs)
    # Read back and written again: the same adapter.
    again, merged_again = job.work / "again", job.work / "merged-again"
    job.run(model=base, read=written, write=again, merge=merged_again, layout=layout)
    if load_tensors(written).keys() != load_tensors(again).keys():
        raise Failed("written again it has other tensors")
    for tensor, value in load_tensors(written).items():
        if not torch.equal(load_tensors(again)[tensor], value):
            raise Failed(f"written again it differs in {tensor}")
    require_equal_weights(load_tensors(merged), load_tensors(merged_again))
    return True


def check_fused_base(job, family, base, twin):
    """A base with fused experts: the same tensors, and merged weights that transformers reads."""
    options = dict(rank=3, expert_rank=2, alpha=6.0, rslora=False, experts=[], trained=[],
                   targets=["attention", "experts"], layout="per-expert")
    written, merged = {}, {}
    for name, path in (("plain", base), ("fused", twin)):
        written[name], merged[name] = job.work / f"adapter-{name}", job.work / f"merged-{name}"
        job.run(model=path, write=written[name], merge=merged[name], **options)
    load_in_peft(written["fused"], twin)
    ours, theirs = (load_tensors(written[name]) for name in ("fused", "plain"))
    if ours.keys() != theirs.keys() or any(not torch.equal(ours[n], theirs[n]) for n in ours):
        raise Failed("other tensors than of the twin")
    states = [AutoModelForCausalLM.from_pretrained(merged[name], dtype=torch.float32).state_dict()
              for name in ("fused", "plain")]
    require_equal_weights(*states)
    return True


def tell_of_listed(job, base):
    """What this PEFT makes of dense layers in target_modules (issue 3711); hearth writes them as
    parameters."""
    written = job.work / "listed"
    job.run(model=base, write=written, layout="per-expert", targets=["dense"], rank=4,
            expert_rank=4, alpha=8.0, rslora=False, experts=[], trained=[])
    path = written / "adapter_config.json"
    config = json.loads(path.read_text())
    config["target_modules"] = ["layers.1.mlp." + part for part in
                                ("gate_proj", "up_proj", "down_proj")]
    config["target_parameters"] = None
    path.write_text(json.dumps(config))
    try:
        load_in_peft(written, base)
        result = "load"
    except Exception as error:  # of PEFT, too
        result = f"are lost: {str(error)[:150]}"
    print(f"peft {peft.__version__}: dense layers of qwen3_moe listed as modules {result}")


LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj"]


def made_by_peft(family):
    experts = ["w1", "w2", "w3"] if family == "mixtral" else ["gate_proj", "up_proj", "down_proj"]
    fused = ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]
    cases = {
        "attention": dict(target_modules=LINEAR, r=4, lora_alpha=6),
        "pattern": dict(target_modules=r".*layers\.[02]\.self_attn\.[qv]_proj", r=3, lora_alpha=6),
        "layers": dict(target_modules=["q_proj"], layers_to_transform=[0, 2], r=4, lora_alpha=4),
        "ranks": dict(target_modules=LINEAR, r=4, lora_alpha=6, rank_pattern={"q_proj": 2},
                      alpha_pattern={"layers.1.self_attn.v_proj": 9}),
        "rslora": dict(target_modules=LINEAR, r=3, lora_alpha=6, use_rslora=True),
        "fused": dict(target_modules=[], target_parameters=fused, r=3, lora_alpha=6),
        "fused-attention": dict(target_modules=LINEAR, target_parameters=fused, r=2, lora_alpha=6),
        "fused-down": dict(target_modules=[], target_parameters=fused[1:], r=2, lora_alpha=6),
        "fused-gate-up": dict(target_modules=[], target_parameters=fused[:1], r=2, lora_alpha=6),
        "fused-rslora": dict(target_modules=[], target_parameters=fused, r=3, lora_alpha=6,
                             use_rslora=True),
        "router": dict(target_modules=[], target_parameters=["mlp.gate.weight"], r=2),
        "head": dict(target_modules=["lm_head"], r=2),
    }
    if family != "qwen2_moe":
        cases["converted"] = dict(target_modules=LINEAR + experts, r=3, lora_alpha=6)
        cases["converted-rslora"] = dict(target_modules=experts, r=3, lora_alpha=6, use_rslora=True)
        cases["gate"] = dict(target_modules=["gate"], r=3)
    else:
        cases["shared"] = dict(
            target_modules=["shared_expert.gate_proj", "shared_expert.down_proj"], r=2)
    return cases


def with_pairs(base, dtype, settings):
    """PEFT's model with pairs of random values."""
    model = AutoModelForCausalLM.from_pretrained(base, dtype=dtype)
    torch.manual_seed(9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **settings))
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "lora_" in name:
                p.normal_(0, 0.1)
    return model


def check_read(job, family, base, dtype, settings):
    """An adapter that PEFT made and filled, merged by both."""
    model = with_pairs(base, dtype, settings)
    saved, merged = job.work / "peft", job.work / "merged"
    shutil.rmtree(saved, ignore_errors=True)
    model.save_pretrained(saved)
    loss = loss_of(model)
    job.run(model=base, read=saved, merge=merged)
    ours = load_tensors(merged)
    if dtype == torch.float32:
        difference = abs(loss_of(AutoModelForCausalLM.from_pretrained(merged, dtype=dtype)) - loss)
        if difference > 1e-5:
            raise Failed(f"losses differ by {difference:.1e}")
    theirs = published(model.merge_and_unload(), job.work / "theirs")
    require_equal_weights(ours, theirs, None if dtype == torch.float32 else load_tensors(base))
    return True


# Adapters that PEFT made, for tests without Python: name -> family, settings.
RECORDED = {
    "fused": ("qwen2_moe", dict(
        target_modules=["q_proj", "o_proj", "shared_expert.up_proj"], r=2, lora_alpha=6,
        target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"],
        rank_pattern={"o_proj": 1}, alpha_pattern={"mlp.experts.down_proj": 5})),
    "converted": ("mixtral", dict(target_modules=["v_proj", "w1", "w2", "w3", "gate"], r=2,
                                  lora_alpha=3, use_rslora=True)),
    "head": ("olmoe", dict(target_modules=["lm_head"], layers_to_transform=None, r=2)),
}
TINY = dict(vocab_size=13, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=1)
TINY_OF = {"qwen2_moe": dict(num_experts=3, moe_intermediate_size=4, mlp_only_layers=[],
                             shared_expert_intermediate_size=4, intermediate_size=4),
           "mixtral": dict(num_local_experts=3, intermediate_size=4),
           "olmoe": dict(num_experts=2, intermediate_size=2)}


def record(directory):
    """base/, adapter/ as PEFT saves it, merged.safetensors as PEFT merges it."""
    shutil.rmtree(directory, ignore_errors=True)
    for name, (family, settings) in RECORDED.items():
        out = directory / name
        make_model(family, **TINY, **TINY_OF[family]).save_pretrained(out / "base")
        model = with_pairs(out / "base", torch.float32, settings)
        model.save_pretrained(out / "adapter")
        config = json.loads((out / "adapter/adapter_config.json").read_text())
        config["base_model_name_or_path"] = "base"
        (out / "adapter/adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")
        published(model.merge_and_unload(), out / "merged")
        (out / "merged/model.safetensors").rename(out / "merged.safetensors")
        shutil.rmtree(out / "merged")
        for extra in ("adapter/README.md", "base/generation_config.json"):
            (out / extra).unlink(missing_ok=True)


def main():
    if sys.argv[1] == "--record":
        return record(Path(sys.argv[2]))
    program, work, families = sys.argv[1], Path(sys.argv[2]), sys.argv[3:] or FAMILIES
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(1)
    print(f"peft {peft.__version__}, transformers {transformers.__version__} (what other versions "
          "lose: docs/adapters.md)")
    passed = failed = 0
    for family in families:
        shutil.rmtree(work / family, ignore_errors=True)
        job = Job(program, work / family)
        job.work.mkdir(parents=True)
        bases = {}
        for dtype in (torch.float32, torch.bfloat16):
            for original in (True, False):
                path = job.work / f"base-{str(dtype)[6:]}{'' if original else '-fused'}"
                make_model(family, dtype).save_pretrained(path, save_original_format=original)
                bases[dtype, original] = path
        checks = [(f"{layout} {name}", check_written, (bases[torch.float32, True], name, layout))
                  for layout, name in itertools.product(("per-expert", "fused"), WRITTEN)]
        checks += [(f"{str(dtype)[6:]} by PEFT: {name}", check_read,
                    (bases[dtype, True], dtype, settings))
                   for dtype in (torch.float32, torch.bfloat16)
                   for name, settings in made_by_peft(family).items()]
        checks.append(("fused base", check_fused_base,
                       (bases[torch.float32, True], bases[torch.float32, False])))
        if family == "qwen3_moe":
            tell_of_listed(job, bases[torch.float32, True])
        for name, check, arguments in checks:
            try:
                if check(job, family, *arguments):
                    passed += 1
            except Exception as error:  # of PEFT, too
                failed += 1
                what = f"{type(error).__name__}: {str(error)[:400]}"
                print(f"FAILED {family} {name}: {what}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
