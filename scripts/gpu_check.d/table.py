"""Results: one row a part of a check, one table at the end, all of it in the log."""
import threading
import time

# What a row can say. Only `passed` and `measured` speak of a GPU.
PASSED, MEASURED, FAILED = "passed", "measured", "FAILED"
REHEARSED, NOT_RUN = "rehearsed", "not run"


class Row:
    """`figure` and `against` are texts with their units; `ratio` and `bound` (a part of 1) numbers."""

    def __init__(self, part, result, figure="", against="", ratio=None, bound=None, reason=""):
        self.part, self.result, self.figure, self.against = part, result, figure, against
        self.ratio, self.bound, self.reason = ratio, bound, reason

    def cells(self):
        result = f"{self.result}: {self.reason}" if self.reason else self.result
        return [self.part, result if self.result == NOT_RUN else self.result, self.figure, self.against,
                "" if self.ratio is None else f"{self.ratio:.2f}",
                "" if self.bound is None else f"{100 * self.bound:.0f}",
                self.reason if self.result != NOT_RUN else ""]


def table(rows):
    head = ["part", "result", "figure", "against", "ratio", "% of bound", ""]
    lines = [head] + [row.cells() for row in rows]
    # What was not run tells its reason across the other columns.
    short = [line for line in lines if not line[1].startswith(NOT_RUN)]
    widths = [max((len(line[i]) for line in (short if i else lines)), default=0) for i in range(6)]
    text = []
    for line in lines:
        if line[1].startswith(NOT_RUN):
            text.append(f"{line[0]:{widths[0]}}  {line[1]}")
            continue
        cells = [f"{cell:>{width}}" if 2 <= i <= 5 else f"{cell:{width}}"
                 for i, (cell, width) in enumerate(zip(line, widths))]
        text.append("  ".join(cells + line[6:]).rstrip())
    return "\n".join(text)


class Log:
    """What is printed goes to the file, too; what programs say goes to the file alone."""

    def __init__(self, path):
        self.path, self.begin, self.lock = path, time.monotonic(), threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = open(path, "w")

    def say(self, text=""):
        print(text, flush=True)
        self.note(text)

    def note(self, text):
        with self.lock:
            self.file.write(text + "\n")
            self.file.flush()

    def table_so_far(self, rows):
        """The file beside the log that has the table even of a call that was killed."""
        temporary = self.path.with_suffix(".table.tmp")
        temporary.write_text(table(rows) + "\n")
        temporary.replace(self.path.with_suffix(".table"))

    def seconds(self):
        return time.monotonic() - self.begin
