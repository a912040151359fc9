"""Runs of the hearth program for measurements."""
import json
import subprocess
import time
from pathlib import Path


class Failed(Exception):
    pass


def call(program, *words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["nothing on stderr"])[-1]
        raise Failed(f"hearth {words[0]} exited {done.returncode}: {last}")
    return done.stdout


def make_checkpoint(program, config, directory):
    """`hearth init`; nothing where the checkpoint is there already."""
    if (directory / "config.json").exists():
        return
    file = directory.parent / (directory.name + ".json")
    file.write_text(json.dumps(config))
    call(program, "init", "--config", file, "--out", directory, "--seed", 1, "--quiet")


def write_rows(path, rows, length, vocabulary):
    """Random token ids, the same at every call."""
    state = 1
    with open(path, "w") as file:
        for _ in range(rows):
            ids = []
            for _ in range(length):
                state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                ids.append((state >> 33) % vocabulary)
            file.write(json.dumps({"input_ids": ids}) + "\n")


def peak_bytes(pid):
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    return 0


def train(program, checkpoint, rows, out, steps, *words, environment=None, limit=1e9):
    """Takes `steps` steps and returns their metrics, the plan, and the seconds before the first.
    The result is not wanted: the process ends when its last step is measured, so that no time goes
    into writing gigabytes. It is ended after `limit` seconds, too."""
    command = [program, "train", "--model", checkpoint, "--data", rows, "--out", out,
               "--steps", 1000000, "--packing", "off", "--shuffle", "off", "--lr-schedule",
               "constant", "--warmup", 0, "--save-every", 0, "--final-state", "off", "--quiet",
               *words]
    metrics = Path(out) / "metrics.jsonl"
    begin = time.perf_counter()
    with open(str(out) + ".stderr", "w+") as errors:
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                   stderr=errors, env=environment)
        lines, peak, first = [], 0, None
        try:
            while (len(lines) < steps and process.poll() is None
                   and time.perf_counter() < begin + limit):
                time.sleep(0.01)
                peak = peak_bytes(process.pid) or peak
                lines = metrics.read_text().splitlines() if metrics.exists() else []
                if lines and first is None:
                    first = time.perf_counter() - begin
        finally:  # also where the caller is interrupted
            process.kill()
            process.wait()
        if len(lines) < steps:
            if time.perf_counter() >= begin + limit:
                raise Failed(f"cut off: {len(lines)} of {steps} steps in {limit:.0f} s")
            errors.seek(0)
            raise Failed((errors.read().strip().splitlines() or ["nothing on stderr"])[-1])
    taken = [json.loads(line) for line in lines[:steps]]
    plan = json.loads((Path(out) / "plan.json").read_text())
    return {"seconds": [m["time_s"] for m in taken], "losses": [m["loss"] for m in taken],
            "start_s": first - taken[0]["time_s"], "peak_bytes": peak, "plan": plan}
