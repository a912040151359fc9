"""Where programs and data are: in a checkout with a build, or in what scripts/gpu_bundle made."""
import os
import re
import subprocess
from pathlib import Path

TESTS = ("test_device", "test_ops", "test_parity")  # those that have parts for a GPU
DATA = {"checkout": {"quickstart": "scripts/quickstart.d", "parity": "tests/golden/parity",
                     "lora": "tests/golden/lora", "text": "README.md"},
        "bundle": {"quickstart": "data/quickstart", "parity": "data/parity",
                   "lora": "data/lora", "text": "data/quickstart/text.md"}}


class Place:
    """`root` holds `gpu_bundle.json` in a bundle; else it is a checkout and `build` its build."""

    def __init__(self, root, build):
        self.root = Path(root)
        self.bundle = (self.root / "gpu_bundle.json").exists()
        self.build = Path(build) if build else self.root / "build/release"
        self.own_libraries = []  # folders of the bundle's libraries that are needed here

    def program(self, name):
        """The path of hearth, test_* or bench_gpu; None where it was not built."""
        folder = {"test": "tests", "bench": "tests/bench"}.get(name.split("_")[0], ".")
        path = self.root / "bin" / name if self.bundle else self.build / folder / name
        return path if path.exists() else None

    def programs(self):
        names = ("hearth", *TESTS, "bench_gpu")
        return {name: self.program(name) for name in names if self.program(name)}

    def data(self, name):
        return self.root / DATA["bundle" if self.bundle else "checkout"][name]

    def peers(self):
        """The folder of the peers' scripts."""
        return self.root / "scripts/bench.d/lib"

    def choose_libraries(self):
        """A bundle brings its libraries. Those of the compiler (lib-gcc) are taken only where the
        machine's own are too old: libraries of CUDA may need newer ones than the bundle's."""
        if not self.bundle:
            return ""
        answers = []
        for folders in (["lib"], ["lib", "lib-gcc"]):
            self.own_libraries = [str(self.root / folder) for folder in folders]
            done = subprocess.run([self.program("hearth"), "--version"], capture_output=True,
                                  text=True, env=self.environment([]))
            if done.returncode == 0:
                return f"libraries of the bundle: {', '.join(folders)}"
            answers.append(done.stderr.strip())
        return "hearth does not start: " + answers[-1]

    def environment(self, folders, **more):
        """Of our own programs; peers keep the machine's. `folders`: of CUDA's libraries."""
        environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
        searched = [*self.own_libraries, *folders, os.environ.get("LD_LIBRARY_PATH", "")]
        searched = [folder for folder in searched if folder]
        if searched:
            environment["LD_LIBRARY_PATH"] = ":".join(searched)
        return {**environment, **more}

    def revision(self, environment):
        program = self.program("hearth")
        text = subprocess.run([program, "--version"], capture_output=True, text=True,
                              env=environment).stdout if program else ""
        found = re.search(r"^revision\s+(\S+)", text, re.M)
        return found.group(1) if found else "unknown"
