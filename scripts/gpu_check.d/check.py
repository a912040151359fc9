"""What every part of a check works with: the machine, the programs, its time, and the rows it adds."""
import os
import signal
import subprocess
import time

from table import FAILED, MEASURED, NOT_RUN, PASSED, REHEARSED, Row


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
        self.part_end = end       # of the part that runs
        self.rows = []
        self.rates = {}           # ceilings that were measured: "matmul" FLOP/s, "copy" bytes/s
        self.device = "host" if rehearsing else "cuda:0"

    # Rows

    def add(self, part, result, **fields):
        """A result of a rehearsal is never called passed or measured, and is no part of anything."""
        if self.rehearsing and result in (PASSED, MEASURED):
            result = REHEARSED
        if self.rehearsing:
            fields = {**fields, "ratio": None, "bound": None}
        self.rows.append(Row(part, result, **fields))
        self.log.say("  " + "  ".join(cell for cell in self.rows[-1].cells() if cell))

    def not_run(self, part, reason):
        self.add(part, NOT_RUN, reason=reason)

    def failed(self, part, reason):
        self.add(part, FAILED, reason=reason)

    # Time

    def left(self):
        """Seconds that the part has left."""
        return max(0.0, min(self.part_end, self.end) - time.monotonic())

    # Programs

    def own(self, name, *words, **variables):
        """Runs a program of ours, with the CUDA libraries that were found."""
        program = self.place.program(name)
        return self.run([program, *words], self.environment(**variables))

    def environment(self, **variables):
        folders = self.machine.library_folders
        if self.machine.driver_folder:
            folders = [self.machine.driver_folder, *folders]
        return self.place.environment(folders, **variables)

    def run(self, command, environment=None, limit=None):
        """Waits no longer than the part has time; what is cut off counts as failed with its reason."""
        limit = min(limit or 1e9, self.left())
        command = [str(word) for word in command]
        self.log.note("$ " + " ".join(command))
        begin = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace",
                                   env=environment, cwd=self.work, start_new_session=True)
        timed_out = False
        try:
            out, _ = process.communicate(timeout=max(0.1, limit))
        except subprocess.TimeoutExpired:
            timed_out = True
            os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
        seconds = time.monotonic() - begin
        self.log.note(out if len(out) < 40000 else out[:20000] + "\n[...]\n" + out[-20000:])
        self.log.note(f"# exit {process.returncode} after {seconds:.1f} s"
                      + (", cut off: its time was up" if timed_out else ""))
        return Done(process.returncode, out, seconds, timed_out)
