"""How costs grow with tokens, layers and experts; see ../scaling."""
import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import run_hearth
import shapes

SEQ, VOCABULARY = 128, 512
BASE = {"layers": 4, "experts": 16, "batch": 4, "accumulated": 1}
# Each grows to four times where it starts; what it starts with, and what else differs from BASE.
ROWS = [("tokens, in a micro-batch", "batch", 8, {}),
        ("tokens, in micro-batches", "accumulated", 16, {"batch": 1}),
        ("layers", "layers", 16, {}),
        ("layers, 16 micro-batches", "layers", 16, {"batch": 1, "accumulated": 16}),
        ("experts", "experts", 128, {"layers": 2})]


def config(size):
    return {**shapes.CONFIGS["qwen3"], "vocab_size": VOCABULARY, "hidden_size": 128,
            "num_hidden_layers": size["layers"], "num_attention_heads": 4,
            "num_key_value_heads": 2, "head_dim": 32, "num_experts": size["experts"],
            "num_experts_per_tok": 4, "moe_intermediate_size": 64}


def measure(options, work, size):
    checkpoint = work / f"layers-{size['layers']}-experts-{size['experts']}"
    run_hearth.make_checkpoint(options.hearth, config(size), checkpoint)
    rows = work / f"rows-{size['batch'] * size['accumulated']}.jsonl"
    run_hearth.write_rows(rows, 2 * size["batch"] * size["accumulated"], SEQ, VOCABULARY)
    out = work / "run"
    shutil.rmtree(out, ignore_errors=True)
    words = ["--seq-len", SEQ, "--micro-batch", size["batch"], "--grad-accum", size["accumulated"]]
    if options.threads:
        words += ["--threads", options.threads]
    run = run_hearth.train(options.hearth, checkpoint, rows, out, options.steps, *words)
    return {"step ms": 1e3 * min(run["seconds"][1:]), "start s": run["start_s"],
            "peak MB": run["peak_bytes"] / 1e6}


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--hearth", required=True)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--work")
    options = parser.parse_args()
    if options.work:
        Path(options.work).mkdir(parents=True, exist_ok=True)
        return run(options, Path(options.work))
    with tempfile.TemporaryDirectory(prefix="hearth-bench-") as work:
        return run(options, Path(work))


def run(options, work):
    print(f"{'what grows':26} {'from':>5} {'':9} {'1x':>9} {'2x':>9} {'4x':>9}   growth")
    for name, key, begin, others in ROWS:
        try:
            runs = [measure(options, work, {**BASE, **others, key: begin * factor})
                    for factor in (1, 2, 4)]
        except run_hearth.Failed as error:
            print(f"{name}: not measured: {error}")
            return 1
        for cost in runs[0]:
            values = [run[cost] for run in runs]
            growth = [after / before for before, after in zip(values, values[1:])]
            print(f"{name:26} {begin:5} {cost:9} " + " ".join(f"{v:9.2f}" for v in values)
                  + "   " + ", ".join(f"{g:.2f}" for g in growth), flush=True)
    return 0


sys.exit(main())
