"""Calls of the hearth program, and what it wrote."""
import json
import subprocess
from pathlib import Path

OPTIONS = ("steps", "micro_batch", "grad_accum", "seq_len", "lr", "lr_schedule", "warmup",
           "weight_decay", "beta1", "beta2", "eps", "max_grad_norm", "router_aux_loss",
           "aux_loss_mode", "compute_dtype", "threads")
EVAL_OPTIONS = ("micro_batch", "seq_len", "aux_loss_mode", "compute_dtype", "threads")


class Failed(Exception):
    pass


class Hearth:
    def __init__(self, program):
        self.program = program

    def call(self, *words):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=300)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["nothing on stderr"])[-1]
            raise Failed(f"hearth {words[0]} exited {done.returncode}: {last}")
        return done.stdout

    def exit_code(self, *words):
        return subprocess.run([self.program, *map(str, words)], capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=300).returncode

    def train(self, directory, case, out):
        """Trains the case into `out`; returns the lines of metrics.jsonl."""
        words = options_of(case["train"], OPTIONS) + case["extra"]
        for glob in case["train"]["freeze"]:
            words += ["--freeze", glob]
        if case["train"]["decay_all"]:
            words.append("--decay-all")
        self.call("train", "--model", directory / "model", "--data", directory / "rows.jsonl",
                  "--out", out, "--packing", "off", "--shuffle", "off", "--quiet", *words)
        lines = (out / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def evaluate(self, model, data, case):
        return json.loads(self.call(
            "eval", "--model", model, "--data", data, "--packing", "off", "--json",
            *options_of(case["train"], EVAL_OPTIONS)))


def options_of(train, names):
    words = []
    for name in names:
        if train[name] is not None:
            words += ["--" + name.replace("_", "-"), str(train[name])]
    return words


def last_state(out):
    return max(Path(out).glob("state/step-*"))
