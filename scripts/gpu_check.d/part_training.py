"""Parts: a training on the device that is stopped and resumed gives the bits of one that is not; and
its losses are those of the host."""
import hashlib
import json
import shutil
import signal
import subprocess
import time

from table import PASSED

# What a step computes; times and memory differ from run to run.
KEYS = ("step", "loss", "aux_loss", "grad_norm", "lr", "tokens", "trained_tokens")
FORMS = {"full, f32": ["--compute-dtype", "f32"],
         "full, bf16": ["--compute-dtype", "bf16"],
         "lora, bf16": ["--compute-dtype", "bf16", "--method", "lora", "--lora-r", "8"]}
STOPPED = 75  # exit code of a run that a signal ended, its state saved


class Wrong(Exception):
    pass


def documents(path, out):
    """Paragraphs of a text as rows, as scripts/quickstart makes them."""
    paragraphs = [p for p in path.read_text().split("\n\n") if len(p) > 40]
    out.write_text("".join(json.dumps({"text": p.strip()}) + "\n" for p in paragraphs))


def prepare(check):
    """The quick start's model and data, made once."""
    base = check.work / "base"
    if not base.exists():
        quickstart = check.place.data("quickstart")
        done = check.own("hearth", "init", "--config", quickstart / "config.json", "--out", base,
                         "--seed", "1", "--quiet")
        if done.timed_out:
            shutil.rmtree(base, ignore_errors=True)
            raise Wrong("cut off: hearth init did not end in time")
        if done.code != 0:
            raise Wrong("hearth init: " + done.last())
        documents(check.place.data("text"), check.work / "documents.jsonl")
    return base


def words(check, out, form, steps, device):
    base = prepare(check)
    return ["train", "--model", base, "--data", check.work / "documents.jsonl",
            "--data", check.place.data("quickstart") / "chat.jsonl", "--out", check.work / out,
            "--seq-len", "256", "--micro-batch", "2", "--grad-accum", "2", "--steps", str(steps),
            "--lr", "2e-3", "--warmup", "4", "--save-every", str(steps // 3), "--quiet",
            "--devices", device, *FORMS[form]]


def metrics(check, out):
    path = check.work / out / "metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [{key: line[key] for key in KEYS} for line in lines]


def digests(check, out):
    """Of every file of the result."""
    folder = check.work / out / ("adapter" if (check.work / out / "adapter").exists() else "model")
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.iterdir()) if path.is_file()}


def environment(check):
    return check.environment(HEARTH_RATES="assumed")


def stop_after(check, command, out, lines):
    """Starts a run and stops it, as Ctrl-C does, once it has taken so many steps."""
    command = [str(word) for word in command]
    path = check.work / out / "metrics.jsonl"
    errors = check.work / (out + ".stderr")
    with open(errors, "w") as file, check.started(command, environment(check), stdout=file,
                                                  stderr=file) as process:
        while process.poll() is None and check.left() > 0:
            if path.exists() and path.read_bytes().count(b"\n") >= lines:
                process.send_signal(signal.SIGTERM)
                break
            time.sleep(0.005)
        try:
            code = process.wait(timeout=max(0.1, check.left()))
        except subprocess.TimeoutExpired:
            raise Wrong("cut off: the stopped run did not end in time")
    said = errors.read_text()
    check.log.note(said + f"# exit {code}")
    if code != STOPPED:
        last = (said.strip().splitlines() or ["it said nothing"])[-1]
        raise Wrong(f"the stopped run ended with {code} instead of {STOPPED}: {last}")
    return path.read_bytes().count(b"\n")


def finished(check, command, what):
    done = check.run(command, environment(check))
    if done.timed_out:
        raise Wrong(f"cut off: {what} did not end in time")
    if done.code != 0:
        raise Wrong(f"{what} ended with {done.code}: {done.last()}")


def resume_one(check, form, steps):
    """Returns how many steps were compared, and after how many the stop came."""
    hearth, name = check.place.program("hearth"), form.replace(", ", "-")
    whole, parts = f"whole-{name}", f"parts-{name}"
    finished(check, [hearth, *words(check, whole, form, steps, check.device)], "the whole run")
    command = [hearth, *words(check, parts, form, steps, check.device)]
    stopped = stop_after(check, command, parts, steps // 2)
    finished(check, command, "the resumed run")
    expected, actual = metrics(check, whole), metrics(check, parts)
    if len(expected) != steps or len(actual) != steps:
        raise Wrong(f"{len(expected)} and {len(actual)} lines of metrics instead of {steps}")
    for one, other in zip(expected, actual):
        if one != other:
            keys = ", ".join(key for key in KEYS if one[key] != other[key])
            raise Wrong(f"step {one['step']} differs in {keys} after the stop at {stopped}")
    if not expected[-1]["loss"] < expected[0]["loss"]:
        raise Wrong(f"the loss did not fall: {expected[0]['loss']} to {expected[-1]['loss']}")
    if digests(check, whole) != digests(check, parts):
        raise Wrong(f"files of the result differ after the stop at {stopped}")
    return stopped, expected


def resume_form(check, form, steps):
    part = f"train and resume, {form}"
    if check.left() < 5:
        check.not_run(part, "no time left")
        return
    try:
        stopped, lines = resume_one(check, form, steps)
    except Wrong as wrong:
        check.failed(part, str(wrong))
        return
    check.add(part, PASSED, figure=f"{steps} steps", against="uninterrupted",
              reason=f"stopped after {stopped}, same bits; loss {lines[0]['loss']:.3f} -> "
                     f"{lines[-1]['loss']:.3f}")


def all_of(check, part, tasks):
    """Side by side; a fault of this script shows."""
    try:
        prepare(check)
    except Wrong as wrong:
        check.failed(part, str(wrong))
        return
    for result in check.side_by_side(tasks):
        if isinstance(result, BaseException):
            raise result


def resume(check):
    steps = 12 if check.rehearsing else 90
    all_of(check, "train and resume",
           [lambda form=form: resume_form(check, form, steps) for form in FORMS])


def against_host(check):
    """The same first steps on the host: one model, two op sets. Only a device other than the host
    is worth it."""
    if check.device == "host":
        check.not_run("losses against the host", "the host is what a rehearsal runs on")
        return
    all_of(check, "losses against the host",
           [lambda form=form, bound=bound: against_host_form(check, form, bound)
            for form, bound in (("full, f32", 1e-4), ("lora, bf16", 5e-3))])


def against_host_form(check, form, bound):
    hearth, steps = check.place.program("hearth"), 6
    part = f"losses against the host, {form}"
    try:
        for out, device in (("near", check.device), ("far", "host")):
            command = [hearth, *words(check, f"{out}-{form[:4]}", form, steps, device)]
            finished(check, command, f"the run on {device}")
    except Wrong as wrong:
        check.failed(part, str(wrong))
        return
    pairs = zip(metrics(check, f"near-{form[:4]}"), metrics(check, f"far-{form[:4]}"))
    worst = max(abs(a["loss"] - b["loss"]) / b["loss"] for a, b in pairs)
    if worst <= bound:
        check.add(part, PASSED, figure=f"{worst:.1e}", against=f"{bound:.0e}",
                  reason=f"{steps} steps")
    else:
        check.failed(part, f"losses differ by {worst:.1e}, allowed {bound:.0e}")
