#!/usr/bin/env python3
"""Trains parity cases with transformers and torch.optim.AdamW.

    run_reference.py OUT [CASE...]

Writes <case>/expected.json (steps, evaluation before and after) and <case>/expected.safetensors
(`logits.<row>` before training, `final.<published name>` in f32). Refuses a case whose numbers
would not decide anything: near a tie of experts, or where f32 itself strays from f64.
"""
import fnmatch
import json
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file

import bf16
import models
import training

LOGIT_ROWS = (0, 1, 5)
torch.set_num_threads(1)


def read_case(directory):
    case = json.loads((directory / "case.json").read_text())
    rows = [json.loads(line) for line in (directory / "rows.jsonl").read_text().splitlines()]
    config = models.load_config(directory / "model")
    coefficient = case["train"]["router_aux_loss"]
    if coefficient is None:
        coefficient = config["router_aux_loss_coef"]
    return case, rows, config["num_experts_per_tok"], coefficient


def freezer(case):
    return lambda name: any(fnmatch.fnmatchcase(name, glob) for glob in case["train"]["freeze"])


def update_errors(start, final, other):
    """Published name -> |D - D'| / |D'| with D' = final - start; 0/0 is 0."""
    errors = {}
    for name, value in final.items():
        update = value.double() - start[name].double()
        difference = (other[name].double() - value.double()).norm().item()
        errors[name] = difference / update.norm().item() if difference else 0.0
    return errors


def run(model, case, rows, top_k, coefficient):
    options = case["train"]
    start = {n: t.detach().clone() for n, t in model_tensors(model).items()}
    with torch.no_grad():
        logits = {i: model.forward(rows[i]["input_ids"][:options["seq_len"]])[0]
                  for i in LOGIT_ROWS}
    before = training.evaluate(model, rows, options, top_k)
    steps, routing = training.train(model, rows, options, coefficient, top_k)
    final = {n: t.detach().clone() for n, t in model_tensors(model).items()}
    with torch.no_grad():  # the result that is written has the stored type
        for _, p in model.parameters():
            p.copy_(p.to(getattr(torch, case["dtype"])))
    model.refresh()
    after = training.evaluate(model, rows, options, top_k)
    return dict(start=start, logits=logits, before=before, steps=steps, after=after,
                routing=routing, final=final)


def model_tensors(model):
    return model.tensors if isinstance(model.tensors, dict) else model.tensors()


def reference(directory):
    case, rows, top_k, coefficient = read_case(directory)
    model = models.Transformers(directory / "model", freezer(case))
    assert not any(model.info.values()), f"{case['name']}: {model.info}"
    result = run(model, case, rows, top_k, coefficient)
    plain = run(models.Plain(directory / "model", freezer(case)), case, rows, top_k, coefficient)

    loss_error = max(abs(a["loss"] - b["loss"]) / b["loss"]
                     for a, b in zip(result["steps"], plain["steps"]))
    errors = update_errors(plain["start"], plain["final"], result["final"])
    worst = max(errors, key=errors.get)
    margin = plain["routing"].margin
    print(f"{case['name']:14} loss {result['steps'][0]['loss']:.3f} -> "
          f"{result['steps'][-1]['loss']:.3f}  f32 against f64: loss {loss_error:.1e}, "
          f"update {errors[worst]:.1e} ({worst})  nearest tie {margin:.1e}")
    idle = (result["routing"].counts.min(1).values == 0).all().item()
    assert margin > 1e-4, "a choice of experts near a tie: change the seed"
    assert loss_error < 3e-6 and errors[worst] < 3e-4, "ill-conditioned: change the seed"
    assert idle or not case["idle_expert"], "no idle expert"

    write(directory, coefficient, result)


def reference_bf16(directory):
    """The truth in f64, and what torch's bf16 makes of it."""
    case, rows, top_k, coefficient = read_case(directory)
    truth = run(models.Plain(directory / "model", freezer(case)), case, rows, top_k, coefficient)
    peer = models.Transformers(directory / "model", freezer(case), torch.bfloat16)
    result = run(peer, case, rows, top_k, coefficient)
    errors = bf16.errors(result["steps"], result["final"], truth, truth["start"])
    errors["logits"] = bf16.logits_error(result["logits"], truth["logits"])
    print(f"{case['name']:14} error of torch in bf16: "
          + ", ".join(f"{kind} {value:.1e}" for kind, value in bf16.pooled([errors]).items()))
    write(directory, coefficient, truth, torch_bf16=errors)


def write(directory, coefficient, result, **more):
    expected = dict(torch=torch.__version__, transformers=transformers.__version__,
                    coefficient=coefficient,
                    **{key: result[key] for key in ("before", "steps", "after")}, **more)
    (directory / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    tensors = {f"final.{n}": t for n, t in result["final"].items()}
    tensors |= {f"logits.{i}": t for i, t in result["logits"].items()}
    path = directory / "expected.safetensors"
    save_file({n: t.float().contiguous() for n, t in tensors.items()}, path)
    path.chmod(0o644)


def run_case(directory):
    compute = read_case(directory)[0]["train"]["compute_dtype"]
    (reference_bf16 if compute == "bf16" else reference)(directory)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    out = Path(sys.argv[1])
    for directory in sorted(path.parent for path in out.glob("*/case.json")):
        if len(sys.argv) == 2 or directory.name in sys.argv[2:]:
            run_case(directory)
