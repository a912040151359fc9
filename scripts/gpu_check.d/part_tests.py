"""Parts: what machine this is, that programs start, and the project's own tests on the device."""
import re
import subprocess

import fatbin
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


def catch(check, part, name, words=(), **variables):
    """Runs one of the test programs; a row says how many cases passed, or why none ran."""
    if not check.place.program(name):
        check.not_run(part, f"{name} was not built")
        return
    done = check.own(name, *words, **variables)
    passed, failed, skipped, checks = counts(done.out)
    if done.timed_out:
        check.failed(part, f"cut off after {done.seconds:.0f} s")
    elif done.code < 0 or failed:
        check.failed(part, f"{failed} of {passed + failed} cases failed{first_failure(done)}")
    elif passed == 0:
        check.not_run(part, skipped_reason(done.out) if skipped else done.last())
    elif done.code not in (0, 4):  # 4: Catch2 where all were skipped
        check.failed(part, f"exit {done.code}: {done.last()}")
    else:
        check.add(part, PASSED, figure=f"{passed} cases", against=f"{checks} checks",
                  reason=f"{skipped} skipped: {skipped_reason(done.out)}" if skipped else "")


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
    catch(check, f"op tests, {name}", "test_ops", HEARTH_TEST_OP_SETS=name)
    catch(check, "op tests, own kernels", "test_ops", ["linear*,experts*,attention*"],
          HEARTH_TEST_OP_SETS=name, HEARTH_WITHOUT="cuBLASLt,CUTLASS,cuDNN")


def parity(check):
    """The recorded runs of transformers, PEFT and torch.optim.AdamW, on the device."""
    catch(check, f"parity, {check.device}", "test_parity", ["Recorded*,Training in bf16*"],
          HEARTH_TEST_DEVICES=check.device, HEARTH_PARITY_CASES=str(check.place.data("parity")),
          HEARTH_LORA_CASES=str(check.place.data("lora")),
          HEARTH_TEST_PROGRAM=str(check.place.program("hearth")))
