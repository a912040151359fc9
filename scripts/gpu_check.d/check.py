"""What every part of a check works with: the machine, the programs, its time, and the rows it adds."""
import contextlib
import os
import signal
import subprocess
import threading
import time

from table import FAILED, MEASURED, NOT_RUN, PASSED, REHEARSED, Row

# GPU memory of one of the programs that run side by side, at least: a CUDA context with its libraries
# takes about half of it. And the part of the GPU's memory that all of them may take.
LEAST_GPU_BYTES, SHARED_PART = 3 * 2**29, 0.8


class Ended(BaseException):
    """The whole call ends now: by a signal, or because its time is up."""


class Done:
    """How a program ended."""

    def __init__(self, code, out, seconds, timed_out):
        self.code, self.out, self.seconds, self.timed_out = code, out, seconds, timed_out

    def last(self):
        lines = [line.strip() for line in self.out.splitlines() if line.strip(" =-.~")]
        return lines[-1] if lines else "it said nothing"


class Check:
    def __init__(self, place, machine, log, work, rehearsing, end):
        self.place, self.machine, self.log, self.work = place, machine, log, work
        self.rehearsing = rehearsing
        self.end = end            # of the whole call, time.monotonic()
        self.part_begin, self.part_end = time.monotonic(), end  # of the part that runs
        self.rows = []
        self.rates = {}           # ceilings that were measured: "matmul" FLOP/s, "copy" bytes/s
        self.device = "host" if rehearsing else "cuda:0"
        self.jobs = os.cpu_count() or 1   # programs side by side, at most
        self._lock = threading.RLock()
        self._running, self._ended = set(), False

    # Rows

    def add(self, part, result, **fields):
        """A result of a rehearsal is never called passed or measured, and is no part of anything."""
        if self.rehearsing and result in (PASSED, MEASURED):
            result = REHEARSED
        if self.rehearsing:
            fields = {**fields, "ratio": None, "bound": None}
        row = Row(part, result, **fields)
        with self._lock:
            self.rows.append(row)
            self.log.say("  " + "  ".join(cell for cell in row.cells() if cell))
            self.log.table_so_far(self.rows)

    def not_run(self, part, reason):
        self.add(part, NOT_RUN, reason=reason)

    def failed(self, part, reason):
        self.add(part, FAILED, reason=reason)

    # Time

    def spent(self):
        """Seconds since the part began."""
        return time.monotonic() - self.part_begin

    def left(self):
        """Seconds that the part has left."""
        return max(0.0, min(self.part_end, self.end) - time.monotonic())

    # Programs

    def own(self, name, *words, **variables):
        """Runs a program of ours, with the CUDA libraries that were found."""
        program = self.place.program(name)
        return self.run([program, *words], self.environment(**variables))

    def environment(self, **variables):
        """What is remembered of one start serves the next one of this call, and none of a later call.
        """
        variables = {"XDG_CACHE_HOME": str(self.work / "cache"), **variables}
        folders = self.machine.library_folders
        if self.machine.driver_folder:
            folders = [self.machine.driver_folder, *folders]
        return self.place.environment(folders, **variables)

    def run(self, command, environment=None, limit=None):
        """Waits no longer than the part has time; what is cut off counts as failed with its reason."""
        limit = min(limit or 1e9, self.left())
        command, begin, timed_out = [str(word) for word in command], time.monotonic(), False
        with self.started(command, environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace") as process:
            try:
                out, _ = process.communicate(timeout=max(0.1, limit))
            except subprocess.TimeoutExpired:
                timed_out = True
                self._kill(process.pid)
                out, _ = process.communicate()
        if self._ended:
            raise Ended()  # what it says tells nothing: it was killed
        seconds = time.monotonic() - begin
        self.log.note(f"# process {process.pid} said:\n"
                      + (out if len(out) < 40000 else out[:20000] + "\n[...]\n" + out[-20000:])
                      + f"# exit {process.returncode} after {seconds:.1f} s"
                      + (", cut off: its time was up" if timed_out else ""))
        return Done(process.returncode, out, seconds, timed_out)

    @contextlib.contextmanager
    def started(self, command, environment, **options):
        """A process that end_all, and the end of the block, kill with all that it has started."""
        with self._lock:
            if self._ended:
                raise Ended()
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment,
                                       cwd=self.work, start_new_session=True, **options)
            self._running.add(process.pid)
        self.log.note(f"$ {' '.join(command)}   # process {process.pid}")
        try:
            yield process
        finally:
            with self._lock:
                self._running.discard(process.pid)
                if process.poll() is None:
                    self._kill(process.pid)
            process.wait()

    @staticmethod
    def _kill(pid):
        try:
            os.killpg(pid, signal.SIGKILL)  # its children, too
        except ProcessLookupError:
            pass

    def end_all(self):
        """Nothing runs any more, and nothing starts."""
        with self._lock:
            self._ended = True
            for pid in self._running:
                self._kill(pid)

    # Side by side

    def workers(self, tasks):
        """How many programs may share the machine: no more than it has cores, nor than find room on
        the GPU."""
        room = int(SHARED_PART * self.machine.gpu_bytes / LEAST_GPU_BYTES)
        return max(1, min(self.jobs, tasks, room if self.machine.gpu_bytes else tasks))

    def gpu_memory(self, tasks):
        """Bytes of the GPU for each of them, as the program takes it; none without a GPU."""
        if not self.machine.gpu_bytes or self.rehearsing:
            return ""
        return str(int(SHARED_PART * self.machine.gpu_bytes / self.workers(tasks)))

    def side_by_side(self, tasks):
        """Calls each function of the list, several at a time, the first ones first. Returns their
        results in order; a task that raised gives its exception."""
        results, waiting = [None] * len(tasks), iter(enumerate(tasks))

        def work():
            while True:
                with self._lock:
                    number, task = next(waiting, (None, None))
                if task is None:
                    return
                try:
                    results[number] = task()
                except (Exception, Ended) as error:
                    results[number] = error
        threads = [threading.Thread(target=work, daemon=True)
                   for _ in range(self.workers(len(tasks)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.1)  # a signal gets its turn
        return results
