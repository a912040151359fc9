"""Zebra beside expert parallelism, data parallelism and a pipeline, on unequal devices; see ../zebra."""
import argparse
import json
import math
import statistics
import tempfile
from pathlib import Path

import run_hearth
import shapes
import zebra_pictures

SEQ, VOCABULARY, TOP_K = 128, 512, 2
EXPERTS = 4  # of a layer, for each expert rank, as Mixtral-D1 has on six

# Of a case: attention ranks, expert ranks; how much longer attention and experts take at the older
# device; attention at the newer device, over the same tokens' experts at the newer device.
# HeterMoE, section 2.3 and Table 3: experts 1.25 times longer at a V100, 7.0 times at a T4. Attention 3.7
# times longer at a V100 with 64 K tokens, and 9.9 to 13.6 times at a T4 with 4 K to 64 K. That a V100
# takes 2.0 times longer with 4 K is what the paper's speed of EP there implies. Between lengths: linear
# in their logarithm. Attention takes the same share at an L40S as at an A40.
A40_EXPERTS, L40S_EXPERTS = 1.25, 7.0


def between(short, long, thousands):
    return short + (long - short) * math.log2(thousands / 4) / 4


def share(thousands):
    """Attention at an A40 over experts at an A40: the line through Table 3 (docs/simulate.md)."""
    return (0.371 + 0.0309 * thousands) * A40_EXPERTS


CASES = {f"A40+V100 {s}K": (2, 2, between(2.0, 3.7, s), A40_EXPERTS, share(s)) for s in (4, 8, 16)}
CASES |= {f"L40S+T4 {s}K": (1, 3, between(9.9, 13.6, s), L40S_EXPERTS, share(s)) for s in (4, 16)}


def config(layers, case):
    return {**shapes.CONFIGS["qwen3"], "vocab_size": VOCABULARY, "hidden_size": 64,
            "num_hidden_layers": layers, "num_attention_heads": 2, "num_key_value_heads": 1,
            "head_dim": 32, "num_experts": EXPERTS * CASES[case][1],
            "num_experts_per_tok": TOP_K, "moe_intermediate_size": 32,
            "initializer_range": 0.002}  # small, or all tokens would choose nearly the same experts


def table(attention, expert):
    """Seconds of a token in attention and of a row at an expert. All else takes little."""
    seconds = {kind: 1e-8 for kind in ("embed", "dispatch", "combine", "head", "norm", "update")}
    seconds |= {"attention": attention, "experts": expert}
    entries = [{"kind": kind, "phase": phase, "dtype": dtype, "units": [1, 1000],
                "seconds": [each * factor, 1000 * each * factor]}
               for kind, each in seconds.items() for dtype in ("f32", "bf16")
               for phase, factor in (("forward", 1), ("backward", 2))]
    return {"format": "hearth-costs-1", "device": "host", "machine": "paced", "made": "now",
            "entries": entries, "links": []}


def write_tables(options, case, work):
    attention_ranks, expert_ranks, slow_attention, slow_experts, of_experts = CASES[case]
    rows = SEQ * TOP_K * attention_ranks / expert_ranks  # of an expert rank, a micro-batch each
    slow = 1e-3 * options.unit / rows
    fast = slow / slow_experts
    attention = of_experts * fast * TOP_K
    tables = {"new": table(attention, fast), "old": table(attention * slow_attention, slow)}
    paths = {}
    for name, content in tables.items():
        paths[name] = work / f"{name}.json"
        paths[name].write_text(json.dumps(content))
    return paths


def words_of(options, case, work):
    ranks = sum(CASES[case][:2])
    return ["--model", work / "model", "--data", work / "rows.jsonl", "--steps", options.steps,
            "--packing", "off", "--shuffle", "off", "--seq-len", SEQ, "--micro-batch", 1,
            "--grad-accum", options.micro_batches * ranks, "--lr-schedule", "constant", "--warmup", 0,
            "--save-every", 0, "--final-state", "off", "--digest-every", 0, "--threads", 1,
            "--recompute", "none", "--quiet"]


def modes_of(case, tables):
    """By name: the words of a mode, and those of the plan that predicts it."""
    attention_ranks, expert_ranks = CASES[case][:2]
    ranks = attention_ranks + expert_ranks
    new, old = (f"host:costs={tables[name]}" for name in ("new", "old"))
    threads = ["--thread-ranks", ranks, "--logical-shards", ranks]
    each = ["--devices", new, "--rank-devices",
            f"0-{attention_ranks - 1}={new};{attention_ranks}-{ranks - 1}={old}"]
    zebra = ["--thread-ranks", ranks, "--logical-shards", ranks, "--parallel", "zebra",
             "--attention-ranks", attention_ranks, *each]
    line = ",".join(f"virtual:costs={tables[name]}" for name in
                    ["new"] * attention_ranks + ["old"] * expert_ranks)
    modes = {"zebra": zebra, "no shift": [*zebra, "--expert-shift", "off"]}
    # All ranks wait for the slowest, so a plan of slow ranks alone predicts these.
    modes = {name: (words, words) for name, words in modes.items()}
    for name in ("ep", "dp"):
        words = [*threads, "--parallel", name]
        modes[name] = ([*words, *each], [*words, "--devices", old])
    pipeline = ["--parallel", "pipeline", "--devices", line]
    modes["pipeline"] = (pipeline, pipeline)
    return modes


def run_mode(options, words, mode, out):
    run_words, plan_words = mode
    plan = json.loads(run_hearth.call(options.hearth, "plan", *words, *plan_words, "--json"))
    run_hearth.call(options.hearth, "train", *words, *run_words, "--out", out)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    last = lines[-1].get("utilisation", {})
    return {"predicted": plan["time_s"], "losses": [line["loss"] for line in lines],
            "executed": statistics.median(line["time_s"] for line in lines[1:]),
            "late": max(line.get("paced_late", 0) for line in lines[1:]),
            "use": [last.get(role) for role in ("attention", "experts")],
            "planned": [plan.get("zebra", {}).get(role) for role in ("attention", "experts")],
            "shift": plan.get("expert_shift")}


def percent(use):
    return "/".join("-" if share is None else f"{100 * share:.0f}" for share in use)


def run_case(options, case, work):
    run_hearth.make_checkpoint(options.hearth, config(options.layers, case), work / "model")
    words = words_of(options, case, work)
    rows = options.steps * options.micro_batches * sum(CASES[case][:2])
    run_hearth.write_rows(work / "rows.jsonl", rows, SEQ, VOCABULARY)
    found = {}
    for name, mode in modes_of(case, write_tables(options, case, work)).items():
        found[name] = run_mode(options, words, mode, work / name.replace(" ", "-"))
    ep = found["ep"]
    for name, of in found.items():
        same = all(math.isclose(a, b, rel_tol=1e-5) for a, b in zip(of["losses"], ep["losses"]))
        if not same or (name != "pipeline" and of["losses"] != ep["losses"]):
            raise SystemExit(f"bench: {case}: {name} has other losses than ep")
        print(f"{case:>13} {name:>9} {1e3 * of['predicted']:13.0f} {1e3 * of['executed']:12.0f} "
              f"{of['predicted'] / of['executed']:20.2f} {ep['predicted'] / of['predicted']:15.2f} "
              f"{ep['executed'] / of['executed']:14.2f} {percent(of['planned']):>13} "
              f"{percent(of['use']):>12} {of['late']:>5}  "
              f"{'' if of['shift'] is None else ' '.join(map(str, of['shift']))}", flush=True)
    return found


def judge(results):
    """The marks of zebra."""
    missed = []
    for case, found in results.items():
        ep, zebra = found["ep"], found["zebra"]
        says = ep["predicted"] / zebra["predicted"]
        is_so = ep["executed"] / zebra["executed"]
        if says >= 1.2 and is_so < 1.15:
            missed.append(f"{case}: {says:.2f} times ep predicted, {is_so:.2f} executed")
        if says >= 1 and is_so < 0.97:
            missed.append(f"{case}: slower than ep, {is_so:.2f}")
        error = zebra["predicted"] / zebra["executed"] - 1
        if abs(error) > 0.1:
            missed.append(f"{case}: the prediction is off by {100 * error:.0f} %")
    print("\n".join(["marks that are missed:", *missed]) if missed else "all marks are met")


def run(options, work):
    print(f"{options.layers} layers, a logical shard per rank, {options.micro_batches} micro-batches of "
          f"each; the experts of a layer take {options.unit} ms forward at an expert rank")
    print(f"{'devices':>13} {'mode':>9} {'predicted ms':>13} {'executed ms':>12} "
          f"{'predicted / executed':>20} {'ep / this pred.':>15} {'ep / this':>14} "
          f"{'planned use %':>13} {'use of roles':>12} {'late':>5}  shift")
    results = {}
    for number, case in enumerate(options.cases):
        own = work / f"case-{number}"
        own.mkdir(parents=True, exist_ok=True)
        results[case] = run_case(options, case, own)
    judge(results)


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--hearth", required=True)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--micro-batches", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--unit", type=float, default=12)
    parser.add_argument("--cases", type=lambda text: text.split(","), default=list(CASES))
    parser.add_argument("--work")
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    options.hearth = Path(options.hearth).resolve()
    if options.pictures:
        return zebra_pictures.write(options.hearth, options.pictures)
    if options.work:
        Path(options.work).mkdir(parents=True, exist_ok=True)
        return run(options, Path(options.work).resolve())
    with tempfile.TemporaryDirectory(prefix="hearth-bench-") as work:
        return run(options, Path(work))


if __name__ == "__main__":
    main()
