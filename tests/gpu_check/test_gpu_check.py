"""Tests of scripts/gpu_check without a GPU: what it may claim, what it reads from programs, and that
it always comes to its table. Standard library alone.

usage: test_gpu_check.py PATH_OF_THE_SOURCES
"""
import io
import os
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(sys.argv.pop(1)).resolve()
sys.path[:0] = [str(ROOT / "scripts/gpu_check.d"), str(ROOT / "scripts/bench.d/lib")]
import check  # noqa: E402
import fatbin  # noqa: E402
import machine  # noqa: E402
import main  # noqa: E402
import part_bench  # noqa: E402
import part_tests  # noqa: E402
import part_training  # noqa: E402
from table import FAILED, MEASURED, NOT_RUN, PASSED, REHEARSED, Log, Row, table  # noqa: E402


class FakePlace:
    """Programs are shell scripts that say what a test tells them to."""

    def __init__(self, folder, scripts):
        self.folder, self.bundle, self.build = folder, False, folder
        for name, text in scripts.items():
            path = folder / name
            path.write_text("#!/bin/sh\n" + text)
            path.chmod(0o755)

    def program(self, name):
        path = self.folder / name
        return path if path.exists() else None

    def programs(self):
        return {path.name: path for path in sorted(self.folder.iterdir())}

    def data(self, name):
        return self.folder / name

    def peers(self):
        return ROOT / "scripts/bench.d/lib"

    def environment(self, folders, **more):
        return {"PATH": "/usr/bin:/bin", **more}


class FakeMachine:
    gpu, names, why_not, python, no_python = False, [], "no driver", None, "no Python with torch"
    library_folders, driver_folder, gpu_bytes = [], None, 0

    def tool(self, name):
        return None


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        silence = mock.patch("sys.stdout", io.StringIO())
        silence.start()
        self.addCleanup(silence.stop)

    def make(self, rehearsing=False, seconds=20, **scripts):
        shutil.rmtree(self.folder / "bin", ignore_errors=True)
        (self.folder / "bin").mkdir()
        log = Log(self.folder / "log")
        self.addCleanup(log.file.close)
        return check.Check(FakePlace(self.folder / "bin", scripts), FakeMachine(), log, self.folder,
                           rehearsing, time.monotonic() + seconds)


class Claims(Case):
    def test_a_rehearsal_neither_passes_nor_measures(self):
        c = self.make(rehearsing=True)
        for result in (PASSED, MEASURED, FAILED, NOT_RUN):
            c.add("part", result, ratio=2.0, bound=0.9)
        self.assertEqual([row.result for row in c.rows], [REHEARSED, REHEARSED, FAILED, NOT_RUN])
        self.assertEqual({(row.ratio, row.bound) for row in c.rows}, {(None, None)})

    def test_tests_that_were_all_skipped_were_not_run(self):
        c = self.make(test_ops="echo 'x.cpp:1: SKIPPED:\nexplicitly with message:\n  no GPU'\n"
                               "echo 'test cases: 1 | 1 skipped'\nexit 4")
        part_tests.catch(c, "ops", "test_ops")
        self.assertEqual((c.rows[0].result, c.rows[0].reason), (NOT_RUN, "no GPU"))

    def test_a_program_that_is_not_there_was_not_run(self):
        c = self.make()
        part_tests.catch(c, "ops", "test_ops")
        self.assertEqual(c.rows[0].result, NOT_RUN)

    def test_an_op_set_that_is_missing_fails_on_a_gpu(self):
        c = self.make(test_ops="echo \"no op set 'cuda' in this build\"; exit 1")
        part_tests.ops(c)
        self.assertEqual(c.rows[0].result, FAILED)

    def test_failures_and_crashes_fail(self):
        for said in ("echo 'a.cpp:7: FAILED:'\necho 'test cases: 3 | 2 passed | 1 failed'; exit 1",
                     "kill -SEGV $$", "echo 'All tests passed (3 assertions in 1 test case)'; exit 9"):
            with self.subTest(said):
                c = self.make(test_ops=said)
                part_tests.catch(c, "ops", "test_ops")
                self.assertEqual(c.rows[0].result, FAILED)

    def test_passed_with_counts(self):
        c = self.make(test_ops="echo 'All tests passed (12 assertions in 3 test cases)'")
        part_tests.catch(c, "ops", "test_ops")
        self.assertEqual((c.rows[0].result, c.rows[0].figure), (PASSED, "3 cases"))

    def test_without_bench_gpu_nothing_is_measured(self):
        c = self.make()
        for part in (part_bench.rates, part_bench.moe, part_bench.attention, part_bench.bandwidth,
                     part_bench.products, part_bench.step):
            part(c)
        self.assertEqual({row.result for row in c.rows}, {NOT_RUN})

    LAYER = ('echo \'{"device": "H100"}\'\necho \'{"measurement": "moe layer forward and backward bf16", '
             '"shape": "8192x2048x768x128x8", "seconds": %s, "flops": 1.85e12}\'')

    def test_a_figure_stands_beside_its_peer_its_bound_and_its_goal(self):
        shape = dict(tokens=8192, hidden=2048, width=768, experts=128, top_k=8)
        theirs = [{"way": way, "shape": shape, "seconds": s} for way, s in (("a", 8e-3), ("b", 6e-3))]
        for seconds, said in ((3e-3, ": reached"), (4e-3, "NOT reached")):
            with self.subTest(said):
                c = self.make(bench_gpu=self.LAYER % seconds)
                c.machine.names, c.rates = ["NVIDIA H100"], {"matmul": 800e12, "copy": 3e12}
                with mock.patch.object(part_bench, "peer", return_value=(theirs, "")):
                    part_bench.moe(c)
                row = c.rows[0]
                self.assertEqual(row.result, MEASURED)
                self.assertAlmostEqual(row.ratio, 6e-3 / seconds)
                least = max(1.85e12 / 800e12, part_bench.moe_bytes(shape) / 3e12)
                self.assertAlmostEqual(row.bound, least / seconds)
                self.assertIn(said, row.reason)
                self.assertIn("torch b", row.against)

    def test_attention_in_bf16_alone_stands_beside_the_peer(self):
        line = ('echo \'{"measurement": "attention_%s %s", "shape": "1x8192x32x4x128", "seconds": %s, '
                '"flops": 1e12}\'\n')
        c = self.make(bench_gpu="".join(
            line % values for values in (("forward", "bf16", 2e-3), ("backward", "bf16", 4e-3),
                                         ("forward", "f32", 2e-2), ("backward", "f32", 4e-2))))
        c.machine.names, c.rates = ["NVIDIA H100"], {"matmul": 800e12, "copy": 3e12}
        shape = dict(batch=1, seq=8192, heads=32, kv_heads=4, head_dim=128)
        theirs = [{"way": "cudnn", "shape": shape, "seconds": 3e-3}]
        with mock.patch.object(part_bench, "peer", return_value=(theirs, "")) as asked:
            part_bench.attention(c)
        self.assertEqual(asked.call_args.args[2], [shape])
        rounded, exact = c.rows
        self.assertAlmostEqual(rounded.ratio, 0.5)
        self.assertIn("NOT reached", rounded.reason)
        self.assertIsNone(exact.ratio)
        self.assertNotIn("torch", exact.against)

    def test_a_benchmark_without_a_gpu_or_that_fails(self):
        for code, result in ((3, NOT_RUN), (1, FAILED)):
            c = self.make(bench_gpu=f"echo why; exit {code}")
            part_bench.moe(c)
            self.assertEqual((len(c.rows), c.rows[0].result), (1, result))

    def test_exit_codes(self):
        for rehearsing, asked, result, code in ((False, False, PASSED, 0), (False, False, FAILED, 1),
                                                (True, True, PASSED, 0), (True, False, PASSED, 3),
                                                (True, False, FAILED, 1)):
            with self.subTest(rehearsing=rehearsing, asked=asked, result=result):
                c = self.make(rehearsing=rehearsing)
                c.add("part", result)
                self.assertEqual(main.verdict(c, asked), code)


class Time(Case):
    def test_what_is_cut_off_failed_and_does_not_hold_up_the_rest(self):
        c = self.make(seconds=1, test_ops="echo begun; sleep 60 & sleep 60")
        begin = time.monotonic()
        part_tests.catch(c, "ops", "test_ops")
        self.assertLess(time.monotonic() - begin, 10)
        self.assertEqual(c.rows[0].result, FAILED)
        self.assertIn("cut off", c.rows[0].reason)

    def test_a_step_whose_model_is_not_made_in_time_was_cut_off(self):
        c = self.make(rehearsing=True, seconds=1, hearth="sleep 60")
        part_bench.step(c)
        self.assertEqual([(row.result, row.reason) for row in c.rows],
                         [(FAILED, "cut off: hearth init did not end in time")])

    def test_a_fault_of_a_part_is_a_row(self):
        c = self.make()
        options = mock.Mock(only=["boom", "next"], skip=[], budget=540)
        parts = (("boom", lambda check: 1 / 0, 5, 1), ("next", lambda check: check.add("b", PASSED), 5, 1))
        with mock.patch.object(main, "PARTS", parts):
            main.run_parts(c, options)
        self.assertEqual([row.result for row in c.rows], [FAILED, PASSED])

    def test_parts_without_time_are_named(self):
        c = self.make(seconds=0)
        main.run_parts(c, mock.Mock(only=["moe"], skip=[], budget=540))
        self.assertEqual((c.rows[0].part, c.rows[0].result), ("moe", NOT_RUN))

    def test_reserves_fit_the_budget(self):
        reserves = sum(reserve for *_, reserve in main.PARTS)
        self.assertLess(reserves + main.spare(main.BUDGET), main.BUDGET)

    def test_the_whole_call_ends_within_its_budget(self):
        alarms = []
        with mock.patch.object(main.signal, "setitimer", lambda _, seconds: alarms.append(seconds)), \
                mock.patch.object(main.signal, "signal"), \
                mock.patch.object(main, "find_place", side_effect=check.Ended("the test")), \
                mock.patch("sys.argv", ["gpu_check", "--budget", "100"]), \
                mock.patch("sys.stderr", io.StringIO()):
            self.assertEqual(main.main(), 1)
        self.assertEqual(alarms, [95])

    def test_a_small_budget_is_for_the_first_parts(self):
        c = self.make(seconds=54)
        limits = []
        parts = tuple((str(i), lambda check: limits.append(check.left()), 500, 60) for i in range(8))
        options = mock.Mock(only=[p[0] for p in parts], skip=[], budget=54)
        with mock.patch.object(main, "PARTS", parts):
            main.run_parts(c, options)
        self.assertEqual(len(limits), 8)  # none takes any time
        self.assertAlmostEqual(limits[0], 54, delta=1)
        c = self.make(seconds=100)
        limits.clear()
        with mock.patch.object(main, "PARTS", parts[:2]):
            main.run_parts(c, options)
        self.assertAlmostEqual(limits[0], 60, delta=1)

    def test_a_part_gets_what_the_limits_of_the_others_leave(self):
        c = self.make(seconds=500)
        limits = []
        parts = tuple((name, lambda check: limits.append(check.left()), 100, 10) for name in "abc")
        for only, expected in (("abc", [300, 400, 500]), ("a", [500]), ("ab", [400, 500])):
            limits.clear()
            with mock.patch.object(main, "PARTS", parts):
                main.run_parts(c, mock.Mock(only=list(only), skip=[], budget=500))
            self.assertEqual(len(limits), len(expected))
            for limit, seconds in zip(limits, expected):
                self.assertAlmostEqual(limit, seconds, delta=5)

    def test_parts_that_cannot_run_keep_no_time(self):
        c = self.make(seconds=100)  # there is no bench_gpu
        limits = []
        parts = (("ops", lambda check: limits.append(check.left()), 500, 10),
                 ("moe", part_bench.moe, 90, 50), ("host", lambda check: None, 30, 20))
        with mock.patch.object(main, "PARTS", parts):
            main.run_parts(c, mock.Mock(only=["ops", "moe", "host"], skip=[], budget=100))
        self.assertAlmostEqual(limits[0], 80, delta=1)

    def test_a_signal_ends_what_runs_and_names_what_was_not_reached(self):
        c = self.make(test_ops="sleep 60 & sleep 60", test_device="echo never")
        parts = (("ops", lambda check: part_tests.catch_all(
            check, "ops", "test_ops", [("a", []), ("b", [])]), 50, 1),
            ("device", part_tests.device, 5, 1))
        signal.signal(signal.SIGALRM, main.end_by)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        begin = time.monotonic()
        try:
            with mock.patch.object(main, "PARTS", parts):
                main.run_parts(c, mock.Mock(only=["ops", "device"], skip=[], budget=540))
        finally:
            for number in main.SIGNALS:
                signal.signal(number, signal.SIG_DFL)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertEqual([(row.part, row.result) for row in c.rows],
                         [("ops", FAILED), ("ops", FAILED), ("device", NOT_RUN)])
        self.assertIn("0 of 2 runs", c.rows[0].reason)
        self.assertIn("not reached", c.rows[2].reason)
        while c._running and time.monotonic() < begin + 10:
            time.sleep(0.05)
        self.assertEqual(c._running, set())

    def test_the_table_is_there_before_the_end(self):
        c = self.make()
        c.add("early", PASSED, figure="1 x")
        self.assertIn("early", (self.folder / "log.table").read_text())
        c.failed("late", "why")
        self.assertIn("late", (self.folder / "log.table").read_text())


class SideBySide(Case):
    def test_runs_share_the_machine_and_their_cases_are_added(self):
        c = self.make(test_ops="sleep 0.5; echo 'All tests passed (12 assertions in 3 test cases)'")
        c.jobs = 8
        begin = time.monotonic()
        part_tests.catch_all(c, "ops", "test_ops", [(str(i), []) for i in range(8)])
        self.assertLess(time.monotonic() - begin, 3)
        self.assertEqual([(row.result, row.figure, row.against) for row in c.rows],
                         [(PASSED, "24 cases", "96 checks")])

    def test_no_more_at_a_time_than_asked(self):
        c = self.make(test_ops="""
mkdir "$1" 2> /dev/null || { echo 'a.cpp:1: FAILED:'; exit 1; }
sleep 0.1; rmdir "$1"; echo 'All tests passed (1 assertion in 1 test case)'""")
        c.jobs = 1
        part_tests.catch_all(c, "ops", "test_ops", [(str(i), [self.folder / "lock"]) for i in range(5)])
        self.assertEqual([row.result for row in c.rows], [PASSED])

    def test_a_gpu_has_room_for_so_many(self):
        c = self.make()
        c.jobs, c.machine = 64, FakeMachine()
        c.machine.gpu_bytes = 12 << 30
        self.assertEqual(c.workers(100), 6)
        self.assertEqual(c.workers(3), 3)
        self.assertEqual(int(c.gpu_memory(100)), int(0.8 * (12 << 30) / 6))
        c.machine.gpu_bytes = 1 << 28
        self.assertEqual(c.workers(100), 1)

    def test_a_run_that_fails_has_a_row_of_its_own(self):
        c = self.make(test_ops="""
if [ "$1" = 2 ]; then echo 'b.cpp:9: FAILED:'; echo 'test cases: 3 | 2 passed | 1 failed'; exit 1; fi
echo 'All tests passed (4 assertions in 2 test cases)'""")
        part_tests.catch_all(c, "ops", "test_ops", [(f"case {i}", [str(i)]) for i in range(4)])
        self.assertEqual([(row.part, row.result) for row in c.rows],
                         [("ops: case 2", FAILED), ("ops", FAILED)])
        self.assertIn("b.cpp:9", c.rows[0].reason)
        self.assertIn("3 of 4 runs right", c.rows[1].reason)

    def test_runs_without_time_are_counted_as_cut_off(self):
        c = self.make(seconds=2, test_ops="sleep 60")
        c.jobs = 2
        part_tests.catch_all(c, "ops", "test_ops", [(str(i), []) for i in range(9)])
        self.assertEqual([row.result for row in c.rows], [FAILED])
        self.assertIn("cut off", c.rows[0].reason)
        self.assertIn("0 of 9", c.rows[0].reason)

    def test_a_shard_without_cases_is_fine(self):
        c = self.make(test_ops="""
if [ "$1" = 1 ]; then echo 'No tests ran'; exit 0; fi
echo 'All tests passed (4 assertions in 2 test cases)'""")
        part_tests.catch_all(c, "ops", "test_ops", [(str(i), [str(i)]) for i in range(3)])
        self.assertEqual([(row.result, row.figure) for row in c.rows], [(PASSED, "4 cases")])

    def test_every_case_of_parity_is_one_run(self):
        c = self.make()
        c.place.data = lambda name: ROOT / "tests/golden" / name
        jobs = part_tests.parity_jobs(c)
        cases = [path for folder in ("parity", "lora")
                 for path in (ROOT / "tests/golden" / folder).iterdir() if path.is_dir()]
        self.assertEqual(len(jobs), len(cases))
        self.assertEqual(len({label for label, _ in jobs}), len(cases))
        words = dict(jobs)
        self.assertIn("bf16", words["parity bf16_compute_12"][0])
        self.assertEqual(words["lora olmoe-fused"][1:], ["-c", "olmoe-fused"])
        text = (ROOT / "tests/parity/test_recorded.cpp").read_text()
        text += (ROOT / "tests/parity/test_recorded_lora.cpp").read_text()
        for test, *_ in words.values():
            self.assertIn(f'TEST_CASE("{test}")', text)


class Start(Case):
    CASE = '{"train": {"seq_len": 8}}'

    def rows(self, said, second=None):
        second = said if second is None else second
        c = self.make(hearth=f"""
[ "$HEARTH_RATES" = assumed ] || exit 9
if [ -e began ]; then echo '{second}'; else touch began; echo '{said}'; fi""")
        case = self.folder / "bin/parity/base"
        case.mkdir(parents=True)
        (case / "case.json").write_text(self.CASE)
        part_tests.start(c)
        return c.rows

    def test_libraries_are_checked_once(self):
        rows = self.rows("cuda:0: ops call cuBLASLt 13", "cuda:0: ops call cuBLASLt 13; an earlier start"
                         " checked them")
        self.assertEqual([(row.part, row.result) for row in rows],
                         [("first start", PASSED), ("library check", PASSED)])

    def test_a_check_that_is_not_remembered_fails(self):
        self.assertEqual(self.rows("cuda:0: ops call cuBLASLt 13")[1].result, FAILED)

    def test_a_library_that_is_wrong_fails(self):
        rows = self.rows("cuda:0: cuDNN is not used: results of attention in bf16 differ\n"
                         "cuda:0: ops call cuBLASLt 13")
        self.assertEqual(rows[1].result, FAILED)
        self.assertIn("cuDNN is not used: results", rows[1].reason)

    def test_without_libraries_nothing_is_claimed(self):
        self.assertEqual(self.rows("nothing")[1].result, NOT_RUN)


class Resume(Case):
    """A program that writes metrics; `differs` makes the resumed run's last loss another one."""
    HEARTH = """
case "$1" in init) mkdir -p base; exit 0 ;; esac
while [ $# -gt 0 ]; do [ "$1" = --out ] && out=$2; [ "$1" = --steps ] && steps=$2; shift; done
mkdir -p "$out/model"; echo weights > "$out/model/w"
stop=; trap 'stop=yes' TERM
while :; do
  n=$(cat "$out/metrics.jsonl" 2> /dev/null | wc -l)
  [ "$n" -ge "$steps" ] && exit 0
  n=$((n + 1)); loss=$(expr 100 - $n); case "$resumed$out" in *%s*) [ $n = "$steps" ] && loss=7 ;; esac
  echo "{\\"step\\": $n, \\"loss\\": $loss, \\"aux_loss\\": 0, \\"grad_norm\\": 1, \\"lr\\": 1,
 \\"tokens\\": 5, \\"trained_tokens\\": 5}" | tr -d '\\n' >> "$out/metrics.jsonl"
  echo >> "$out/metrics.jsonl"
  sleep 0.02
  [ -n "$stop" ] && exit 75
done
"""

    def rows(self, differs, seconds=60, **programs):
        c = self.make(rehearsing=True, seconds=seconds,
                      **{"hearth": self.HEARTH % differs, **programs})
        (self.folder / "bin/text").write_text("a paragraph that is longer than forty characters, so\n\n")
        (self.folder / "bin/quickstart").mkdir()
        part_training.resume(c)
        return c.rows

    def test_a_base_model_that_is_not_made_in_time_is_said_so(self):
        rows = self.rows("none", seconds=1, hearth="mkdir -p base; sleep 60")
        self.assertEqual([(row.result, row.reason) for row in rows],
                         [(FAILED, "cut off: hearth init did not end in time")])
        self.assertFalse((self.folder / "base").exists())

    def test_the_same_bits(self):
        self.assertEqual({row.result for row in self.rows("none")}, {REHEARSED})

    def test_other_bits_are_seen(self):
        rows = self.rows("parts")
        self.assertEqual({row.result for row in rows}, {FAILED})
        self.assertIn("step 12 differs in loss", rows[0].reason)


class WrongCalls(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def refused(self, script, *words):
        """What the script says: one line and exit code 2, for a mistake of who calls it."""
        done = subprocess.run([ROOT / "scripts" / script, *words], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        lines = done.stderr.splitlines()
        self.assertTrue(lines[-1].startswith(f"{script}: "), done.stderr)
        return lines

    def test_a_bundle_that_is_none(self):
        for name in ("nothing", "folder", "text", "cut.tar.xz", "other.tar"):
            with self.subTest(name):
                path = self.folder / name
                if name == "folder":
                    path.mkdir()
                elif name == "text":
                    path.write_text("no archive")
                elif name == "cut.tar.xz":
                    (self.folder / "noise").write_bytes(os.urandom(100000))
                    with tarfile.open(path, "w:xz") as packed:
                        packed.add(self.folder / "noise", "gpu_bundle/noise")
                    path.write_bytes(path.read_bytes()[:50000])
                elif name == "other.tar":
                    with tarfile.open(path, "w") as packed:
                        packed.add(ROOT / "README.md", "gpu_bundle/README.md")
                lines = self.refused("gpu_check", "--bundle", str(path))
                self.assertEqual(len(lines), 1)
                self.assertIn(str(path), lines[0])

    def test_options_of_gpu_check(self):
        for words in (["--bundle"], ["--only", "none"], ["--nothing"], ["--budget", "-5"],
                      ["--budget", "nan"], ["--jobs", "-3"]):
            with self.subTest(words):
                self.refused("gpu_check", *words)

    def test_options_of_gpu_bundle(self):
        for words in (["--limit"], ["--limit", ""], ["--limit", "x"], ["--limit", "0"],
                      ["--limit", "--build"], ["--build"], ["--build", "/nothing/here"],
                      ["--nothing"], [""], [str(self.folder)]):
            with self.subTest(words):
                lines = self.refused("gpu_bundle", *words)
                self.assertEqual(len(lines), 1)
                self.assertIn(next(filter(None, words), "empty"), lines[0])


class FakeDriver:
    """libcuda, as ctypes calls it: numbers are given back through references."""

    def __init__(self, status, count):
        self.status, self.count = status, count

    def cuInit(self, flags):
        return self.status

    def cuDeviceGetCount(self, count):
        count._obj.value = self.count

    def cuDriverGetVersion(self, version):
        version._obj.value = 13020

    def cuDeviceGet(self, device, number):
        device._obj.value = number

    def cuDeviceGetName(self, name, size, device):
        name.value = b"A GPU"

    def cuDeviceGetAttribute(self, value, attribute, device):
        value._obj.value = {75: 9, 76: 0, 16: 132}[attribute]

    def cuDeviceTotalMem_v2(self, memory, device):
        memory._obj.value = 80 << 30


class Finding(unittest.TestCase):
    def find(self, driver):
        with mock.patch("ctypes.CDLL", side_effect=driver):
            return machine.Machine()

    def test_a_gpu(self):
        found = self.find([FakeDriver(0, 2)])
        self.assertTrue(found.gpu)
        self.assertEqual(found.names, 2 * ["A GPU, sm_90, 132 units, 80.0 GiB"])
        self.assertEqual(found.cuda_version, "13.2")

    def test_no_gpu_says_why(self):
        self.assertIn("no driver", self.find(OSError("libcuda.so.1: not there")).why_not)
        self.assertIn("error 100", self.find([FakeDriver(100, 0)]).why_not)
        self.assertIn("no GPU", self.find([FakeDriver(0, 0)]).why_not)
        self.assertFalse(self.find([FakeDriver(0, 0)]).gpu)


class Reading(unittest.TestCase):
    def test_architectures(self):
        def entry(kind, arch, flags):
            return struct.pack("<HHIQIIHHIIIQQQ", kind, 0, 64, 8, 0, 0, 0, 0, arch, 0, 0, flags, 0, 0) + b"." * 8
        body = entry(2, 80, 0x11) + entry(2, 90, 0x100011) + entry(1, 90, 0x8011)
        binary = struct.pack("<IHHQ", fatbin.MAGIC, 1, 16, len(body)) + body
        names = [name for _, name in fatbin.entries(binary + b"\0" * 8 + binary)]
        self.assertEqual(names, 2 * ["sm_80", "sm_90a", "compute_90"])

    def test_no_program_no_architecture(self):
        self.assertEqual(fatbin.architectures(__file__), {})

    def test_counts(self):
        self.assertEqual(part_tests.counts("test cases: 70 | 68 passed | 1 failed | 1 skipped\n"
                                           "assertions: 74 | 70 passed | 4 failed"), (68, 1, 1, 74))

    def test_table_has_every_row(self):
        text = table([Row("a", PASSED, figure="1 x", ratio=1.5, bound=0.5),
                      Row("bb", NOT_RUN, reason="no GPU")])
        self.assertIn("1.50", text)
        self.assertIn("50", text)
        self.assertIn("bb    not run: no GPU", text)


if __name__ == "__main__":
    unittest.main()
