#!/usr/bin/env python3
"""Trains the parity cases with hearth and compares with what run_reference.py wrote.

    compare.py HEARTH CASES OUT [CASE...]

One line a case, `N passed, N failed` last; exit 1 on a failure.
"""
import fnmatch
import json
import math
import shutil
import sys
import traceback
from pathlib import Path

import torch
from safetensors.torch import load_file

import bf16
import hearth
import models
import training

LIMITS = dict(loss=1e-5, aux=1e-5, grad_norm=1e-4, lr=1e-12, load=1e-12, update=1e-3, eval=1e-5,
              export=1e-5, counts=0, rounding=0, keys=0)


class Case:
    """One case: `worst` holds the largest error seen a kind, `where` its place."""

    def __init__(self, directory, program, out):
        self.directory, self.program, self.out = directory, program, out
        self.case = json.loads((directory / "case.json").read_text())
        self.expected = json.loads((directory / "expected.json").read_text())
        self.tensors = load_file(directory / "expected.safetensors")
        self.start = models.load_tensors(directory / "model")
        self.worst, self.where = {}, {}

    def see(self, kind, error, where):
        if not error <= self.worst.get(kind, -1):  # nan is seen, too
            self.worst[kind], self.where[kind] = error, where

    def see_relative(self, kind, value, expected, where):
        scale = abs(expected)
        self.see(kind, abs(value - expected) / scale if scale else abs(value), where)

    def run(self):
        shutil.rmtree(self.out, ignore_errors=True)
        self.compare_eval("before", self.directory / "model")
        self.compare_steps(self.program.train(self.directory, self.case, self.out))
        self.compare_eval("after", self.out / "model")
        masters = self.masters()
        self.compare_updates(masters)
        self.compare_export(masters)

    def compare_eval(self, key, model):
        expected = self.expected[key]
        got = self.program.evaluate(model, self.directory / "rows.jsonl", self.case)
        self.see_relative("eval", got["loss"], expected["loss"], key)
        self.see_relative("aux", got["aux_loss"], expected["aux_loss"], f"eval {key}")
        self.see_relative("eval", got["perplexity"], math.exp(got["loss"]), key)
        self.see_counts(got, expected, f"eval {key}")

    def see_counts(self, got, expected, where):
        for key in ("tokens", "trained_tokens"):
            self.see("counts", abs(got[key] - expected[key]), f"{key}, {where}")

    def compare_steps(self, lines):
        expected = self.expected["steps"]
        self.see("counts", abs(len(lines) - len(expected)), "lines of metrics.jsonl")
        for got, want in zip(lines, expected):
            where = f"step {want['step']}"
            self.see("counts", abs(got["step"] - want["step"]), where)
            self.see_counts(got, want, where)
            self.see_relative("loss", got["loss"], want["loss"], where)
            self.see_relative("aux", got["aux_loss"], want["aux_loss"], where)
            self.see_relative("grad_norm", got["grad_norm"], want["grad_norm"], where)
            self.see_relative("lr", got["lr"], want["lr"], where)
            self.see("counts", abs(len(got["expert_load"]) - len(want["expert_load"])), where)
            for a, b in zip(got["expert_load"], want["expert_load"]):
                self.see_relative("load", a, b, where)

    def masters(self):
        """f32 weights after the last step: of the saved state, and what was not trained."""
        state = load_file(hearth.last_state(self.out) / "weights.safetensors")
        frozen = [name for name in self.start
                  if any(fnmatch.fnmatchcase(name, glob) for glob in self.case["train"]["freeze"])]
        self.see("keys", len(set(state) & set(frozen)), "frozen tensors in the saved state")
        exported = models.load_tensors(self.out / "model")
        return state | {name: exported[name].float() for name in frozen}

    def compare_updates(self, masters):
        names = {name.removeprefix("final.") for name in self.tensors if name.startswith("final.")}
        self.see("keys", len(names ^ set(masters)), "tensors of the saved state")
        for name in names & set(masters):
            start, want = self.start[name].double(), self.tensors[f"final.{name}"].double()
            difference = (masters[name].double() - want).norm().item()
            size = (want - start).norm().item()
            error = difference / size if size else (0.0 if difference == 0 else math.inf)
            self.see("update", error, name)

    def compare_export(self, masters):
        """The checkpoint holds the masters rounded once, and transformers reads it."""
        exported = models.load_tensors(self.out / "model")
        self.see("keys", len(set(exported) ^ set(self.start)), "tensors of the result")
        for name in set(exported) & set(masters):
            rounded = masters[name].to(self.start[name].dtype)
            same = rounded.dtype == exported[name].dtype and torch.equal(rounded, exported[name])
            self.see("rounding", 0 if same else 1, name)
        model = models.Transformers(self.out / "model", lambda name: False)
        self.see("keys", sum(len(keys) for keys in model.info.values()), str(model.info))
        rows = [json.loads(row) for row in open(self.directory / "rows.jsonl")]
        top_k = models.load_config(self.out / "model")["num_experts_per_tok"]
        want = training.evaluate(model, rows, self.case["train"], top_k)
        got = self.program.evaluate(self.out / "model", self.directory / "rows.jsonl", self.case)
        self.see_relative("export", got["loss"], want["loss"], "loss of the result")

    def failures(self):
        return [f"{kind} {error:.2e} > {LIMITS[kind]:g} ({self.where[kind]})"
                for kind, error in self.worst.items() if not error <= LIMITS[kind]]


class Bf16Case(Case):
    """Collects its errors instead of judging them alone."""

    def run(self):
        shutil.rmtree(self.out, ignore_errors=True)
        lines = self.program.train(self.directory, self.case, self.out)
        truth = dict(steps=self.expected["steps"],
                     final={name.removeprefix("final."): tensor.double()
                            for name, tensor in self.tensors.items() if name.startswith("final.")})
        self.errors = bf16.errors(lines, self.masters(), truth, self.start)


def run_case(directory, program, out):
    """(the case, what failed)."""
    case = None
    try:
        compute = json.loads((directory / "case.json").read_text())["train"]["compute_dtype"]
        case = (Bf16Case if compute == "bf16" else Case)(directory, hearth.Hearth(program), out)
        case.run()
        return case, case.failures()
    except hearth.Failed as error:
        return case, [str(error)]
    except Exception:  # one broken case must not hide the others
        return case, [traceback.format_exc()]


def judge_bf16(cases):
    """Errors against f64 beside those of torch in bf16, pooled."""
    ours = bf16.pooled([case.errors for case in cases])
    torch_errors = bf16.pooled([case.expected["torch_bf16"] for case in cases])
    print("bf16 compute: error against f64, of hearth and of torch")
    failures = []
    for kind, error in ours.items():
        ratio = error / torch_errors[kind]
        print(f"  {kind:10} {error:.2e} {torch_errors[kind]:.2e}  ratio {ratio:.2f}")
        if not ratio <= bf16.LIMIT:
            failures.append(f"bf16 {kind}: {ratio:.2f} times the error of torch > {bf16.LIMIT}")
    return failures


def main(program, cases, out, names):
    passed, failed, of_bf16 = 0, 0, []
    columns = ("eval", "loss", "aux", "grad_norm", "update", "export")
    print(f"{'case':16}" + "".join(f"{kind:>11}" for kind in columns))
    for directory in sorted(path.parent for path in cases.glob("*/expected.json")):
        if names and directory.name not in names:
            continue
        case, failures = run_case(directory, program, out / directory.name)
        worst = case.worst if case else {}
        numbers = "".join(f"{worst[kind]:11.1e}" if kind in worst else f"{'-':>11}"
                          for kind in columns)
        print(f"{directory.name:16}{numbers}  {'FAILED' if failures else 'ok'}", flush=True)
        for line in failures:
            print(f"  {line}")
        if isinstance(case, Bf16Case) and not failures:
            of_bf16.append(case)
        failed += bool(failures)
        passed += not failures
    if of_bf16:
        failures = judge_bf16(of_bf16)
        for line in failures:
            print(f"  {line}")
        failed += bool(failures)
        passed += not failures
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]))
