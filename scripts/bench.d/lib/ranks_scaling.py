"""Steps of several ranks with a device each, beside one rank; see ../ranks --scaling."""
import json
import statistics

import run_hearth
from ranks_predicted import SEQ, SIZES, VOCABULARY, paced_table

SHARDS = 4  # sequences of a step, whatever the ranks


def words_of(options, work, out, *more):
    return ["--model", work / "model", "--data", work / "rows.jsonl", "--out", out,
            "--steps", options.steps, "--packing", "off", "--shuffle", "off", "--seq-len", SEQ,
            "--micro-batch", 1, "--grad-accum", SHARDS, "--logical-shards", SHARDS,
            "--lr-schedule", "constant", "--warmup", 0, "--save-every", 0, "--final-state", "off",
            "--digest-every", 0, "--threads", 1, "--quiet",
            "--devices", f"virtual:{options.link}costs={work / 'table.json'}", *more]


def step_of(options, work, name, *more):
    """Seconds of a step, losses, tasks that took longer than their pace, bytes between ranks."""
    out = work / name
    run_hearth.call(options.hearth, "train", *words_of(options, work, out, *more))
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    sent = sum(n for link, n in lines[-1]["bytes"].items()
               if link.startswith("0/host->") and link.count("/host") == 2)
    late = sum(line.get("paced_late", 0) for line in lines[1:])
    return (statistics.median(line["time_s"] for line in lines[1:]),
            [line["loss"] for line in lines], late, sent)


def run(options, work):
    for size in options.sizes.split(","):
        own = work / size
        own.mkdir(parents=True, exist_ok=True)
        run_hearth.make_checkpoint(options.hearth, SIZES[size], own / "model")
        run_hearth.write_rows(own / "rows.jsonl", options.steps * SHARDS, SEQ, VOCABULARY)
        (own / "table.json").write_text(json.dumps(paced_table(SIZES[size], options.pace)))
        alone, losses, late, _ = step_of(options, own, "one")
        print(f"{size}: one rank {1e3 * alone:.0f} ms a step of {SHARDS} sequences; "
              f"{late} tasks late")
        print(f"{'mode':>5} {'ranks':>6} {'sent MB':>8} {'ideal ms':>9} {'step ms':>8} "
              f"{'speedup':>8} {'of ideal %':>11} {'late':>5}")
        for mode in ("dp", "ep"):
            for ranks in (2, 4):
                links = ["--rank-links", options.rates[0]] if options.rates else []
                step, found, late, sent = step_of(options, own, f"{mode}-{ranks}", "--parallel",
                                                  mode, "--thread-ranks", ranks, *links)
                if found != losses:
                    raise run_hearth.Failed(f"{mode} on {ranks} ranks has other losses: "
                                            f"{found}, {losses}")
                ideal = alone / ranks
                print(f"{mode:>5} {ranks:>6} {sent / 1e6:8.1f} {1e3 * ideal:9.0f} "
                      f"{1e3 * step:8.0f} {alone / step:8.2f} {100 * ideal / step:11.0f} "
                      f"{late:>5}", flush=True)
