#!/usr/bin/env python3
"""Holds the documents to the tree.

    tests/docs/check_docs.py ROOT [--hearth PROGRAM] [PAGE...]

PROGRAM is asked for what pages quote of its output. Without it, this check alone is left out, with
a line that says so. PAGE: report on these pages alone.

Reads README.md, CONTRIBUTING.md, all pages in docs, tests and predictor, the comments of headers
and the help texts of options. Each check must first find faults that are planted in a copy of the
tree in memory, and must leave correct text alone. Then all checks run on the tree. One line per
problem; exit 1 if there is one.

Marks that pages carry for this test, as HTML comments:

    <!-- excerpt: src/train/trainer.cpp -->   the fenced block below stands literally in that file;
                                              a line `...` skips lines of the file
    <!-- sketch -->                           the fenced block below is C++ that is in no file
    26 <!-- count: calls of CUDA -->          the number before the mark is counted again (COUNTS)
    <!-- rooms -->                            the table below lists each room of CMakeLists.txt once
    <!-- printed: two layers -->              a command of PRINTED prints the fenced block below;
                                              a line that begins with `..` stands for others
"""

import argparse
import ast
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

WIDTH = 100
LONGEST_SENTENCE = 32
SOURCES = ("h", "cpp", "cu", "cuh", "py", "cmake")
SKIPPED_FOLDERS = {".git", "build", "__pycache__"}

# Known problems by (check, page). The test fails if a page has more, and if it has fewer.
ALLOWED = {}

# Options of programs that are not ours, as the pages use them.
FOREIGN_OPTIONS = {
    "--preset": "cmake, ctest",
    "--build": "cmake",
    "--target": "cmake",
    "--fmad": "nvcc",
    "--dump-resource-usage": "cuobjdump",
    "--durations": "Catch2",
    "--bind-to": "mpirun",
    "--mpi": "srun",
    "--time": "sbatch",
    "--signal": "sbatch, scancel",
    "--requeue": "sbatch",
    "--open-mode": "sbatch",
    "--logdir": "tensorboard",
    "--of": "lstopo",
    "--sync-tensorboard": "wandb",
}

# Turns of phrase that a reader needs to read twice.
BANNED_TURNS = (
    "those that", "that of the", "those of the", "anew", "has not the", "is no count",
    "what is there", "one that it", "that which", "is told", "are told", "who has", "where from",
)


class Tree:
    """The files of the project, with changes planted on top."""

    def __init__(self, root, changes=None, program=None):
        self.root = root
        self.program = program
        self.changes = changes or {}
        if changes is None:
            self.files, self.folders = set(), set()
            for folder, names, files in os.walk(root):
                names[:] = [n for n in names if n not in SKIPPED_FOLDERS]
                relative = pathlib.Path(folder).relative_to(root)
                self.folders.update(str(relative / n) for n in names)
                self.files.update(str(relative / f) for f in files)
            self.names = {os.path.basename(f) for f in self.files}
            self.cache = {}

    def planted(self, changes):
        twin = Tree(self.root, changes, self.program)
        twin.files, twin.folders, twin.names = self.files, self.folders, self.names
        twin.cache = self.cache
        return twin

    def read(self, path):
        if path in self.changes:
            return self.changes[path]
        if path not in self.cache:
            self.cache[path] = (self.root / path).read_text(encoding="utf-8", errors="replace")
        return self.cache[path]

    def pages(self):
        return sorted(f for f in self.files
                      if f.endswith(".md") and f.split("/")[0] in
                      ("README.md", "CONTRIBUTING.md", "docs", "tests", "predictor"))

    def sources(self, *endings):
        return sorted(f for f in self.files if f.endswith(endings) and f.split("/")[0] in
                      ("src", "tools", "cpu_kernels", "gpu_kernels", "predictor", "tests"))


class Block:
    """A run of lines of a page: prose, a table, a fenced block or a mark."""

    def __init__(self, kind, line, lines, info="", mark=""):
        self.kind, self.line, self.lines, self.info, self.mark = kind, line, lines, info, mark


def blocks_of(text):
    """Cuts Markdown into blocks. List items and headings are blocks of their own."""
    blocks, current, fence, mark = [], None, None, ""
    for number, line in enumerate(text.split("\n"), 1):
        if fence is not None:
            if line.strip().startswith("```"):
                fence = None
            else:
                blocks[-1].lines.append(line)
            continue
        if line.strip().startswith("```"):
            fence, current = line, None
            blocks.append(Block("fence", number, [], line.strip()[3:].strip(), mark))
            mark = ""
            continue
        comment = re.fullmatch(r"<!--\s*(.*?)\s*-->", line.strip())
        if comment:
            mark, current = comment.group(1), None
            continue
        if not line.strip():
            current = None
            continue
        kind = ("table" if line.startswith("|") else
                "heading" if line.startswith("#") else "prose")
        starts_item = re.match(r"\s*([*+-]|\d+\.)\s", line)
        if current is None or current.kind != kind or starts_item or kind == "heading":
            current = Block(kind, number, [], mark=mark)
            blocks.append(current)
            mark = ""
        current.lines.append(line)
    return blocks


def prose_of(block):
    text = " ".join(line.strip() for line in block.lines)
    text = re.sub(r"^([*+-]|\d+\.)\s+", "", text)
    text = re.sub(r"<!--.*?-->", "", text)
    return re.sub(r"\s+", " ", text).strip()


def words_of(text):
    """Prose with code, links and emphasis reduced to what is read."""
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return text.replace("*", "")


def code_of(block):
    return re.findall(r"`([^`]+)`", " ".join(block.lines))


# --- the checks: each yields (page, line, text) ------------------------------------------------


def check_width(tree):
    for page in tree.pages():
        for block in blocks_of(tree.read(page)):
            if block.kind in ("table", "fence"):
                continue
            for at, line in enumerate(block.lines):
                if len(line) > WIDTH and len(max(line.split(), key=len)) < WIDTH - 20:
                    yield page, block.line + at, f"{len(line)} columns"


def check_sentences(tree):
    for page in tree.pages():
        for block in blocks_of(tree.read(page)):
            if block.kind != "prose":
                continue
            for sentence in re.split(r"(?<=[.!?])[)\"]?\s+", words_of(prose_of(block))):
                count = len([w for w in sentence.split() if re.search(r"\w", w)])
                if count > LONGEST_SENTENCE:
                    yield page, block.line, f"a sentence of {count} words: {sentence[:60]}..."


def banned_in(text):
    text = re.sub(r"\s+", " ", text.lower())
    return [turn for turn in BANNED_TURNS if re.search(r"\b" + re.escape(turn) + r"\b", text)]


def check_turns(tree):
    for page in tree.pages():
        for block in blocks_of(tree.read(page)):
            if block.kind in ("prose", "table", "heading"):
                for turn in banned_in(words_of(prose_of(block))):
                    yield page, block.line, f"'{turn}'"
    for source in tree.sources(".cpp"):
        if not source.startswith("tools/options/"):
            continue
        for found in re.finditer(r"\.(?:help|default_text) =\s*((?:\"(?:[^\"\\]|\\.)*\"\s*)+)",
                                 tree.read(source)):
            text = "".join(re.findall(r"\"((?:[^\"\\]|\\.)*)\"", found.group(1)))
            line = tree.read(source)[:found.start()].count("\n") + 1
            for turn in banned_in(text):
                yield source, line, f"'{turn}' in a help text"


def check_links(tree):
    for page in tree.pages():
        folder = os.path.dirname(page)
        for block in blocks_of(tree.read(page)):
            if block.kind == "fence":
                continue
            text = re.sub(r"`[^`]*`", "", "\n".join(block.lines))
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, anchor = target.partition("#")
                path = os.path.normpath(os.path.join(folder, path)) if path else page
                if path not in tree.files and path not in tree.folders:
                    yield page, block.line, f"link to {target}: no such file"
                elif anchor and anchor not in anchors_of(tree.read(path)):
                    yield page, block.line, f"link to {target}: no such heading"


def anchors_of(text):
    anchors = set()
    for block in blocks_of(text):
        if block.kind == "heading":
            title = block.lines[0].lstrip("#").strip().lower()
            anchors.add(re.sub(r"[^\w\- ]", "", title).replace(" ", "-"))
    return anchors


TOP_FOLDERS = ("src", "tools", "docs", "tests", "scripts", "cpu_kernels", "gpu_kernels", "cmake",
               "predictor", ".ci")
# Files that a run makes, or that belong to other projects.
NOT_OURS = re.compile(r"docs/benchmarks/gpu-check\.log|cutlass/cutlass\.h|cudnn_frontend\.h|"
                      r"jinja2/parser\.py")


def missing_name(tree, token, page):
    """What is wrong with a token that looks like a path of the tree; None: nothing, or no path."""
    token = token.rstrip("/.,:")
    if (not re.fullmatch(r"[\w.*?/{},<>-]+", token) or NOT_OURS.fullmatch(token) or
            re.fullmatch(r"\.\w+", token)):
        return None
    if "{" in token:
        head, _, rest = token.partition("{")
        middle, _, tail = rest.partition("}")
        parts = [missing_name(tree, head + part + tail, page) for part in middle.split(",")]
        return next((p for p in parts if p), None)
    if token.startswith("../"):
        token = os.path.normpath(os.path.join(os.path.dirname(page), token))
    pattern = re.sub(r"<[^>]*>", "*", token)
    first = pattern.split("/")[0]
    ending = pattern.rsplit(".", 1)[-1] if "." in pattern.rsplit("/", 1)[-1] else ""
    if "/" in pattern and first in TOP_FOLDERS:
        known = tree.files | tree.folders
        if pattern in known or any(fnmatch.fnmatch(f, pattern) for f in known):
            return None
        return f"`{token}`: no such file or folder"
    if ending in SOURCES or ending == "md":
        if "/" in pattern:
            if any(fnmatch.fnmatch(f, pattern) or fnmatch.fnmatch(f, "*/" + pattern)
                   for f in tree.files):
                return None
        elif any(fnmatch.fnmatch(n, pattern) for n in tree.names):
            return None
        if ending == "md" and token in ("card.md", "SKILL.md"):
            return None
        return f"`{token}`: no such file"
    return None


def check_names(tree):
    for page in tree.pages():
        for block in blocks_of(tree.read(page)):
            if block.kind == "fence":
                tokens = [t for line in block.lines for t in line.split()
                          if re.match(r"(src|scripts|tests|docs|tools)/", t)]
            else:
                tokens = [t for code in code_of(block) for t in code.split()]
            for token in tokens:
                wrong = missing_name(tree, token, page)
                if wrong:
                    yield page, block.line, wrong


def identifiers_of(tree):
    if "identifiers" not in tree.cache:
        words = set()
        for source in tree.sources(".h", ".cpp", ".cu", ".cuh", ".py"):
            if source.startswith("tests/docs/"):  # it names what is nowhere else
                continue
            words.update(re.findall(r"\w+", tree.read(source)))
        for script in tree.files:
            if script.startswith("scripts/") or script.startswith("cmake/"):
                words.update(re.findall(r"\w+", tree.read(script)))
        tree.cache["identifiers"] = words
    return tree.cache["identifiers"]


def check_identifiers(tree):
    """Functions, members and types that a page names occur in the sources."""
    known = identifiers_of(tree)
    for page in tree.pages():
        for block in blocks_of(tree.read(page)):
            if block.kind == "fence":
                continue
            for code in code_of(block):
                if not re.fullmatch(r"\w+(::~?\w+)*(\(\))?", code):
                    continue
                if not (code.endswith("()") or "::" in code or
                        re.fullmatch(r"(?:[A-Z][a-z0-9]+){2,}", code)):
                    continue
                for part in code.removesuffix("()").split("::"):
                    if part not in known and part != "std":
                        yield page, block.line, f"`{code}`: no source has the name {part}"


def check_header_comments(tree):
    """File names in the comments of headers exist."""
    for source in tree.sources(".h", ".cuh"):
        for number, line in enumerate(tree.read(source).split("\n"), 1):
            comment = re.search(r"(?:^|\s)///?<?\s(.*)", line)
            if not comment:
                continue
            for token in re.findall(r"[\w./*<>-]*[\w>]\.(?:h|cpp|cuh|cu|md|py|cmake)\b(?!\()",
                                    comment.group(1)):
                wrong = missing_name(tree, token, source)
                if wrong:
                    yield source, number, wrong


def check_excerpts(tree):
    for page in tree.pages():
        for block in blocks_of(tree.read(page)):
            if block.kind != "fence":
                continue
            if not block.mark.startswith("excerpt:"):
                if block.info.startswith(("cpp", "cmake")) and block.mark != "sketch":
                    yield page, block.line, "C++ without a mark of its file (or <!-- sketch -->)"
                continue
            path = block.mark.removeprefix("excerpt:").strip()
            if path not in tree.files:
                yield page, block.line, f"excerpt of {path}: no such file"
                continue
            wrong = missing_excerpt(tree.read(path), block.lines)
            if wrong:
                yield page, block.line, f"excerpt of {path}: not there: {wrong.strip()}"


def missing_excerpt(text, lines):
    """The first line of an excerpt that a file does not have at its place, or None."""
    source = [line.strip() for line in text.split("\n")]
    at, runs = 0, [[]]
    for line in lines:
        if line.strip() == "...":
            runs.append([])
        else:
            runs[-1].append(line.strip())
    for run in runs:
        while run and not run[-1]:
            run.pop()
        if not run:
            continue
        while at < len(source) and source[at:at + len(run)] != run:
            at += 1
        if at == len(source):
            missing = [line for line in run if line not in source]
            return missing[0] if missing else run[0]
        at += len(run)
    return None


def options_of_program(tree):
    names = {"help", "version"}
    for source in tree.sources(".cpp"):
        if source.startswith("tools/options/") or source.startswith("tools/foreign/"):
            text = tree.read(source)
            names.update(re.findall(r"\.name = \"([\w-]+)\"", text))
            for aliases in re.findall(r"\.aliases =\s*\{([^}]*)\}", text):
                names.update(re.findall(r"\"([\w-]+)\"", aliases))
            if source.startswith("tools/foreign/"):
                names.update(n.replace("_", "-") for n in re.findall(r"\{\"(\w+)\"", text))
    return names


def options_of_scripts(tree):
    names = set()
    for script in tree.files:
        if (script.startswith(("scripts/", ".ci/", "tests/bench/")) and
                not script.endswith((".md", ".json"))):
            names.update(re.findall(r"(?<![\w-])--[a-z][\w-]*", tree.read(script)))
    return {n[2:] for n in names}


def check_options(tree):
    if "options" not in tree.cache:
        tree.cache["options"] = options_of_program(tree), options_of_scripts(tree)
    program, scripts = tree.cache["options"]
    if len(program) < 80:
        yield "tools/options", 1, f"only {len(program)} options were found in the table"
    foreign = {name[2:] for name in FOREIGN_OPTIONS}
    for page in tree.pages():
        for block in blocks_of(tree.read(page)):
            if block.info.startswith("cpp"):
                continue
            lines = block.lines if block.kind == "fence" else code_of(block)
            ours = False
            for line in lines:
                if not ours:
                    ours = bool(re.match(r"[$ ]*(\S*/)?hearth\s", line))
                known = program if ours else program | scripts | foreign
                for name in re.findall(r"(?<![\w-])--([A-Za-z][\w-]*)", line.split("   #")[0]):
                    if name.replace("_", "-") not in known and name not in known:
                        of = "hearth" if ours else "hearth, nor of a script"
                        yield page, block.line, f"--{name}: no option of {of}"
                ours = ours and line.endswith("\\")


# --- counts ------------------------------------------------------------------------------------


def count_calls_of_cuda(tree):
    text = tree.read("src/device/cuda_calls.h")
    return len(re.findall(r"^\s+virtual CudaCode \w+\(|^\s+virtual std::string \w+\(", text, re.M))


def faults_of(tree, path):
    count = 0
    for node in ast.walk(ast.parse(tree.read(path))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Fault":
            count += 1
    return count


def rooms_of(tree):
    """Rooms as CMakeLists.txt declares them, each once, bottom to top."""
    rooms = []
    for name in re.findall(r"^\s*hearth_room\((\w+)", tree.read("CMakeLists.txt"), re.M):
        if name not in rooms:
            rooms.append(name)
    return rooms


COUNTS = {
    "calls of CUDA": count_calls_of_cuda,
    "rooms": lambda tree: len(rooms_of(tree)),
    "families": lambda tree: len([f for f in tree.files if f.startswith("src/model/families/") and
                                  f.endswith(".cpp") and "Family" in tree.read(f) and
                                  "decoder" not in f]),
    "planted faults": lambda tree: faults_of(tree, "tests/reliability_faults.py"),
    "planted faults of parity": lambda tree: faults_of(tree, "tests/parity/faults.py"),
}


def check_counts(tree):
    for page in tree.pages():
        for number, line in enumerate(tree.read(page).split("\n"), 1):
            for found in re.finditer(r"<!-- count: ([^>]*?) -->", line):
                before = re.search(r"(\d[\d,]*)\s*$", line[:found.start()])
                name = found.group(1)
                if name not in COUNTS:
                    yield page, number, f"count: {name}: the test does not know how to count it"
                elif not before:
                    yield page, number, f"count: {name}: no number stands before the mark"
                else:
                    said, is_now = int(before.group(1).replace(",", "")), COUNTS[name](tree)
                    if said != is_now:
                        yield page, number, f"{said} {name}: there are {is_now}"


def check_rooms(tree):
    rooms, marked = set(rooms_of(tree)), 0
    for page in tree.pages():
        for block in blocks_of(tree.read(page)):
            if block.mark != "rooms" or block.kind != "table":
                continue
            marked += 1
            listed = [name for line in block.lines[2:]
                      for name in re.findall(r"`([\w]+)`", line.split("|")[1])]
            for name in sorted(set(listed) - rooms):
                yield page, block.line, f"room {name}: CMakeLists.txt has none of this name"
            for name in sorted(rooms - set(listed)):
                yield page, block.line, f"room {name} of CMakeLists.txt is missing"
            for name in sorted({n for n in listed if listed.count(n) > 1}):
                yield page, block.line, f"room {name} stands there twice"
    if marked != 1:
        yield "docs/main-path.md", 1, f"{marked} tables are marked <!-- rooms -->, not one"


# --- what the program prints --------------------------------------------------------------------


def print_two_layers(tree, program, folder):
    config = json.loads(tree.read("scripts/quickstart.d/config.json"))
    config["num_hidden_layers"] = 2
    (folder / "config.json").write_text(json.dumps(config))
    return [program, "plan", "--model", str(folder), "--grad-accum", "2", "--seq-len",
            "1024", "--verbose"]


PRINTED = {"two layers": print_two_layers}


def printed_by(tree, name):
    key = "printed", name
    if key not in tree.cache:
        with tempfile.TemporaryDirectory() as folder:
            command = PRINTED[name](tree, tree.program, pathlib.Path(folder))
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        tree.cache[key] = done.stdout + done.stderr
    return tree.cache[key]


def is_printed(quoted, printed):
    """A quoted line may have other spaces, and leave out words."""
    at = 0
    for word in quoted.split():
        if word not in printed[at:]:
            return False
        at = printed.index(word, at) + 1
    return True


def check_printed(tree):
    for page in tree.pages():
        for block in blocks_of(tree.read(page)):
            if block.kind != "fence" or not block.mark.startswith("printed:"):
                continue
            name = block.mark.removeprefix("printed:").strip()
            if name not in PRINTED:
                yield page, block.line, f"printed: {name}: the test does not know what prints it"
                continue
            if tree.program is None:
                continue
            printed = [line.split() for line in printed_by(tree, name).split("\n")]
            for at, line in enumerate(block.lines, 1):
                if line.strip().startswith(".."):
                    continue
                if not any(is_printed(line, p) for p in printed):
                    yield page, block.line + at, f"the program does not print: {line.strip()}"


CHECKS = {
    "width": check_width,
    "sentences": check_sentences,
    "turns": check_turns,
    "links": check_links,
    "names": check_names,
    "identifiers": check_identifiers,
    "header comments": check_header_comments,
    "excerpts": check_excerpts,
    "options": check_options,
    "counts": check_counts,
    "rooms": check_rooms,
    "printed": check_printed,
}

# --- planted faults: (check, file, what is added at its end or replaced, is it a fault) -----------

PAGE = "docs/main-path.md"
PLANTED = [
    ("width", PAGE, "word " * 21, True),
    ("width", PAGE, "word " * 19, False),
    ("width", PAGE, "| " + "word " * 40 + "|", False),
    ("sentences", PAGE, "Go " + "on\n" * 33 + ".", True),
    ("sentences", PAGE, "Go " + "on " * 20 + ". Go " + "on " * 20 + ".", False),
    ("turns", PAGE, "It is made\nanew.", True),
    ("turns", PAGE, "It keeps those\nthat it knows.", True),
    ("turns", PAGE, "`anew` is a word.", False),
    ("turns", "tools/options/run.cpp", '{.help = "keeps those "\n "that are there"}', True),
    ("links", PAGE, "[here](no-such-page.md)", True),
    ("links", PAGE, "[here](main-path.md#no-such-heading)", True),
    ("links", PAGE, "[here](../README.md)", False),
    ("names", PAGE, "`src/train/no_such_file.cpp` is a file.", True),
    ("names", PAGE, "`no_such_file.h` is a file.", True),
    ("names", PAGE, "`src/no_such_room/` is a room.", True),
    ("names", PAGE, "```\nscripts/no_such_script --fast\n```", True),
    ("names", PAGE, "`trainer.cpp`, `src/{train,plan}`, `tests/<room>/*.cpp`, `a/b`.", False),
    ("identifiers", PAGE, "`no_such_function()` runs.", True),
    ("identifiers", PAGE, "`TrainingRun::no_such_member` runs.", True),
    ("identifiers", PAGE, "`NoSuchType` is a type.", True),
    ("identifiers", PAGE, "`Executor::run` runs.", False),
    ("header comments", "src/base/pool.h", "// See no_such_file.cpp.", True),
    ("header comments", "src/base/pool.h", "// See pool.cpp, docs/numbers.md.", False),
    ("excerpts", PAGE, "<!-- excerpt: src/train/trainer.cpp -->\n```cpp\nrun.none();\n```", True),
    ("excerpts", PAGE, "<!-- excerpt: src/no_such.cpp -->\n```cpp\nint i;\n```", True),
    ("excerpts", PAGE, "```cpp\nint unmarked;\n```", True),
    ("excerpts", PAGE, "<!-- sketch -->\n```cpp\nint marked;\n```", False),
    ("options", PAGE, "`--no-such-option`", True),
    ("options", PAGE, "```\nhearth train --model M \\\n  --no-such-option 3\n```", True),
    ("options", PAGE, "```\nhearth train --peers\n```", True),
    ("options", PAGE, "`--seq-len`, `--learning_rate`, `scripts/test --peers`", False),
    ("counts", PAGE, "1 <!-- count: calls of CUDA -->", True),
    ("counts", PAGE, "3 <!-- count: unicorns -->", True),
    ("counts", PAGE, "some <!-- count: rooms -->", True),
    ("counts", "src/device/cuda_calls.h", "  virtual CudaCode one_more(int a) = 0;", True),
    ("rooms", "CMakeLists.txt", "hearth_room(no_such_room DEPENDS base)", True),
    ("printed", PAGE, "<!-- printed: unicorns -->\n```\none\n```", True),
    ("printed", PAGE, "<!-- printed: two layers -->\n```\n  0  update unicorn 0\n```", True),
    ("printed", PAGE, "<!-- printed: two layers -->\n```\n  0  embed forward\n```", False),
]


def check_that_faults_show(tree):
    """Each check finds what is planted, and nothing in what is right."""
    missed = []
    for name, path, text, is_fault in PLANTED:
        if tree.program is None and "two layers" in text:
            continue
        before = sum(1 for _ in CHECKS[name](tree))
        twin = tree.planted({path: tree.read(path) + "\n\n" + text + "\n"})
        after = sum(1 for _ in CHECKS[name](twin))
        if (after > before) != is_fault:
            how = "not found where it was planted" if is_fault else "reported although it is right"
            missed.append(f"{name}: {how}: {text!r}")
    # A changed line of an excerpt's file must show as well.
    excerpts = [b for p in tree.pages() for b in blocks_of(tree.read(p))
                if b.mark.startswith("excerpt:")]
    if len(excerpts) < 5:
        missed.append(f"excerpts: only {len(excerpts)} in all pages")
    for block in excerpts:
        path = block.mark.removeprefix("excerpt:").strip()
        line = next((l.strip() for l in block.lines if l.strip() not in ("", "...", "}")), None)
        if line is None or path not in tree.files:
            continue
        twin = tree.planted({path: tree.read(path).replace(line, "// changed")})
        if sum(1 for _ in check_excerpts(twin)) <= sum(1 for _ in check_excerpts(tree)):
            missed.append(f"excerpts: {path} may change without a word: {line}")
    return missed


def main():
    parser = argparse.ArgumentParser(description="Holds the documents to the tree.")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("pages", nargs="*", help="report on these pages alone")
    parser.add_argument("--hearth", help="the program whose output pages quote")
    arguments = parser.parse_args()
    tree = Tree(arguments.root.resolve(), program=arguments.hearth)
    only = arguments.pages
    if len(tree.pages()) < 20:
        print(f"only {len(tree.pages())} pages were found")
        return 1
    if arguments.hearth is None:
        print("without --hearth: what pages quote of the program's output is not compared")
    failed = 0
    for text in check_that_faults_show(tree):
        print(text)
        failed += 1
    for name, check in CHECKS.items():
        by_page = {}
        for page, line, text in check(tree):
            by_page.setdefault(page, []).append(f"{page}:{line}: {name}: {text}")
        for page in sorted(set(by_page) | {p for n, p in ALLOWED if n == name}):
            if only and page not in only:
                continue
            found, allowed = by_page.get(page, []), ALLOWED.get((name, page), 0)
            if len(found) == allowed:
                continue
            if len(found) < allowed:
                found = [f"{page}: {name}: {len(found)} left of {allowed}: lower ALLOWED"]
            print("\n".join(found))
            failed += len(found)
    print(f"{len(tree.pages())} pages, {len(CHECKS)} checks, {len(PLANTED)} planted faults: " +
          (f"{failed} problems" if failed else "ok"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
