"""Learning rates of whole runs, against transformers' schedules; and what TensorBoard reads of them.

    schedules.py HEARTH_PROGRAM WORK_DIRECTORY
"""
import json
import subprocess
import sys
from pathlib import Path

import torch
from transformers.optimization import get_scheduler, get_wsd_schedule

from hearth import Failed, Hearth
from result_templates import CONFIG

RATE, STEPS = 3e-4, 24
WARMUPS = (0, 1, 5)
CASES = [("constant", {}), ("linear", {}), ("cosine", {}), ("cosine_with_min_lr", {"least": 0.1}),
         ("cosine_with_min_lr", {"least": 0.35}), ("inverse_sqrt", {}), ("wsd", {"least": 0}),
         ("wsd", {"least": 0.2})]


def expected(schedule, warmup, least):
    """The rate of each step."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=RATE)
    if schedule == "wsd":
        decay = -(-STEPS // 10)
        course = get_wsd_schedule(optimizer, num_warmup_steps=warmup, num_decay_steps=decay,
                                  num_training_steps=STEPS, decay_type="linear",
                                  min_lr_ratio=least)
    else:
        name = "constant_with_warmup" if schedule == "constant" else schedule
        specific = {"min_lr_rate": least} if schedule == "cosine_with_min_lr" else {}
        course = get_scheduler(name, optimizer, num_warmup_steps=warmup, num_training_steps=STEPS,
                               scheduler_specific_kwargs=specific)
    rates = []
    for _ in range(STEPS):
        rates.append(course.get_last_lr()[0])
        optimizer.step()
        course.step()
    return rates


def check(hearth, work, schedule, warmup, least):
    out = work / f"{schedule}-{warmup}-{least}"
    words = [] if least is None else ["--min-lr-ratio", least]
    hearth.call("train", "--model", work / "model", "--data", work / "rows.jsonl", "--out", out,
                "--steps", STEPS, "--seq-len", 16, "--grad-accum", 1, "--lr", RATE, "--lr-schedule",
                schedule, "--warmup", warmup, "--eval-every", 5, "--eval-data",
                work / "rows.jsonl", *words)
    rates = [json.loads(line)["lr"] for line in (out / "metrics.jsonl").read_text().splitlines()]
    wanted = expected(schedule, warmup, least)
    if len(rates) != len(wanted):
        return f"{len(rates)} steps instead of {len(wanted)}", out
    for step, (a, b) in enumerate(zip(rates, wanted)):
        if abs(a - b) > 1e-12 * RATE + 1e-9 * abs(b):
            return f"step {step + 1}: {a} instead of {b}", out
    return None, out


def main(program, work):
    work = Path(work)
    work.mkdir(parents=True, exist_ok=True)
    hearth = Hearth(program)
    (work / "config.json").write_text(json.dumps(CONFIG))
    (work / "rows.jsonl").write_text("".join(
        json.dumps({"text": f"the row {n} of a text"}) + "\n" for n in range(40)))
    hearth.call("init", "--config", work / "config.json", "--out", work / "model")
    passed, failed, runs = 0, 0, []
    for schedule, options in CASES:
        for warmup in WARMUPS:
            least = options.get("least")
            try:
                wrong, out = check(hearth, work, schedule, warmup, least)
                runs.append(out)
            except Failed as error:
                wrong = str(error)
            passed, failed = passed + (wrong is None), failed + (wrong is not None)
            least_text = "" if least is None else f", least {least}"
            print(f"{'ok' if wrong is None else 'FAILED'} {schedule}, warm-up {warmup}{least_text}"
                  + (f": {wrong}" if wrong else ""))
    reader = Path(__file__).with_name("tensorboard_read.py")
    read = subprocess.run([sys.executable, reader, *runs], capture_output=True, text=True)
    ok = read.returncode == 0
    passed, failed = passed + ok, failed + (not ok)
    lines = (read.stdout if read.stdout else read.stderr).strip().splitlines() or ["nothing"]
    print(f"{'ok' if ok else 'FAILED'} TensorBoard: {lines[-1]}")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
