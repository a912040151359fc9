"""Training steps of hearth and of its peer in turn, beside the bound of the machine; see ../cpu."""
import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import run_hearth
import shapes

SEQ, LR = 256, 1e-4
RATES = ("f32", "bf16", "adamw")
INSTRUCTIONS = ("fma", "pairs", "tiles")
HERE = Path(__file__).resolve().parent


def arguments():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--hearth", required=True)
    parser.add_argument("--rates", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--shapes", type=some_of(shapes.CONFIGS), default="mixtral,olmoe,qwen3")
    parser.add_argument("--dtypes", type=some_of(("f32", "bf16")), default="f32,bf16")
    parser.add_argument("--rounds", type=at_least(1), default=2)
    parser.add_argument("--steps", type=at_least(2), default=2)
    parser.add_argument("--batch", type=at_least(1), default=8)
    parser.add_argument("--threads", type=int, default=physical_cores())
    parser.add_argument("--peer", type=some_of(("grouped_mm", "eager", "batched_mm")),
                        default="grouped_mm")
    parser.add_argument("--lora", type=at_least(1), nargs="?", const=16, default=0)
    parser.add_argument("--work")
    parser.add_argument("--keep", action="store_true")
    return parser.parse_args()


def some_of(names):
    def parse(text):
        words = text.split(",")
        if not set(words) <= set(names):
            raise argparse.ArgumentTypeError(f"expected some of {','.join(names)}")
        return words
    return parse


def at_least(least):
    def parse(text):
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a number of at least {least}")
        return int(text)
    return parse


def physical_cores():
    """Of those that this process may use, one logical CPU a core."""
    cores = set()
    for cpu in os.sched_getaffinity(0):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.add(siblings.read_text().strip() if siblings.exists() else cpu)
    return len(cores)


def cpu_name():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


class Bench:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.log = open(options.log, "w")
        self.rows = work / "rows.jsonl"
        run_hearth.write_rows(self.rows, options.batch * (options.steps + 1), SEQ, 8192)

    def note(self, kind, **fields):
        line = json.dumps({"kind": kind, "time": time.strftime("%FT%TZ", time.gmtime()), **fields})
        print(line, file=self.log, flush=True)

    def python(self, script, *words):
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.options.threads)}
        done = subprocess.run([sys.executable, HERE / script, *map(str, words)], text=True,
                              capture_output=True, env=environment)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["killed"])[-1]
            raise run_hearth.Failed(f"{script}: {last}")
        return json.loads(done.stdout.splitlines()[-1])

    def rates(self):
        """What the ops of hearth reach: GFLOP/s a type, GB/s of the sweep; and what the instructions
        alone reach, in registers."""
        rates = json.loads(subprocess.check_output(
            [self.options.rates, str(self.options.threads)], text=True))
        self.note("rates", **rates)
        return {key: rates[key] for key in (*RATES, *INSTRUCTIONS)}

    def hearth(self, shape, dtype, rank):
        out = self.work / "run"
        shutil.rmtree(out, ignore_errors=True)
        run = run_hearth.train(
            self.options.hearth, self.work / shape, self.rows, out, self.options.steps,
            "--seq-len", SEQ, "--micro-batch", self.options.batch, "--grad-accum", 1, "--lr", LR,
            "--compute-dtype", dtype, "--threads", self.options.threads, *lora_words(rank))
        shutil.rmtree(out, ignore_errors=True)
        plan = run.pop("plan")
        self.note("hearth", shape=shape, dtype=dtype, lora=rank, **run, plan_time_s=plan["time_s"],
                  plan_bytes=plan["memory"][0]["peak_bytes"])
        return {**run, "predicted": plan["time_s"]}

    def peer(self, shape, dtype, way):
        run = self.python("peer.py", self.work / shape, self.rows, "--dtype", dtype, "--impl", way,
                          "--batch", self.options.batch, "--steps", self.options.steps, "--threads",
                          self.options.threads, "--lr", LR, "--lora", self.options.lora)
        self.note("peer", shape=shape, dtype=dtype, lora=self.options.lora, impl=way, **run)
        return run

    def measure(self, shape, dtype):
        """One line of the table."""
        ways, rank = self.options.peer, self.options.lora
        own, full, peers, rates = [], [], {way: [] for way in ways}, []
        for _ in range(self.options.rounds):
            rates.append(self.rates())
            own.append(self.hearth(shape, dtype, rank))
            if rank:
                full.append(self.hearth(shape, dtype, 0))
            for way in ways:
                peers[way].append(self.peer(shape, dtype, way))
                rates.append(peers[way][-1]["rates"])
        way = min(ways, key=lambda w: median_step(peers[w]))
        return {"shape": shape, "dtype": dtype, "way": way, "step": median_step(own),
                "peer_step": median_step(peers[way]), "predicted": own[-1]["predicted"],
                "peak": max(r["peak_bytes"] for r in own),
                "peer_peak": max(r["peak_bytes"] for r in peers[way]),
                "loss": own[-1]["losses"][-1], "peer_loss": peers[way][-1]["losses"][-1],
                "full_step": median_step(full) if full else None,
                **bound(shape, dtype, rank, self.options.batch, rates)}


def median_step(runs):
    """Seconds of a step, the first of each turn left out."""
    return statistics.median(s for run in runs for s in run["seconds"][1:])


def lora_words(rank):
    return ["--method", "lora", "--lora-r", rank, "--lora-alpha", 2 * rank] if rank else []


def bound(shape, dtype, rank, batch, rates):
    """Seconds of a step if every product ran at the best rate that was measured and every update at
    the best sweep, and nothing else took time."""
    config = shapes.CONFIGS[shape]
    best = {key: max(r[key] for r in rates) for key in RATES}
    products = max(best["f32"], best["bf16"]) if dtype == "bf16" else best["f32"]
    flops = shapes.lora_step_flops(config, batch, SEQ, rank) if rank \
        else shapes.step_flops(config, batch, SEQ)
    alone = {key: max(r.get(key, 0) for r in rates) for key in INSTRUCTIONS}
    trained = shapes.adapter_parameters(config, rank) if rank else shapes.parameters(config)
    seconds = flops / products / 1e9 + 28 * trained / best["adamw"] / 1e9
    return {"bound": seconds, "gflops": products, "gbs": best["adamw"],
            "tokens": batch * SEQ,
            "alone": max(alone.values()) if dtype == "bf16" else alone["fma"]}


def against_full(line):
    if not line["full_step"]:
        return ""
    return f"; full {line['tokens'] / line['full_step']:.0f} tok/s, " \
           f"lora / full {line['full_step'] / line['step']:.2f}"


def table(lines):
    form = "{:8} {:5} {:>7} {:>7} {:>6} {:>6} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}  {}"
    text = [form.format("shape", "type", "hearth", "peer", "ratio", "% of", "% of", "bound",
                        "peak", "peer's", "step", "plan", "loss: hearth, peer"),
            form.format("", "", "tok/s", "tok/s", "", "bound", "peer's", "tok/s", "GB", "GB", "s",
                        "s", "")]
    for r in lines:
        tokens = r["tokens"]
        text.append(form.format(
            r["shape"], r["dtype"], f"{tokens / r['step']:.0f}", f"{tokens / r['peer_step']:.0f}",
            f"{r['peer_step'] / r['step']:.2f}", f"{100 * r['bound'] / r['step']:.0f}",
            f"{100 * r['bound'] / r['peer_step']:.0f}", f"{tokens / r['bound']:.0f}",
            f"{r['peak'] / 1e9:.2f}", f"{r['peer_peak'] / 1e9:.2f}", f"{r['step']:.2f}",
            f"{r['predicted']:.2f}", f"{r['loss']:.4f}, {r['peer_loss']:.4f} ({r['way']})")
            + against_full(r))
    rates = sorted({(r["dtype"], round(r["gflops"]), round(r["alone"]), round(r["gbs"], 1))
                    for r in lines})
    text.append("bound from: " + "; ".join(
        f"{d} {g} GFLOP/s (instructions alone {a}), sweep {b} GB/s" for d, g, a, b in rates))
    return "\n".join(text)


def run(options, work):
    begin = time.monotonic()
    bench = Bench(options, work)
    versions = bench.python("versions.py")
    program = run_hearth.call(options.hearth, "--version").splitlines()[0]
    bench.note("machine", cpu=cpu_name(), threads=options.threads, load=os.getloadavg(),
               hearth=program, **versions)
    print(f"{cpu_name()}, {options.threads} threads, load {os.getloadavg()[0]:.1f}; {program}; "
          f"torch {versions['torch']}, transformers {versions['transformers']}", flush=True)
    lines, failed = [], False
    for shape in options.shapes:
        try:
            run_hearth.make_checkpoint(options.hearth, shapes.CONFIGS[shape], work / shape)
            for dtype in options.dtypes:
                lines.append(bench.measure(shape, dtype))
                print("  " + table(lines[-1:]).splitlines()[2], flush=True)
        except run_hearth.Failed as error:
            failed = True
            print(f"{shape}: not measured: {error}", flush=True)
        if not options.keep:
            shutil.rmtree(work / shape, ignore_errors=True)
    if lines:
        print(table(lines))
    print(f"{time.monotonic() - begin:.0f} s in all; raw lines in {options.log}")
    return 1 if failed else 0


def main():
    options = arguments()
    Path(options.log).parent.mkdir(parents=True, exist_ok=True)
    if options.work:
        Path(options.work).mkdir(parents=True, exist_ok=True)
        sys.exit(run(options, Path(options.work)))
    with tempfile.TemporaryDirectory(prefix="hearth-bench-") as work:
        sys.exit(run(options, Path(work)))


main()
