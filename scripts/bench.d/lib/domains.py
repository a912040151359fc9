"""Expert domains beside expert parallelism and data parallelism; see ../domains."""
import argparse
import json
import tempfile
from pathlib import Path

import ranks_predicted
import run_hearth
import shapes

SEQ, VOCABULARY = 128, 512
# More rows than weights: 16 micro-batches a rank and step, 4 experts a token.
CONFIG = {**shapes.CONFIGS["qwen3"], "vocab_size": VOCABULARY, "hidden_size": 128,
          "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
          "head_dim": 64, "num_experts": 8, "num_experts_per_tok": 4,
          "moe_intermediate_size": 64}


def words_of(options, work, method):
    words = ["--model", work / "model", "--data", work / "rows.jsonl", "--steps", options.steps,
             "--packing", "off", "--shuffle", "off", "--seq-len", SEQ, "--micro-batch", 1,
             "--grad-accum", options.ranks * options.micro_batches, "--logical-shards",
             options.ranks, "--lr-schedule", "constant", "--warmup", 0, "--save-every", 0,
             "--final-state", "off", "--digest-every", 0, "--threads", 1, "--quiet",
             "--thread-ranks", options.ranks, "--devices", f"host:costs={work / 'table.json'}"]
    return words + (["--method", "lora", "--lora-r", 4] if method == "lora" else [])


def modes_of(options, method):
    """By name: the words of a mode. Domains of every size, ep and dp among them. Experts that are drawn
    at random have nothing in common, so any error is allowed where they travel compressed."""
    modes = {"ep": ["--parallel", "ep"], "dp": ["--parallel", "dp"],
             "auto": ["--parallel", "hybrid-ep"]}
    for size in range(2, options.ranks):
        if options.ranks % size == 0:
            modes[f"S={size}"] = ["--parallel", "hybrid-ep", "--domains", size]
    if method == "full":
        modes["wired"] = ["--parallel", "hybrid-ep", "--domains", options.ranks, "--wire",
                          "residual:50", "--wire-threshold", 1]
    return modes


def losses_of(out):
    return [json.loads(line)["loss"] for line in (out / "metrics.jsonl").read_text().splitlines()]


def run(options, work):
    run_hearth.make_checkpoint(options.hearth, CONFIG, work / "model")
    rows = options.steps * options.ranks * options.micro_batches
    run_hearth.write_rows(work / "rows.jsonl", rows, SEQ, VOCABULARY)
    table = ranks_predicted.paced_table(CONFIG, options.pace)
    (work / "table.json").write_text(json.dumps(table))
    print(f"{options.ranks} thread ranks, {options.micro_batches} micro-batches of {SEQ} tokens each "
          "a step, computation paced")
    print(f"{'method':>6} {'rate':>6} {'mode':>5} {'domain':>6} {'sent MB':>8} {'predicted ms':>13} "
          f"{'fastest ms':>11} {'predicted / fastest':>20} {'ep / this':>10}")
    for method in ("full", "lora"):
        for rate in options.rates:
            words = words_of(options, work, method)
            links = ["--rank-links", f"{rate}:{options.latency}"]
            expected, slowest = None, None
            for name, mode in modes_of(options, method).items():
                out = work / f"{method}-{rate}-{name}"
                plan = json.loads(run_hearth.call(options.hearth, "plan", *words, *mode, *links,
                                                  "--json"))
                run_hearth.call(options.hearth, "train", *words, *mode, *links, "--out", out)
                _, fastest, sent = ranks_predicted.executed(out)
                losses = losses_of(out)
                expected, slowest = expected or losses, slowest or fastest
                if losses != expected and name != "wired":
                    raise SystemExit(f"bench: {name} has other losses than ep")
                domain = plan.get("domains", [1 if name == "ep" else options.ranks])[0]
                print(f"{method:>6} {rate:>6} {name:>5} {domain:6} {sent / 1e6:8.1f} "
                      f"{1e3 * plan['time_s']:13.1f} {1e3 * fastest:11.1f} "
                      f"{plan['time_s'] / fastest:20.3f} {slowest / fastest:10.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--hearth", required=True)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--micro-batches", type=int, default=16)
    parser.add_argument("--rates", type=lambda text: text.split(","), default=["4M", "10M", "40M"])
    parser.add_argument("--latency", default="200us")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--pace", type=float, default=1)
    parser.add_argument("--work")
    options = parser.parse_args()
    options.hearth = Path(options.hearth).resolve()
    if options.work:
        Path(options.work).mkdir(parents=True, exist_ok=True)
        return run(options, Path(options.work).resolve())
    with tempfile.TemporaryDirectory(prefix="hearth-bench-") as work:
        return run(options, Path(work))


if __name__ == "__main__":
    main()
