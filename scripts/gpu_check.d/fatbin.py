"""What GPU code a program holds, read from the program itself: no tool of the CUDA toolkit needed.

usage: fatbin.py PROGRAM     prints e.g. `sm_80 sm_89 sm_90a compute_90`, nothing where there is none
"""
import struct
import sys

MAGIC = 0xBA55ED50  # of one fat binary: a header, then an entry for each architecture
PTX, SASS = 1, 2
ARCHITECTURE_SPECIFIC = 0x100000  # the `a` of sm_90a


def section(program, wanted):
    """The bytes of a section of a 64-bit ELF file; none where it is missing."""
    if program[:5] != b"\x7fELF\x02":
        return b""
    (headers,) = struct.unpack_from("<Q", program, 0x28)
    size, count, names = struct.unpack_from("<HHH", program, 0x3A)
    table = [struct.unpack_from("<IIQQQQ", program, headers + i * size) for i in range(count)]
    for name, _, _, _, offset, length in table:
        begin = table[names][4] + name
        if program[begin:program.index(b"\0", begin)] == wanted:
            return program[offset:offset + length]
    return b""


def entries(code):
    """(kind, name of the architecture) of each entry of the section .nv_fatbin."""
    at = 0
    while at + 16 <= len(code):
        magic, _, header, size = struct.unpack_from("<IHHQ", code, at)
        if magic != MAGIC:
            at += 4  # padding between the fat binaries of two object files
            continue
        at += header
        end = at + size
        while at + 64 <= end:
            kind, _, header, payload = struct.unpack_from("<HHIQ", code, at)
            arch, _, _, flags = struct.unpack_from("<IIIQ", code, at + 28)
            suffix = "a" if flags & ARCHITECTURE_SPECIFIC else ""
            yield kind, f"{'sm' if kind == SASS else 'compute'}_{arch}{suffix}"
            at += header + payload
        at = end


def architectures(path):
    """How many pieces of code there are by architecture, e.g. {"sm_80": 12, "compute_90": 12}."""
    with open(path, "rb") as file:
        code = section(file.read(), b".nv_fatbin")
    counts = {}
    for kind, name in entries(code):
        if kind in (PTX, SASS):
            counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (item[0].startswith("compute"), item[0])))


if __name__ == "__main__":
    print(" ".join(architectures(sys.argv[1])))
