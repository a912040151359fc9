"""Predicted and executed time of a step of several ranks; see ../ranks --predicted."""
import json
import re
import statistics

import run_hearth
import shapes

SEQ, VOCABULARY = 128, 512
THREAD_RATES = ["40M", "160M", "640M"]  # bytes/s
LATENCY = "200us"
LAB_RATES = ["100mbit", "300mbit", "1gbit"]


def config(hidden, layers, experts):
    return {**shapes.CONFIGS["qwen3"], "vocab_size": VOCABULARY, "hidden_size": hidden,
            "num_hidden_layers": layers, "num_attention_heads": hidden // 64,
            "num_key_value_heads": hidden // 128, "head_dim": 64, "num_experts": experts,
            "num_experts_per_tok": 4, "moe_intermediate_size": hidden // 2}


SIZES = {"small": config(128, 2, 8), "middle": config(256, 3, 16), "large": config(384, 3, 16)}


def table_of(directory):
    return json.loads((directory / "host.json").read_text())


def paced_table(model, pace):
    """A slow processor: tasks take far longer than on this machine, so that none comes late."""
    unit = 1e-6 * pace * (model["hidden_size"] / 128) ** 2
    rates = {("embed", "forward"): .5, ("attention", "forward"): 40, ("attention", "backward"): 80,
             ("dispatch", "forward"): 1, ("dispatch", "backward"): 1, ("combine", "forward"): 1,
             ("combine", "backward"): 1, ("experts", "forward"): 8, ("experts", "backward"): 16,
             ("head", "forward"): 20, ("embed", "backward"): .5}
    seconds = {key: rate * unit for key, rate in rates.items()}
    seconds |= {("norm", "forward"): 1e-9, ("update", "forward"): 5e-9}
    entries = [{"kind": kind, "phase": phase, "dtype": dtype, "units": [1, 1000],
                "seconds": [each, 1000 * each]}
               for (kind, phase), each in seconds.items() for dtype in ("f32", "bf16")]
    return {"format": "hearth-costs-1", "device": "host", "machine": "paced", "made": "now",
            "entries": entries, "links": []}


def words_of(options, work, table, ranks=None):
    ranks = ranks or options.ranks
    words = ["--model", work / "model", "--data", work / "rows.jsonl", "--steps", options.steps,
             "--packing", "off", "--shuffle", "off", "--seq-len", SEQ, "--micro-batch", 1,
             "--grad-accum", ranks, "--logical-shards", ranks,
             "--lr-schedule", "constant", "--warmup", 0, "--save-every", 0, "--final-state", "off",
             "--digest-every", 0, "--threads", 1, "--parallel", options.parallel, "--quiet"]
    if table:
        words += ["--devices", f"host:costs={table}"]
    return words


def executed(out):
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    sent = max(sum(n for link, n in lines[-1]["bytes"].items() if link.startswith(f"{rank}/"))
               for rank in range(len(lines[-1].get("ranks", [0]))))
    seconds = [line["time_s"] for line in lines[1:]]
    return statistics.median(seconds), min(seconds), sent


def last_json(text):
    """The document in what a launcher prints."""
    return json.loads(text[re.search(r"^\{", text, re.MULTILINE).start():])


def alone(options, work, table):
    """One rank with the sequence of one, which has no collectives: what other work on the machine adds."""
    words = words_of(options, work, table, 1)
    out = work / "alone"
    plan = json.loads(run_hearth.call(options.hearth, "plan", *words, "--json"))
    run_hearth.call(options.hearth, "train", *words, "--out", out)
    return plan, executed(out)


def threads(options, work, rate, words):
    links = ["--thread-ranks", options.ranks, "--rank-links", f"{rate}:{LATENCY}"]
    out = work / f"threads-{rate}"
    plan = json.loads(run_hearth.call(options.hearth, "plan", *words, *links, "--json"))
    run_hearth.call(options.hearth, "train", *words, *links, "--out", out)
    return plan, executed(out)


def lab(options, work, rate, words, table, in_lab):
    """The links of the lab are measured there; the paced table takes them."""
    measured = work / f"lab-{rate}"
    in_lab(options, rate, [options.hearth, "profile", "--cluster", "--model", work / "model",
                           "--threads", 1, "--budget", "6s", "--out", measured])
    links = table_of(measured)["links"]
    path = work / f"table-{rate}.json"
    path.write_text(json.dumps({**table, "links": links}))
    words = words_of(options, work, path)
    out = work / f"run-{rate}"
    plan = last_json(in_lab(options, rate, [options.hearth, "plan", *words, "--json"]))
    in_lab(options, rate, [options.hearth, "train", *words, "--out", out])
    return plan, executed(out)


def run(options, work, in_lab):
    """`in_lab(options, rate, words)` runs words in the lab and returns what they print."""
    kind = "lab" if options.lab else "thread ranks"
    rates = options.rates or (LAB_RATES if options.lab else THREAD_RATES)
    print(f"{options.ranks} {kind}, computation "
          + ("paced" if options.pace else "not paced"))
    print(f"{'size':>7} {'rate':>8} {'sent MB':>8} {'predicted ms':>13} {'median ms':>10} "
          f"{'fastest ms':>11} {'predicted / fastest':>20}")
    worst = 0
    for name in options.sizes.split(","):
        own = work / name
        own.mkdir(parents=True, exist_ok=True)
        run_hearth.make_checkpoint(options.hearth, SIZES[name], own / "model")
        run_hearth.write_rows(own / "rows.jsonl", options.steps * options.ranks, SEQ, VOCABULARY)
        table = paced_table(SIZES[name], options.pace) if options.pace else None
        path = own / "table.json" if table else None
        if table:
            path.write_text(json.dumps(table))
        for rate in ["alone", *rates]:
            words = words_of(options, own, path)
            plan, (middle, fastest, sent) = (
                alone(options, own, path) if rate == "alone"
                else lab(options, own, rate, words, table, in_lab) if options.lab
                else threads(options, own, rate, words))
            share = plan["time_s"] / fastest  # other work on the machine only adds
            if rate != "alone":
                worst = max(worst, abs(share - 1))
            print(f"{name:>7} {rate:>8} {sent / 1e6:8.1f} {1e3 * plan['time_s']:13.1f} "
                  f"{1e3 * middle:10.1f} {1e3 * fastest:11.1f} {share:20.3f}", flush=True)
    print(f"largest error: {100 * worst:.1f} %")
