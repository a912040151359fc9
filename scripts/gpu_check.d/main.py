"""scripts/gpu_check: options, the parts in order, their time, the table, the exit code."""
import argparse
import lzma
import os
import shutil
import signal
import sys
import tarfile
import tempfile
import time
import traceback
from pathlib import Path

import part_bench
import part_sanitizer
import part_tests
import part_training
from check import Check, Ended
from machine import Machine
from place import Place
from table import FAILED, MEASURED, NOT_RUN, PASSED, REHEARSED, Log, table

# Name, what runs, seconds at most, seconds that earlier parts leave to it, both of a call of BUDGET
# seconds. What tells most of code that never ran on a GPU comes first: whether it starts, whether each
# op and whole runs are right, whether bits survive a stop, whether accesses are clean; then speed.
BUDGET = 540
PARTS = (("machine", part_tests.machine, 30, 8),
         ("programs", part_tests.programs, 40, 10),
         ("start", part_tests.start, 60, 20),
         ("device", part_tests.device, 30, 8),
         ("ops", part_tests.ops, 120, 40),
         ("parity", part_tests.parity, 90, 40),
         ("resume", part_training.resume, 60, 30),
         ("host", part_training.against_host, 30, 12),
         ("memcheck", part_sanitizer.memcheck, 60, 30),
         ("racecheck", part_sanitizer.racecheck, 60, 30),
         ("rates", part_bench.rates, 40, 20),
         ("moe", part_bench.moe, 90, 50),
         ("step", part_bench.step, 130, 80),
         ("attention", part_bench.attention, 50, 25),
         ("bandwidth", part_bench.bandwidth, 35, 12),
         ("products", part_bench.products, 35, 12))
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM)
ROOT = Path(__file__).resolve().parents[2]


def arguments():
    parser = argparse.ArgumentParser(prog="gpu_check", add_help=False)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--only", type=names, default=[part[0] for part in PARTS])
    parser.add_argument("--skip", type=names, default=[])
    parser.add_argument("--budget", type=seconds, default=BUDGET)
    parser.add_argument("--jobs", type=programs, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--build", type=Path)
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def names(text):
    known = [part[0] for part in PARTS]
    wrong = [name for name in text.split(",") if name not in known]
    if wrong:
        raise argparse.ArgumentTypeError(f"no part {wrong[0]}; there are: {', '.join(known)}")
    return text.split(",")


def seconds(text):
    value = float(text)
    if not 0 < value < float("inf"):  # nan, too
        raise argparse.ArgumentTypeError(f"{text}: expected seconds above 0")
    return value


def programs(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected at least 1 program")
    return value


def wrong_call(text):
    """Ends the script as a wrong option does."""
    print(f"gpu_check: {text}", file=sys.stderr)
    raise SystemExit(2)


def find_place(options, work):
    """A checkout with a build, a bundle around this script, or one that is unpacked first."""
    archive = options.bundle
    here = Place(ROOT, options.build and options.build.resolve())
    if not archive and not here.program("hearth"):
        archive = ROOT / "build/gpu_bundle.tar.xz"
    if not archive:
        return here
    if not archive.exists():
        if options.bundle:
            wrong_call(f"--bundle {archive}: no such file")
        wrong_call(f"neither a build ({here.build}) nor a bundle ({archive}) is here; build the "
                   "project, or make a bundle elsewhere with scripts/gpu_bundle")
    try:
        with tarfile.open(archive) as packed:
            # Without the name of a filter newer versions of Python warn; older ones do not know it.
            packed.extractall(work, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(":")
        wrong_call(f"{archive} cannot be unpacked: {reason}")
    # The folder has the name that gpu_bundle was given.
    for mark in work.glob("*/gpu_bundle.json"):
        return Place(mark.parent, None)
    wrong_call(f"{archive} is no archive of scripts/gpu_bundle")


def log_path(options, place, rehearsing):
    if options.log:
        return options.log.resolve()
    out = os.environ.get("OUT")
    name = "gpu-rehearsal.log" if rehearsing else "gpu-check.log"
    if out and Path(out).is_dir():
        return Path(out) / name
    if (ROOT / "gpu_bundle.json").exists():
        return ROOT / name
    return ROOT / ("build/gpu_check/rehearsal.log" if rehearsing else "docs/benchmarks/gpu-check.log")


def rehearsal_device(check):
    """The virtual device, whose memory is behind links as a GPU's is; the host where this version
    does not train on it yet. Asked by one step: any other trouble shows in the parts."""
    step = part_sanitizer.command(check, "probe", *part_sanitizer.CASES[0], "virtual")
    refused = check.place.program("hearth") and "not in this version" in check.run(
        step, check.environment()).out
    return "host" if refused else "virtual"


def head(check, asked_to_rehearse):
    log, machine, place = check.log, check.machine, check.place
    log.say(f"gpu_check, {time.strftime('%F %T UTC', time.gmtime())}; hearth "
            f"{place.revision(check.environment())}, {'a bundle' if place.bundle else place.build}")
    if check.rehearsing and not asked_to_rehearse:
        log.say(f"no part ran on a GPU: {machine.why_not}")
    if check.rehearsing:
        log.say("A REHEARSAL: nothing below ran on a GPU, and no figure below is a measurement.")
    log.say(f"peers: {machine.python or machine.no_python}")


def is_run(check, name):
    """Whether a part has what it runs, and so needs time."""
    if name in ("moe", "attention", "bandwidth", "products"):
        return bool(check.place.program("bench_gpu"))
    if name == "rates":
        return bool(check.machine.python)
    if name in ("memcheck", "racecheck"):
        return check.rehearsing or bool(check.machine.tool("compute-sanitizer"))
    return True


def run_parts(check, options):
    """Each part gets its limit, as long as the least of all later ones is left. A part that uses less
    than its limit leaves the rest to the others. What the limits of all later ones leave is its own,
    too: a call of few parts cuts none off while it has time. With a small budget the first parts,
    which tell most, still get their least, and the last ones nothing."""
    chosen = [part for part in PARTS if part[0] in options.only and part[0] not in options.skip]
    for number, (name, part, limit, least) in enumerate(chosen):
        others = [later for later in chosen[number + 1:] if is_run(check, later[0])]
        kept = sum(reserve for *_, reserve in others)
        limits = sum(most for _, _, most, _ in others)
        check.part_begin = time.monotonic()
        before_others = max(check.end - kept, check.part_begin + least)
        own = max(check.part_begin + limit, check.end - limits)
        check.part_end = min(own, before_others, check.end)
        check.log.say(f"{name} ({check.log.seconds():.0f} s so far, {check.left():.0f} s at most)")
        if check.left() < 3:
            check.not_run(name, "no time left")
            continue
        try:
            part(check)
        except Ended as end:
            check.end_all()
            check.failed(name, f"cut off: {end}")
            for later, *_ in chosen[number + 1:]:
                check.not_run(later, f"not reached: {end}")
            return
        except Exception as error:  # a fault of this script is a failed row, not a missing table
            check.log.note(traceback.format_exc())
            check.failed(name, f"gpu_check itself: {type(error).__name__}: {error}")


def spare(budget):
    """Seconds of the budget that no part gets: half for what no part's limit has ended, which the
    alarm ends, half for the table. So the whole call ends within its budget."""
    return min(10.0, budget / 10)


def end_by(number, _):
    """A signal asks for the table now. So does the alarm."""
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise Ended("its time was up" if number == signal.SIGALRM else signal.Signals(number).name)


def verdict(check, asked_to_rehearse):
    """The last lines and the exit code."""
    count = {kind: sum(row.result == kind for row in check.rows)
             for kind in (PASSED, MEASURED, REHEARSED, FAILED, NOT_RUN)}
    check.log.say()
    check.log.say(table(check.rows))
    if check.rehearsing:
        check.log.say("a rehearsal: no line above is a result of a GPU")
    text = ", ".join(f"{number} {kind}" for kind, number in count.items() if number)
    check.log.say(f"{text}; {check.log.seconds():.0f} s; log: {check.log.path}")
    if count[FAILED]:
        return 1
    return 3 if check.rehearsing and not asked_to_rehearse else 0


def main():
    options = arguments()
    if options.list:
        for name, _, limit, reserve in PARTS:
            print(f"{name:10} {reserve} to {limit} s")
        return 0
    end = time.monotonic() + options.budget - spare(options.budget)
    for number in SIGNALS:
        signal.signal(number, end_by)
    signal.setitimer(signal.ITIMER_REAL, options.budget - spare(options.budget) / 2)
    work = Path(tempfile.mkdtemp(prefix="hearth-gpu-check-"))
    try:
        place = find_place(options, work)
        machine = Machine()
        rehearsing = options.rehearse or not machine.gpu
        log = Log(log_path(options, place, rehearsing))
        check = Check(place, machine, log, work, rehearsing, end)
        check.jobs = options.jobs or check.jobs
        trouble = place.choose_libraries()
        if rehearsing:
            check.device = rehearsal_device(check)
        head(check, options.rehearse)
        if trouble:
            log.say(trouble)
        run_parts(check, options)
        signal.setitimer(signal.ITIMER_REAL, 0)
        return verdict(check, options.rehearse)
    except Ended as end:
        print(f"gpu_check: ended before its first part: {end}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
