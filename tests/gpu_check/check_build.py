"""What a build with CUDA must be: code for every architecture of its list in the program, each kernel
for each of them (but those of one kind of GPU), and a program that starts where there is neither a driver nor a CUDA library.

usage: check_build.py SOURCES PROGRAM cuda ARCHITECTURE...      e.g. sm_80+3 sm_90a: three files are for
                                                                sm_80 alone
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
    extra = {name: int(files or 0) for name, _, files in (word.partition("+") for word in wanted)}
    wanted = list(extra)
    missing = [name for name in wanted if name not in there]
    if missing:
        sys.exit(f"no code for {' '.join(missing)}; there is: {' '.join(there) or 'none'}")
    common = {there[name] - extra[name] for name in wanted}
    if len(common) != 1:
        sys.exit(f"some files were not compiled for all: {there}, of these for one alone: {extra}")
    listed = by_cuobjdump(program)
    if listed is not None and listed != {name for name in there if name.startswith("sm_")}:
        sys.exit(f"cuobjdump lists {sorted(listed)}, the program's own tables {sorted(there)}")
    print(f"CUDA is compiled for {' '.join(there)}; starts without a driver"
          + ("" if listed is not None else "; cuobjdump is not here"))


if __name__ == "__main__":
    main(*sys.argv[1:])
