"""Training of adapters beside the real PEFT: 12 steps of `hearth train --method lora` and of PEFT's
model with torch.optim.AdamW from the same A, B zero; losses, norms of gradients, the adapters that
come out, what `hearth eval --adapter` and `hearth export` make of them.

    lora.py HEARTH WORK_DIRECTORY [CASE...]
    lora.py --record HEARTH WORK_DIRECTORY TARGET     writes the recorded cases anew

PEFT stacks gate and up of a layer's experts into one pair; there only what belongs to either is
trained (the rest of B stays zero), as in the directory that both read.
"""
import json
import math
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

import peft
import peft.optimizers
import torch
import transformers
from safetensors.torch import save_file

import adapters
import cases
import hearth
import make_cases
import training
from adapters import FAMILIES, load_in_peft, load_tensors, make_model, published

LIMITS = dict(loss=1e-5, aux=1e-5, grad_norm=1e-4, update=1e-3, eval=1e-5, merged=1e-6, counts=0)
OPTIONS = dict(cases.BASE_TRAIN, seq_len=32)


@dataclass
class LoraCase:
    name: str
    targets: str = "attention,experts"
    rank: int = 4
    alpha: float = 6.0
    expert_rank: int = None
    rslora: bool = False
    layout: str = "per-expert"
    plus: float = None  # LoRA+: the rate of B relative to that of A
    beside: list = field(default_factory=list)  # globs of --trainable
    families: tuple = tuple(FAMILIES)
    fused_base: bool = False
    train: dict = field(default_factory=dict)
    recorded: dict = field(default_factory=dict)  # family: rank of the recorded case

    def words(self):
        words = ["--method", "lora", "--lora-targets", self.targets, "--lora-r", self.rank,
                 "--lora-alpha", self.alpha, "--adapter-layout", self.layout]
        if self.expert_rank:
            words += ["--expert-r", self.expert_rank]
        if self.plus:
            words += ["--lora-plus-ratio", self.plus]
        for glob in self.beside:
            words += ["--trainable", glob]
        return [str(word) for word in words] + (["--rslora"] if self.rslora else [])

    def scale(self, of_expert):
        rank = self.expert_rank or self.rank if of_expert else self.rank
        return self.alpha / (math.sqrt(rank) if self.rslora else rank)


CASES = [
    LoraCase("default"),
    LoraCase("fused-layout", layout="fused", train=dict(aux_loss_mode="per-layer")),
    LoraCase("fused-base", fused_base=True, targets="experts"),
    LoraCase("rslora-expert-r", expert_rank=2, rslora=True, rank=6),
    LoraCase("expert-r-larger", expert_rank=5, rank=2, layout="fused"),
    LoraCase("router-head", targets="attention,router,head"),
    LoraCase("dense", targets="dense,experts", families=("qwen2_moe", "qwen3_moe")),
    LoraCase("shared-experts", targets="experts,shared-experts", families=("qwen2_moe",)),
    LoraCase("some-experts", targets="*.experts.1.*,*.experts.3.*,*layers.2*q_proj*"),
    LoraCase("beside", beside=["*.gate.weight", "*norm.weight"], train=dict(weight_decay=0.3)),
    LoraCase("lora-plus", plus=16, train=dict(weight_decay=0.1)),
    LoraCase("no-clip", train=dict(max_grad_norm=0.0, router_aux_loss=0.0, weight_decay=0.0)),
]
RECORDED = {"mixtral": CASES[0], "qwen2_moe": LoraCase(
    "everything", "attention,experts,shared-experts,router,head", rank=3, expert_rank=2,
    alpha=5.0, rslora=True), "qwen3_moe": LoraCase("beside", beside=["*.gate.weight",
    "model.norm.weight"]), "olmoe": LoraCase("fused", layout="fused", rank=2, expert_rank=3)}


TINY_QWEN3 = dict(num_experts=3, moe_intermediate_size=4, intermediate_size=4, head_dim=4,
                  mlp_only_layers=[])


class PeftModel:
    """PEFT's model of an adapter directory for training.py: factors beside what is saved whole."""

    def __init__(self, case, directory, base):
        self.model = load_in_peft(directory, base, trainable=True)
        self.named = []
        for name, p in self.model.named_parameters():
            if p.requires_grad:
                self.named.append((name.replace(".modules_to_save.default", ""), p))
        self.ratios = self.rates_of_lora_plus(case.plus) if case.plus else {}
        self.file_scales = {}
        for name, module in self.model.named_modules():
            if isinstance(getattr(module, "scaling", None), dict):
                self.file_scales[name] = module.scaling["default"]
                module.scaling["default"] = case.scale(".experts" in name)
                if getattr(module, "parameter_name", "") == "gate_up_proj":
                    self.keep_apart(module)

    def rates_of_lora_plus(self, ratio):
        """By name, as PEFT's own optimizer for LoRA+ has them."""
        names = {id(p): name for name, p in self.named}
        optimizer = peft.optimizers.create_loraplus_optimizer(
            self.model, torch.optim.AdamW, lr=1.0, loraplus_lr_ratio=ratio)
        return {names[id(p)]: group["lr"] for group in optimizer.param_groups
                for p in group["params"]}

    @staticmethod
    def keep_apart(module):
        """B of gate and up: columns of gate's ranks reach gate's rows alone, and so with up's."""
        b = module.lora_B["default"].weight
        half = torch.arange(b.shape[1]) < b.shape[1] // 2  # column j * experts + e: rank j
        mask = torch.cat([half.expand(b.shape[0] // 2, -1), ~half.expand(b.shape[0] // 2, -1)])
        b.register_hook(lambda gradient: gradient * mask)

    def products(self):
        """Name -> scale * B, A or what is saved whole."""
        tensors = {}
        for name, p in self.named:
            scale = 1.0
            if "lora_B" in name:
                module = self.model.get_submodule(name.split(".lora_B")[0])
                scale = module.scaling["default"]
            tensors[name] = p.detach().double() * scale
        return tensors

    def parameters(self):
        return self.named

    def forward(self, ids):
        out = self.model(input_ids=torch.tensor([ids]), output_router_logits=True,
                         use_cache=False)
        return out.logits[0], list(out.router_logits)

    def backward(self, loss):
        loss.backward()

    def refresh(self):
        pass


class Check:
    def __init__(self, program, case, family, work, base=None, rows=None):
        self.program, self.case, self.family = hearth.Hearth(program), case, family
        self.work, self.worst = work, {}
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        self.base = work / "model"
        if base is None:
            base = make_model(family)
            spread_routers(base)
            base.save_pretrained(self.base, save_original_format=not case.fused_base)
        else:
            shutil.copytree(base, self.base)
        self.options = {**OPTIONS, **case.train}
        self.rows = make_cases.make_rows(cases.Case("rows", "", family=family, seed=3,
                                                    config=dict(vocab_size=rows or 97)))
        with open(work / "rows.jsonl", "w") as f:
            for row in self.rows:
                f.write(json.dumps(row, separators=(",", ":")) + "\n")
        self.top_k = json.loads((self.base / "config.json").read_text())["num_experts_per_tok"]

    def train(self, out, **changed):
        options = {**self.options, **changed}
        record = dict(train=options, extra=self.case.words())
        return self.program.train(self.work, record, self.work / out)

    def see(self, kind, value, expected=0.0):
        scale = abs(expected) or 1.0
        error = abs(value - expected) / scale
        if not error <= self.worst.get(kind, -1):
            self.worst[kind] = error

    def reference(self):
        """12 steps of PEFT from the adapter that hearth begins with."""
        self.train("start", lr=0.0, steps=1)
        model = PeftModel(self.case, self.work / "start/adapter", self.base)
        start = model.products()
        steps, routing = training.train(model, self.rows, self.options,
                                        self.options["router_aux_loss"], self.top_k)
        return model, start, steps, routing

    def run(self):
        model, start, want, routing = self.reference()
        got = self.train("run")
        self.see("counts", len(got), len(want))
        for a, b in zip(got, want):
            self.see("loss", a["loss"], b["loss"])
            self.see("aux", a["aux_loss"], b["aux_loss"])
            self.see("grad_norm", a["grad_norm"], b["grad_norm"])
        self.margin = routing.margin
        ours = PeftModel(self.case, self.work / "run/adapter", self.base)
        for name, scale in ours.file_scales.items():
            ours.model.get_submodule(name).scaling["default"] = scale
        self.compare(start, model.products(), ours.products())
        evaluated = training.evaluate(ours, self.rows, self.options, self.top_k)
        mine = json.loads(self.program.call(
            "eval", "--model", self.base, "--adapter", self.work / "run/adapter", "--data",
            self.work / "rows.jsonl", "--packing", "off", "--json",
            *hearth.options_of(self.options, hearth.EVAL_OPTIONS)))
        self.see("eval", mine["loss"], evaluated["loss"])
        self.program.call("export", "--model", self.base, "--adapter", self.work / "run/adapter",
                          "--out", self.work / "merged")
        theirs = published(ours.model.merge_and_unload(), self.work / "theirs")
        merged = load_tensors(self.work / "merged")
        if self.case.fused_base:
            merged = published(transformers.AutoModelForCausalLM.from_pretrained(
                self.work / "merged", dtype=torch.float32), self.work / "ours")
        self.see("counts", len(merged.keys() ^ theirs.keys()))
        for name, tensor in theirs.items():
            self.see("merged", ((tensor - merged[name]).abs().max() / tensor.abs().max()).item())
        return [f"{kind} {error:.1e} > {LIMITS[kind]:g}" for kind, error in self.worst.items()
                if not error <= LIMITS[kind]]

    def compare(self, start, theirs, ours):
        self.see("counts", len(theirs.keys() ^ ours.keys()))
        for name, value in theirs.items():
            update = (value - start[name]).norm().item()
            difference = (ours[name] - value).norm().item()
            self.see("update", difference / update if update else difference)

    def row(self):
        return "".join(f"{self.worst.get(kind, math.nan):11.1e}" for kind in LIMITS
                       if kind != "counts")


def spread_routers(model):
    """Routing well away from ties."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("mlp.gate.weight"):
                p.mul_(2)
            elif name.endswith("norm.weight"):
                p.copy_(0.5 + torch.rand_like(p))


def record(program, work, target):
    """model/, rows.jsonl, options, and what PEFT makes of them."""
    shutil.rmtree(target, ignore_errors=True)
    for family, case in RECORDED.items():
        base = work / "base"
        shutil.rmtree(base, ignore_errors=True)
        tiny = make_model(family, **{**adapters.TINY, **adapters.TINY_OF.get(family, TINY_QWEN3)})
        spread_routers(tiny)
        tiny.save_pretrained(base)
        (base / "generation_config.json").unlink(missing_ok=True)
        check = Check(program, case, family, work / family, base, adapters.TINY["vocab_size"])
        model, _, steps, routing = check.reference()
        assert routing.margin > 1e-4, f"{family}: a choice of experts near a tie"
        after = training.evaluate(model, check.rows, check.options, check.top_k)
        out = target / f"{family}-{case.name}"
        out.mkdir(parents=True)
        shutil.copytree(check.base, out / "model")
        shutil.copy(work / family / "rows.jsonl", out)
        settings = dict(targets=case.targets.split(","), rank=case.rank, alpha=case.alpha,
                        expert_rank=case.expert_rank or case.rank, rslora=case.rslora,
                        fused=case.layout == "fused", trainable=case.beside)
        record = dict(name=out.name, train=check.options, lora=settings)
        (out / "case.json").write_text(json.dumps(record, indent=1) + "\n")
        expected = dict(peft=peft.__version__, transformers=transformers.__version__,
                        steps=steps, after=after)
        (out / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
        merged = published(model.model.merge_and_unload(), work / "merged")
        save_file({f"merged.{n}": t for n, t in merged.items()}, out / "expected.safetensors")
        for path in [*out.iterdir(), *(out / "model").iterdir()]:
            if path.is_file():
                path.chmod(0o644)
        print(f"{out.name}: loss {steps[0]['loss']:.3f} -> {steps[-1]['loss']:.3f}, nearest tie "
              f"{routing.margin:.1e}")


def main():
    torch.set_num_threads(1)
    if sys.argv[1] == "--record":
        return record(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
    program, work, names = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    print(f"peft {peft.__version__}, transformers {transformers.__version__}")
    kinds = [kind for kind in LIMITS if kind != "counts"]
    print(f"{'case':28}" + "".join(f"{kind:>11}" for kind in kinds))
    passed = failed = 0
    for case in CASES:
        for family in case.families:
            if names and not {case.name, family, f"{family}-{case.name}"} & set(names):
                continue
            check, failures = None, []
            try:
                check = Check(program, case, family, work / f"{family}-{case.name}")
                failures = check.run()
            except Exception as error:  # of PEFT, too
                failures = [f"{type(error).__name__}: {str(error)[:600]}"]
            failed += bool(failures)
            passed += not failures
            print(f"{family + '-' + case.name:28}{check.row() if check else ''}  "
                  f"{'FAILED' if failures else 'ok'}", flush=True)
            for line in failures:
                print(f"  {line}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main())
