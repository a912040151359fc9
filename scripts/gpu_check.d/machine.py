"""The GPU of this machine, its driver, and where the CUDA libraries are."""
import ctypes
import glob
import os
import shutil
import subprocess
import sys

DRIVER_FOLDERS = ("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/wsl/lib",
                  "/usr/lib/x86_64-linux-gnu", "/usr/lib64")
# What the program opens at run time, and what says which version a folder has.
LIBRARIES = ("libcublasLt.so", "libcudnn.so")
# Asked of the Python that runs the peers, which need not be the one that runs this file.
ASK_PYTHON = """
import glob, importlib.util, os
specs = [importlib.util.find_spec(name) for name in ("nvidia", "torch")]
roots = [root for spec in specs if spec for root in spec.submodule_search_locations or []]
for root in roots:
    for lib in [os.path.join(root, "lib")] + sorted(glob.glob(os.path.join(root, "*", "lib"))):
        if os.path.isdir(lib):
            print(lib)
"""


def peer_python():
    """The Python that has torch, and why there is none: (path, "") or (None, reason)."""
    named = os.environ.get("HEARTH_PYTHON")
    tried = [named] if named else ["python3", "python", sys.executable]
    for python in tried:
        path = shutil.which(python)
        if path and subprocess.run(
                [path, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"],
                capture_output=True).returncode == 0:
            return path, ""
    return None, "no Python with torch (HEARTH_PYTHON names another)"


class Machine:
    """What was found once, at the start."""

    def __init__(self):
        self.python, self.no_python = peer_python()
        self.driver_folder = None   # of libcuda.so.1, where the loader does not find it by itself
        self.names, self.why_not, self.gpu_bytes = [], "", 0  # memory of the first one
        try:
            self._ask_driver()
        except OSError as error:
            self.why_not = f"no driver ({error})"
        self.library_folders = self._library_folders()

    @property
    def gpu(self):
        return bool(self.names)

    def _ask_driver(self):
        cuda = self._driver()
        status = cuda.cuInit(0)
        if status:
            self.why_not = f"the driver is there and says no: cuInit gave error {status}"
            return
        count, version = ctypes.c_int(), ctypes.c_int()
        cuda.cuDeviceGetCount(ctypes.byref(count))
        cuda.cuDriverGetVersion(ctypes.byref(version))
        self.cuda_version = f"{version.value // 1000}.{version.value % 1000 // 10}"
        if not count.value:
            self.why_not = "the driver finds no GPU"
        for number in range(count.value):
            name, memory = self._name(cuda, number)
            self.names.append(name)
            self.gpu_bytes = self.gpu_bytes or memory

    def _driver(self):
        try:
            return ctypes.CDLL("libcuda.so.1")
        except OSError:
            for folder in DRIVER_FOLDERS:
                path = os.path.join(folder, "libcuda.so.1")
                if os.path.exists(path):
                    driver = ctypes.CDLL(path)
                    self.driver_folder = folder
                    return driver
            raise

    @staticmethod
    def _name(cuda, number):
        device, name = ctypes.c_int(), ctypes.create_string_buffer(100)
        cuda.cuDeviceGet(ctypes.byref(device), number)
        cuda.cuDeviceGetName(name, 100, device)
        major, minor, units = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        for value, attribute in ((major, 75), (minor, 76), (units, 16)):
            cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        memory = ctypes.c_size_t()
        cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
        return (f"{name.value.decode()}, sm_{major.value}{minor.value}, {units.value} units, "
                f"{memory.value / 2**30:.1f} GiB"), memory.value

    def _library_folders(self):
        found = []
        if self.python:
            found += subprocess.run([self.python, "-c", ASK_PYTHON], capture_output=True,
                                    text=True).stdout.split("\n")
        roots = [os.environ.get("CUDA_HOME", ""), *sorted(glob.glob("/usr/local/cuda*"), reverse=True)]
        found += [os.path.join(root, "lib64") for root in roots if root]
        folders = []
        for folder in found:
            real = os.path.realpath(folder)
            if folder and real not in folders and any(
                    glob.glob(os.path.join(real, name + "*")) for name in LIBRARIES):
                folders.append(real)
        return folders

    def libraries(self):
        """Which file of each library comes first, for the log."""
        found = []
        for name in LIBRARIES:
            for folder in self.library_folders:
                files = sorted(glob.glob(os.path.join(folder, name + ".*")), key=len)
                if files:
                    found.append(files[0])
                    break
            else:
                found.append(f"{name} not found")
        return found

    def tool(self, name):
        """A program of the CUDA toolkit, or None."""
        places = [os.environ.get("CUDA_HOME", "")] + sorted(glob.glob("/usr/local/cuda*"))
        tried = [name] + [os.path.join(place, "bin", name) for place in places if place]
        tried += [os.path.join(os.path.dirname(folder), "bin", name) for folder in self.library_folders]
        return next((path for path in map(shutil.which, tried) if path), None)

    def smi(self):
        """What nvidia-smi says of driver, clocks and who else is there; nothing where it is missing."""
        fields = "name,driver_version,memory.total,memory.used,utilization.gpu,clocks.sm,power.limit"
        try:
            return subprocess.run(["nvidia-smi", "--query-gpu=" + fields, "--format=csv"],
                                  capture_output=True, text=True, timeout=20).stdout.strip()
        except (OSError, subprocess.TimeoutExpired):
            return ""
