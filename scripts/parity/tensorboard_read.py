#!/usr/bin/env python3
"""Reads the TensorBoard event files of runs with the tensorboard package and compares them with
metrics.jsonl and journal.jsonl: every step, every scalar, as float32; checksums are the package's.

  scripts/parity/tensorboard_read.py RUN_DIR...

Needs Python's tensorboard package.
"""
import glob
import json
import math
import os
import struct
import sys

from tensorboard.backend.event_processing import event_file_loader

TAGS = {"train/loss": "loss", "train/epoch": "epoch", "train/aux_loss": "aux_loss",
        "train/z_loss": "z_loss", "train/grad_norm": "grad_norm", "train/learning_rate": "lr",
        "train/time_s": "time_s", "train/tokens_per_s": "tokens_per_s",
        "train/bound_pct": "bound_pct"}


def single(value):
    """As float32; what JSON writes as null is any value that is not finite."""
    return None if value is None or not math.isfinite(value) else struct.unpack(
        "f", struct.pack("f", value))[0]


def scalars(run):
    """(tag, step, value) in the order of the files."""
    found = []
    for path in sorted(glob.glob(os.path.join(run, "events.out.tfevents.*"))):
        events = list(event_file_loader.RawEventFileLoader(path).Load())
        parsed = list(event_file_loader.LegacyEventFileLoader(path).Load())
        assert len(events) == len(parsed) >= 1, f"{path}: unread records"
        assert parsed[0].file_version == "brain.Event:2", f"{path}: no version"
        for event in parsed[1:]:
            assert event.wall_time > 0 and event.summary.value, f"{path}: an empty event"
            found += [(v.tag, event.step, single(v.simple_value)) for v in event.summary.value]
    return found


def lines(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def expected(run):
    found = []
    for line in lines(os.path.join(run, "metrics.jsonl")):
        found += [(tag, line["step"], single(line[key])) for tag, key in TAGS.items() if key in line]
    for event in lines(os.path.join(run, "journal.jsonl")):
        if event["event"] == "eval":
            found.append(("eval/loss", event["step"], single(event["loss"])))
    return found


def main(runs):
    failed = 0
    for run in runs:
        order = lambda entry: (entry[0], entry[1], entry[2] is not None, entry[2] or 0)
        read, wanted = sorted(scalars(run), key=order), sorted(expected(run), key=order)
        same = read == wanted and len(read) > 0
        failed += not same
        print(f"{'ok' if same else 'FAILED'} {run}: {len(read)} scalars read, {len(wanted)} expected")
        if not same:
            print("  first difference:", next(((a, b) for a, b in zip(read, wanted) if a != b), None))
    print(f"{len(runs) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
