#!/usr/bin/env python3
"""Writes the recorded cases (cases.py) anew: record.py WORK TARGET."""
import shutil
import sys
from pathlib import Path

import cases
import make_cases
import run_reference


def main(work, target):
    names = [case.name for case in cases.CASES if case.recorded]
    make_cases.main(work, names)
    shutil.rmtree(target, ignore_errors=True)
    for name in names:
        run_reference.run_case(work / name)
        shutil.copytree(work / name, target / name)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
