"""What a build with CUDA must be: code for every architecture of its list in the program, each kernel
for each of them (but those of one kind of GPU), and a program that starts where there is neither a driver nor a CUDA library.

usage: check_build.py SOURCES PROGRAM cuda ARCHITECTURE...      e.g. sm_80 sm_90a
       check_build.py SOURCES PROGRAM none WHY                  a build without CUDA
"""
import re
import shutil
import subprocess
import sys

FORBIDDEN = re.compile(r"lib(cuda|cudart|cublas\w*|cudnn\w*|nvrtc|nccl)\.so")


def needed(program):
    """Libraries that the loader must find before the program starts."""
    text = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in text.splitlines() if line.strip()]


def by_cuobjdump(program):
    """The architectures that NVIDIA's tool lists, or None where it is not."""
    tool = shutil.which("cuobjdump")
    if not tool:
        return None
    text = subprocess.run([tool, "--list-elf", program], capture_output=True, text=True).stdout
    return set(re.findall(r"\.(sm_\w+)\.cubin", text))


def main(sources, program, kind, *wanted):
    sys.path.insert(0, sources + "/scripts/gpu_check.d")
    import fatbin
    linked = [name for name in needed(program) if FORBIDDEN.match(name)]
    if linked:
        sys.exit(f"{program} does not start without {', '.join(linked)}")
    subprocess.run([program, "--version"], check=True, stdout=subprocess.DEVNULL)
    there = fatbin.architectures(program)
    if kind == "none":
        if there:
            sys.exit(f"built without CUDA, yet with code for {' '.join(there)}")
        print(f"CUDA is not compiled: {' '.join(wanted)}")
        return
    missing = [name for name in wanted if name not in there]
    if missing:
        sys.exit(f"no code for {' '.join(missing)}; there is: {' '.join(there) or 'none'}")
    # A file may be for one kind of GPU alone (sm_90a); all others are for each of the list.
    common = [there[name] for name in wanted if not name.endswith("a")] or [0]
    if min(common) != max(common) or min(there[name] for name in wanted) < min(common):
        sys.exit(f"some files were not compiled for all: {there}")
    listed = by_cuobjdump(program)
    if listed is not None and listed != {name for name in there if name.startswith("sm_")}:
        sys.exit(f"cuobjdump lists {sorted(listed)}, the program's own tables {sorted(there)}")
    print(f"CUDA is compiled for {' '.join(there)}; starts without a driver"
          + ("" if listed is not None else "; cuobjdump is not here"))


if __name__ == "__main__":
    main(*sys.argv[1:])
