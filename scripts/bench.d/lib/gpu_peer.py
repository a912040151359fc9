"""Turns of the peer on a GPU: what PyTorch makes of an MoE layer, of attention, and of the machine.

usage: gpu_peer.py rates|moe|attention [--device cuda|cpu] [--shapes JSON] [--rounds N]

Prints one JSON object a line: the shape it was asked for, seconds (median), and the operations or
bytes that were counted. On `cpu` it is a rehearsal of this file, not a measurement.
"""
import argparse
import json
import statistics
import time

import torch

from gpu_attention import attention_seconds
from gpu_moe import moe_seconds


class Timer:
    """Times calls on a device: between events of the GPU, or by the clock on the CPU."""

    def __init__(self, device, rounds):
        self.device, self.rounds = device, rounds

    def seconds(self, call):
        """The median of `rounds` calls after as many warm-ups as half of that."""
        for _ in range(max(1, self.rounds // 2)):
            call()
        if self.device == "cpu":
            return statistics.median(self._by_clock(call) for _ in range(self.rounds))
        pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(self.rounds)]
        for begin, end in pairs:
            begin.record()
            call()
            end.record()
        torch.cuda.synchronize()
        return statistics.median(begin.elapsed_time(end) / 1e3 for begin, end in pairs)

    @staticmethod
    def _by_clock(call):
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin


def rates(timer, shape):
    """The ceilings: a large product of bf16 matrices, and a large copy, bytes read plus written."""
    n = shape.get("matmul", 8192)
    a, b = (torch.randn(n, n, device=timer.device).to(torch.bfloat16) for _ in range(2))
    out = torch.empty_like(a)
    yield {"what": "matmul", "n": n, "flops": 2 * n**3,
           "seconds": timer.seconds(lambda: torch.mm(a, b, out=out))}
    count = shape.get("copy_bytes", 2**31) // 4
    source = torch.randn(count, device=timer.device)
    target = torch.empty_like(source)
    yield {"what": "copy", "bytes": 8 * count,
           "seconds": timer.seconds(lambda: target.copy_(source))}


def moe(timer, shape):
    flops = 18 * shape["tokens"] * shape["top_k"] * shape["hidden"] * shape["width"]
    for way, seconds in moe_seconds(timer, **shape):
        yield {"what": "moe", "way": way, "flops": flops, "seconds": seconds}


def attention(timer, shape):
    pairs = shape["seq"] * (shape["seq"] + 1) // 2
    flops = 14 * shape["batch"] * shape["heads"] * shape["head_dim"] * pairs
    for way, seconds in attention_seconds(timer, **shape):
        yield {"what": "attention", "way": way, "flops": flops, "seconds": seconds}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("rates", "moe", "attention"))
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--shapes", type=json.loads, default=[{}])
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    torch.manual_seed(1)
    measure = {"rates": rates, "moe": moe, "attention": attention}[options.what]
    name = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    for shape in options.shapes:
        for result in measure(Timer(options.device, options.rounds), shape):
            print(json.dumps({**result, "shape": shape, "device": name, "torch": torch.__version__}),
                  flush=True)


if __name__ == "__main__":
    main()
