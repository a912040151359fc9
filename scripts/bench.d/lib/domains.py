"""Expert domains beside expert parallelism and data parallelism; see ../domains."""
import argparse
import json
import tempfile
from pathlib import Path

import domain_runs
import domains_lab
import ranks_predicted
import run_hearth


def modes_of(options, method):
    """By name: the words of a mode. Domains of every size, ep and dp among them."""
    modes = {"ep": ["--parallel", "ep"], "dp": ["--parallel", "dp"],
             "auto": ["--parallel", "hybrid-ep"]}
    for size in range(2, options.ranks):
        if options.ranks % size == 0:
            modes[f"S={size}"] = ["--parallel", "hybrid-ep", "--domains", size]
    # Experts of other ranks are sent before each use, and not kept.
    modes["fetch"] = ["--parallel", "hybrid-ep", "--domains", options.ranks, "--kept-layers", 0]
    if method == "full":
        modes["wired"] = ["--parallel", "hybrid-ep", "--domains", options.ranks, *domain_runs.WIRED]
    return modes


def on_threads(options, work):
    options.micro_batches = options.micro_batches or 8
    table = domain_runs.prepare(options, work, domain_runs.CONFIG, options.pace)
    print(f"{options.ranks} thread ranks, {options.micro_batches} micro-batches of "
          f"{domain_runs.SEQ} tokens each a step, computation paced")
    print(f"{'method':>6} {'rate':>6} {'mode':>5} {'domain':>6} {'sent MB':>8} {'predicted ms':>13} "
          f"{'fastest ms':>11} {'predicted / fastest':>20} {'ep / this':>10}")
    for method in ("full", "lora"):
        for rate in options.rates:
            words = [*domain_runs.words_of(options, work, method, table), "--thread-ranks",
                     options.ranks]
            links = ["--rank-links", f"{rate}:{options.latency}"]
            expected, slowest = None, None
            for name, mode in domain_runs.asked_for(options, modes_of(options, method)).items():
                out = work / f"{method}-{rate}-{name}"
                plan = json.loads(run_hearth.call(options.hearth, "plan", *words, *mode, *links,
                                                  "--json"))
                run_hearth.call(options.hearth, "train", *words, *mode, *links, "--out", out)
                _, fastest, sent = ranks_predicted.executed(out)
                losses = domain_runs.losses_of(out)
                expected, slowest = expected or losses, slowest or fastest
                if losses != expected and name != "wired":
                    raise SystemExit(f"bench: {name} has other losses than ep")
                domain = plan.get("domains", [1 if name == "ep" else options.ranks])[0]
                print(f"{method:>6} {rate:>6} {name:>5} {domain:6} {sent / 1e6:8.1f} "
                      f"{1e3 * plan['time_s']:13.1f} {1e3 * fastest:11.1f} "
                      f"{plan['time_s'] / fastest:20.3f} {slowest / fastest:10.2f}", flush=True)


def run(options, work):
    asked = options.micro_batches
    for place in options.on:
        options.micro_batches = asked
        own = work / place
        own.mkdir(exist_ok=True)
        if place == "threads":
            on_threads(options, own)
        elif place == "table-5":
            domains_lab.table_5(options, own)
        else:
            domains_lab.on_lab(options, own, place)


def numbers(text):
    return [float(each) for each in text.split(",")]


def places(text):
    known = ["threads", *domains_lab.PER_HOST, "table-5"]
    for place in text.split(","):
        if place not in known:
            raise argparse.ArgumentTypeError(f"expected {', '.join(known)}, found '{place}'")
    return text.split(",")


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--hearth", required=True)
    parser.add_argument("--on", type=places, default=["threads"])
    parser.add_argument("--modes", type=lambda text: text.split(","))
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--micro-batches", type=int)
    parser.add_argument("--rates", type=lambda text: text.split(","), default=["4M", "10M", "40M"])
    parser.add_argument("--latency", default="200us")
    parser.add_argument("--gbit", type=numbers, default=[1, 2.5, 10])
    parser.add_argument("--scale", type=float, default=40)
    parser.add_argument("--links", choices=["known", "measured"], default="known")
    parser.add_argument("--rows-mb", type=numbers, default=[24, 48, 96, 192])
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
