"""Ranks on hosts with slow links; see ../ranks."""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import ranks_predicted
import ranks_scaling
import run_hearth
import shapes

HERE = Path(__file__).resolve().parent
SEQ, VOCABULARY = 128, 512
CONFIG = {**shapes.CONFIGS["qwen3"], "vocab_size": VOCABULARY, "hidden_size": 256,
          "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
          "head_dim": 64, "num_experts": 16, "num_experts_per_tok": 4,
          "moe_intermediate_size": 128}
UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


def bytes_per_s(rate):
    for unit, factor in UNITS.items():
        if rate.endswith(unit):
            return float(rate[:-len(unit)]) * factor / 8
    sys.exit(f"bench: --rates: expected kbit, mbit or gbit, found '{rate}'")


def median(seconds):
    return statistics.median(seconds[1:])


def in_lab(options, rate, words, per_host=1):
    lab = HERE.parents[1] / "cluster_lab"
    done = subprocess.run([lab, str(options.ranks), "--ranks-per-host", str(per_host), "--rate",
                           rate, "--", *map(str, words)],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode == 77:
        sys.exit("bench: no right to make network namespaces")
    if done.returncode != 0:
        sys.exit(f"bench: {words[0]} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def train_words(options, work, out):
    return ["train", "--model", work / "model", "--data", work / "rows.jsonl", "--out", out,
            "--steps", options.steps, "--packing", "off", "--shuffle", "off", "--seq-len", SEQ,
            "--micro-batch", 1, "--grad-accum", options.ranks, "--logical-shards", options.ranks,
            "--lr-schedule", "constant", "--warmup", 0, "--save-every", 0, "--final-state", "off",
            "--digest-every", 0, "--threads", 1, "--parallel",
            options.parallel, "--quiet"]


def steps_of(out):
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return lines, [line["time_s"] for line in lines]


def hearth(options, work, rate):
    out = work / f"run-{rate}"
    in_lab(options, rate, [options.hearth, *train_words(options, work, out)])
    lines, seconds = steps_of(out)
    sent = max(sum(n for link, n in lines[-1]["bytes"].items() if link.startswith(f"{rank}/"))
               for rank in range(options.ranks))
    return median(seconds), sent, [line["loss"] for line in lines]


def torch(options, work, rate):
    out = in_lab(options, rate, [sys.executable, HERE / "peer_ranks.py", work / "model",
                                 work / "rows.jsonl", "--steps", options.steps,
                                 "--parallel", options.parallel])
    found = json.loads(out)
    return median(found["seconds"]), found["losses"]


def run(options, work):
    run_hearth.make_checkpoint(options.hearth, CONFIG, work / "model")
    run_hearth.write_rows(work / "rows.jsonl", options.steps * options.ranks, SEQ, VOCABULARY)
    one = work / "one"
    run_hearth.call(options.hearth, *train_words(options, work, one))
    lines, seconds = steps_of(one)
    alone, losses = median(seconds), [line["loss"] for line in lines]
    print(f"one rank: {1e3 * alone:.0f} ms a step of {options.ranks} sequences of {SEQ} tokens")
    print(f"{'rate':>9} {'sent MB':>8} {'bound ms':>9} {'step ms':>8} {'bound %':>8} {'torch ms':>9} "
          f"{'torch / hearth':>15}")
    for rate in options.rates or ["100mbit", "1gbit"]:
        step, sent, found = hearth(options, work, rate)
        if found != losses:
            sys.exit(f"bench: {options.ranks} ranks have other losses than one: {found}, {losses}")
        # Each rank computes its share while gradients travel.
        bound = max(sent / bytes_per_s(rate), alone / options.ranks)
        row = (f"{rate:>9} {sent / 1e6:8.1f} {1e3 * bound:9.0f} {1e3 * step:8.0f} "
               f"{100 * bound / step:8.0f}")
        if options.peer:
            peer, others = torch(options, work, rate)
            if abs(others[0] - losses[0]) > 1e-4 * losses[0]:  # before any update
                sys.exit(f"bench: torch computes something else: {others}, {losses}")
            row += f" {1e3 * peer:9.0f} {peer / step:15.2f}"
        print(row, flush=True)


def predicted(options, work):
    ranks_predicted.run(options, work, in_lab)


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--hearth", required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rates", type=lambda text: text.split(","))
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--parallel", choices=["dp", "ep"], default="dp")
    parser.add_argument("--work")
    parser.add_argument("--no-peer", dest="peer", action="store_false")
    parser.add_argument("--predicted", action="store_true")
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--link", default="")
    parser.add_argument("--lab", action="store_true")
    parser.add_argument("--sizes", default=",".join(ranks_predicted.SIZES))
    parser.add_argument("--pace", type=float, default=1)
    options = parser.parse_args()
    options.hearth = Path(options.hearth).resolve()
    question = predicted if options.predicted else ranks_scaling.run if options.scaling else run
    if options.link:
        options.link = "/".join(f"{way}={options.link}" for way in ("h2d", "d2h")) + "/"
    if options.work:
        Path(options.work).mkdir(parents=True, exist_ok=True)
        return question(options, Path(options.work).resolve())
    with tempfile.TemporaryDirectory(prefix="hearth-bench-") as work:
        return question(options, Path(work))


if __name__ == "__main__":
    main()
