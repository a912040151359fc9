"""A training step of an OLMoE-shaped model on a GPU: hearth, then transformers with grouped_mm experts
and sdpa attention, on the same checkpoint and the same tokens."""
import json
import os
import shutil
import statistics

import run_hearth
import shapes

# Sizes of OLMoE-1B-7B, with as many layers as fit with AdamW's state beside them: 1.9 of 6.9
# billion parameters.
OLMOE = {"config": {**shapes.CONFIGS["olmoe"], "vocab_size": 50304, "hidden_size": 2048,
                    "num_hidden_layers": 4, "intermediate_size": 1024, "torch_dtype": "bfloat16"},
         "batch": 4, "seq": 2048, "steps": 8, "skip": 3, "dtype": "bf16"}
TINY = {"config": {**shapes.CONFIGS["olmoe"], "vocab_size": 320, "hidden_size": 64,
                   "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 2,
                   "intermediate_size": 32, "num_experts": 8, "num_experts_per_tok": 2},
        "batch": 2, "seq": 64, "steps": 4, "skip": 1, "dtype": "f32"}
LR = 1e-5


class Turn:
    """`check` lends its programs, its environment and its time (gpu_check.d/check.py)."""

    def __init__(self, check, size):
        self.check, self.size, self.config = check, size, size["config"]
        self.tokens = size["batch"] * size["seq"]
        self.base, self.rows = check.work / "step-base", check.work / "step-rows.jsonl"
        if not self.base.exists():
            file = check.work / "step-base.json"
            file.write_text(json.dumps(self.config))
            done = check.own("hearth", "init", "--config", file, "--out", self.base, "--seed", "1",
                             "--quiet")
            if done.timed_out:
                raise run_hearth.Failed("cut off: hearth init did not end in time")
            if done.code != 0:
                raise run_hearth.Failed("hearth init: " + done.last())
        run_hearth.write_rows(self.rows, size["batch"] * size["steps"], size["seq"],
                              self.config["vocab_size"])

    def hearth(self):
        out = self.check.work / "step-run"
        shutil.rmtree(out, ignore_errors=True)
        size = self.size
        run = run_hearth.train(
            self.check.place.program("hearth"), self.base, self.rows, out, size["steps"],
            "--seq-len", size["seq"], "--micro-batch", size["batch"], "--grad-accum", 1, "--lr", LR,
            "--compute-dtype", size["dtype"], "--devices", self.check.device,
            environment=self.check.environment(), limit=self.check.left())
        shutil.rmtree(out, ignore_errors=True)
        return self._turn("hearth", run)

    def peer(self):
        """Its turn, or why there was none."""
        check, size = self.check, self.size
        if not check.machine.python:
            return None, check.machine.no_python
        device = "cpu" if check.rehearsing else "cuda"
        done = check.run([check.machine.python, check.place.peers() / "peer.py", self.base, self.rows,
                          "--dtype", size["dtype"], "--impl", "grouped_mm", "--batch", size["batch"],
                          "--steps", size["steps"], "--threads", os.cpu_count(), "--lr", LR,
                          "--device", device],
                         {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"})
        if done.timed_out or done.code != 0:
            return None, "the peer was cut off" if done.timed_out else "the peer: " + done.last()
        return self._turn("transformers", json.loads(done.out.strip().splitlines()[-1])), ""

    def _turn(self, name, run):
        run.pop("plan", None)
        self.check.log.note(name + ": " + json.dumps(run))
        return {**run, "step": statistics.median(run["seconds"][self.size["skip"]:])}

    def flops(self):
        return shapes.step_flops(self.config, self.size["batch"], self.size["seq"])

    def bytes(self):
        """Of AdamW alone: master, gradient and two moments in f32, read, the first and the moments
        written; the working copy written."""
        width = 30 if self.size["dtype"] == "bf16" else 28
        return width * shapes.parameters(self.config)

    def note(self, own, theirs):
        """That both computed the same, to what bf16 allows."""
        return (f"{1e3 * own['step']:.0f} against {1e3 * theirs['step']:.0f} ms; first loss "
                f"{own['losses'][0]:.4f}, {theirs['losses'][0]:.4f}; "
                f"theirs has {theirs['peak_bytes'] / 2**30:.1f} GiB")
