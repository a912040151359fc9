"""Parts: what machine this is, that programs start, and the project's own tests on the device."""
import json
import re
import subprocess

import fatbin
import part_sanitizer
from check import Ended
from table import FAILED, NOT_RUN, PASSED


def machine(check):
    """The GPU, its driver, and what the program will open."""
    m = check.machine
    if not m.gpu:
        check.not_run("GPU", m.why_not)
    else:
        figure = f"{len(m.names)} GPU" + ("s" if len(m.names) > 1 else "")
        check.add("GPU", PASSED, figure=figure,
                  reason=f"{'; '.join(m.names)}; driver for CUDA {m.cuda_version}")
        check.log.note(m.smi())
    found = [path for path in m.libraries() if "not found" not in path]
    missing = [path for path in m.libraries() if "not found" in path]
    for path in m.libraries():
        check.log.say("  " + path)
    if found:
        check.add("CUDA libraries", PASSED, figure=f"{len(found)} of {len(found) + len(missing)}",
                  reason=", ".join(missing))
    else:
        check.not_run("CUDA libraries", ", ".join(missing) + ": own kernels alone")


def programs(check):
    """Every program starts, and holds code for GPUs. In a rehearsal with nothing in the environment,
    as on a machine that has none of what the project is built with."""
    environment = check.environment()
    if check.rehearsing:
        environment = {key: environment[key] for key in ("LD_LIBRARY_PATH",) if key in environment}
    there = check.place.programs()
    for name, path in there.items():
        words, code = (["--version"], 0) if name == "hearth" else (["--list-tests"], 0)
        if name == "bench_gpu":
            words, code = ["--usage"], 2
        done = check.run([path, *words], environment, limit=30)
        if done.code != code:
            check.failed(f"{name} starts", done.last())
            return
    code = " ".join(fatbin.architectures(there["hearth"]))
    if not code and not check.rehearsing:
        check.failed("programs start", "they do, but are built without CUDA")
        return
    check.add("programs start", PASSED, figure=str(len(there)),
              reason="code for " + (code or "no GPU: built without CUDA"))


def skipped_reason(out):
    """What the first skipped test case said."""
    found = re.search(r"SKIPPED:.*?(?:explicitly with message:\s*)(.*?)\n", out, re.S)
    return found.group(1).strip() if found else "skipped"


def counts(out):
    """Passed, failed and skipped test cases of Catch2's summary, and the assertions."""
    passed = failed = skipped = checks = 0
    done = re.search(r"All tests passed \((\d+) assertions? in (\d+) test cases?\)", out)
    if done:
        checks, passed = map(int, done.groups())
    line = re.search(r"^test cases: (.*)$", out, re.M)
    if line:
        for number, word in re.findall(r"(\d+) (passed|failed|skipped)", line.group(1)):
            if word == "passed":
                passed = int(number)
            elif word == "failed":
                failed = int(number)
            else:
                skipped = int(number)
        line = re.search(r"^assertions: (\d+)", out, re.M)
        checks = int(line.group(1)) if line else 0
    return passed, failed, skipped, checks


def first_failure(done):
    """Where it was, and what the program or an exception said there."""
    place = re.search(r"^(\S+:\d+): FAILED", done.out, re.M)
    if not place:
        return "; " + done.last()
    said = re.search(r"^\s*(hearth: .*)|exception with message:\s*(.*)",
                     done.out[place.start():], re.M)
    return f", the first at {place.group(1)}" + (f": {said.group(1) or said.group(2)}" if said else "")


class Outcome:
    """What one run of a test program says: how many cases passed, or what is wrong."""

    def __init__(self, label, done):
        self.label, self.seconds = label, done.seconds
        self.passed, failed, self.skipped, self.checks = counts(done.out)
        self.skipped_reason = skipped_reason(done.out) if self.skipped else ""
        self.wrong, self.nothing, self.cut_off = "", "", done.timed_out
        if done.timed_out:
            self.wrong = f"cut off after {done.seconds:.0f} s"
        elif done.code < 0 or failed:
            self.wrong = f"{failed} of {self.passed + failed} cases failed{first_failure(done)}"
        elif self.passed == 0 and done.code in (0, 4):  # 4: Catch2 where all were skipped
            self.nothing = self.skipped_reason or done.last()
        elif self.passed == 0 and done.code == 2:  # Catch2 where no case has the name
            self.nothing = done.last()
        elif done.code not in (0, 4):
            self.wrong = f"exit {done.code}: {done.last()}"


def catch(check, part, name, words=(), **variables):
    """Runs one of the test programs; a row says how many cases passed, or why none ran."""
    catch_all(check, part, name, [("", words)], **variables)


def catch_all(check, part, name, jobs, **variables):
    """The same for several runs side by side, each with its label and words. A run that fails has a
    row of its own."""
    if not check.place.program(name):
        check.not_run(part, f"{name} was not built")
        return
    variables = {"HEARTH_RATES": "assumed", **variables}
    ran = []

    def run_one(label, words):
        if check.left() < 1:
            return
        outcome = Outcome(label, check.own(name, *words, **variables))
        ran.append(outcome)
        if label and outcome.wrong and not outcome.cut_off:
            check.failed(f"{part}: {label}", outcome.wrong)
    try:
        results = check.side_by_side([lambda job=job: run_one(*job) for job in jobs])
    except Ended:
        check.end_all()
        check.failed(part, f"cut off, {summary(check, ran, jobs)}")
        raise
    for fault in results:
        if fault is not None:
            raise fault
    passed, wrong = sum(outcome.passed for outcome in ran), [o for o in ran if o.wrong]
    if len(ran) < len(jobs) or any(outcome.cut_off for outcome in ran):
        check.failed(part, f"cut off after {check.spent():.0f} s" + (
            f", {summary(check, ran, jobs)}" if len(jobs) > 1 else ""))
    elif wrong:
        check.failed(part, wrong[0].wrong if len(jobs) == 1 else summary(check, ran, jobs))
    elif not passed:
        check.not_run(part, ran[0].nothing)
    else:
        skipped = [outcome for outcome in ran if outcome.skipped]
        notes = [f"{sum(o.skipped for o in skipped)} skipped: {skipped[0].skipped_reason}"
                 if skipped else "", summary(check, ran, jobs) if len(jobs) > 1 else ""]
        check.add(part, PASSED, figure=f"{passed} cases",
                  against=f"{sum(outcome.checks for outcome in ran)} checks",
                  reason="; ".join(filter(None, notes)))


def summary(check, ran, jobs):
    """Of runs side by side: how many were right, and what they took."""
    right = [outcome for outcome in ran if not outcome.wrong]
    seconds = [outcome.seconds for outcome in ran] or [0]
    return (f"{len(right)} of {len(jobs)} runs right, {check.workers(len(jobs))} at a time, "
            f"{max(seconds):.1f} s the longest, {sum(seconds):.1f} s in all")


def device(check):
    catch(check, "device tests", "test_device", ["*real GPU*"] if not check.rehearsing else [])


def ops(check):
    """The one test definition of each op. A back end that is not there fails, so look first."""
    name = "cuda" if not check.rehearsing else "cuda-emulated"
    if check.place.program("test_ops"):
        probe = subprocess.run([check.place.program("test_ops"), "back ends: found by name", "-s"],
                               env=check.environment(HEARTH_TEST_OP_SETS=name),
                               capture_output=True, text=True, errors="replace")
        if "no op set" in probe.stdout:
            message = re.search(r"no op set.*", probe.stdout).group(0)
            check.add("op tests", NOT_RUN if check.rehearsing else FAILED, reason=message)
            return
    # The references compute on the CPU, so shards share the cores.
    shards = check.workers(16)
    for part, words, without in (("", [], {}), (", own kernels", ["linear*,experts*,attention*"],
                                               {"HEARTH_WITHOUT": part_sanitizer.LIBRARIES})):
        jobs = [(f"shard {i}", [*words, "--shard-count", str(shards), "--shard-index", str(i),
                                "--allow-running-no-tests"]) for i in range(shards)]
        catch_all(check, f"op tests, {name}{part}", "test_ops", jobs, HEARTH_TEST_OP_SETS=name,
                  **without)


def start(check):
    """One step of a tiny model: whether the program starts on the device at all. The first start also
    compares the libraries with own kernels; the second one remembers that."""
    part = "first start"
    if not check.place.program("hearth"):
        check.not_run(part, "hearth was not built")
        return
    seconds, said = [], []
    for turn in ("first", "second"):
        words = part_sanitizer.command(check, f"start-{turn}", *part_sanitizer.CASES[0], check.device)
        words = [word for word in words if word != "--quiet"]  # what it says of libraries is wanted
        done = check.run(words, check.environment(HEARTH_RATES="assumed"))
        if done.timed_out or done.code != 0:
            check.failed(part, "cut off" if done.timed_out else f"exit {done.code}: {done.last()}")
            return
        seconds.append(done.seconds)
        said.append(done.out)
    check.add(part, PASSED, figure=f"{seconds[0]:.2f} s", against=f"{seconds[1]:.2f} s the second")
    calls = [re.search(r"ops call (.*)", out) for out in said]
    refused = re.findall(r"\S+ is not used: .*", said[0])
    for line in refused:
        check.failed("library check", line)
    if not calls[0]:
        check.not_run("library check", "no library was found: own kernels alone")
    elif not refused and "an earlier start" not in calls[1].group(1):
        check.failed("library check", "the second start did not remember it")
    elif not refused:
        check.add("library check", PASSED, figure=f"{seconds[0] - seconds[1]:.2f} s", reason=
                  calls[0].group(1))


# The programs of tests/parity by kind of case: its folder, the test's name, whether a case has bf16.
PARITY = (("parity", "Recorded runs of transformers and AdamW are repeated", False),
          ("lora", "Recorded adapters of PEFT and AdamW are repeated", False),
          ("parity", "Training in bf16 strays from f64 no farther than torch does", True))


def parity_jobs(check):
    """One run a case: its label, and the words that choose it."""
    jobs = []
    for folder, test, bf16 in PARITY:
        for path in sorted(check.place.data(folder).glob("*/case.json")):
            computes = json.loads(path.read_text())["train"].get("compute_dtype")
            if (computes == "bf16") == bf16 or folder == "lora":
                jobs.append((f"{folder} {path.parent.name}", [test, "-c", path.parent.name]))
    return jobs


def parity(check):
    """The recorded runs of transformers, PEFT and torch.optim.AdamW, on the device: a case starts the
    program up to five times, and all cases side by side."""
    jobs = parity_jobs(check)
    memory = {"HEARTH_TEST_GPU_MEMORY": check.gpu_memory(len(jobs))}
    catch_all(check, f"parity, {check.device}", "test_parity", jobs,
              HEARTH_TEST_DEVICES=check.device,
              HEARTH_PARITY_CASES=str(check.place.data("parity")),
              HEARTH_LORA_CASES=str(check.place.data("lora")),
              HEARTH_TEST_PROGRAM=str(check.place.program("hearth")),
              **{key: value for key, value in memory.items() if value})
