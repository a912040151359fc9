"""Parts: compute-sanitizer over whole training steps of tiny models, which run every kernel."""
import json
import re
import shutil

from table import PASSED

# Form of the step: options of the run. The models are recorded parity cases.
CASES = (("base", ["--compute-dtype", "f32"]),
         ("qwen2", ["--compute-dtype", "bf16"]),
         ("olmoe", ["--compute-dtype", "bf16", "--method", "lora", "--lora-r", "4"]),
         ("mixtral", ["--compute-dtype", "f32", "--method", "lora", "--lora-r", "4"]))
LIBRARIES = "cuBLASLt,CUTLASS,cuDNN"
FOUND = 86  # exit code of the sanitizer where it found something


def command(check, out, case, options, device):
    folder = check.place.data("parity") / case
    seq_len = json.loads((folder / "case.json").read_text())["train"]["seq_len"]
    shutil.rmtree(check.work / out, ignore_errors=True)
    return [check.place.program("hearth"), "train", "--model", folder / "model", "--data",
            folder / "rows.jsonl", "--out", check.work / out, "--steps", "1", "--micro-batch", "2",
            "--grad-accum", "1", "--seq-len", str(seq_len), "--packing", "off", "--shuffle", "off",
            "--final-state", "off", "--quiet", "--devices", device, *options]


def sanitize(check, tool):
    part = f"compute-sanitizer {tool}"
    program = check.machine.tool("compute-sanitizer")
    if not check.rehearsing and not program:
        check.not_run(part, "compute-sanitizer is not here")
        return
    prefix = [program, "--tool", tool, "--error-exitcode", str(FOUND), "--print-limit", "20"]
    # Own kernels alone: the libraries' many kernels would take the time, and are not ours to check.
    environment = check.environment(HEARTH_RATES="assumed", HEARTH_WITHOUT=LIBRARIES)

    def task(case, options):
        words = command(check, f"{tool}-{case}", case, options, check.device)
        return lambda: check.run(words if check.rehearsing else prefix + words, environment)
    results = check.side_by_side([task(*case) for case in CASES])
    through, slow = 0, []
    for (case, _), done in zip(CASES, results):
        if isinstance(done, BaseException):
            raise done
        if done.timed_out:
            slow.append(case)
        elif "Device not supported" in done.out:
            check.not_run(part, "compute-sanitizer: Device not supported")
            return
        elif done.code != 0:
            first = re.search(r"=+ (Invalid|Error|Race|WARN|Program hit).*", done.out)
            check.failed(part, f"{case}: exit {done.code}: "
                         + (first.group(0).strip("= ") if first else done.last()))
            return
        else:
            through += 1
    if not through:
        check.not_run(part, "not one step ended in its time")
        return
    check.add(part, PASSED, figure=f"{through} steps", against=f"{len(CASES)} cases",
              reason=f"no time for {', '.join(slow)}" if slow else
              "the steps alone, without the sanitizer" if check.rehearsing else "")


def memcheck(check):
    sanitize(check, "memcheck")


def racecheck(check):
    sanitize(check, "racecheck")
