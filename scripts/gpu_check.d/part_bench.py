"""Parts: benchmarks of bench_gpu and of whole steps, each with its peer and its ceiling in the same
run."""
import json
import sys

from table import FAILED, MEASURED

NO_GPU = 3  # exit code of bench_gpu
TINY_RATES = [{"matmul": 256, "copy_bytes": 2**20}]
LAYER = "moe layer forward and backward"
MOE_SIZES = ("tokens", "hidden", "width", "experts", "top_k")
ATTENTION_SIZES = ("batch", "seq", "heads", "kv_heads", "head_dim")


def peer(check, what, shapes):
    """The peer's results, and why there are none or not all."""
    python, script = check.machine.python, check.place.peers() / "gpu_peer.py"
    if not python:
        return [], check.machine.no_python
    words = ["--device", "cpu", "--rounds", "2"] if check.rehearsing else []
    done = check.run([python, script, what, "--shapes", json.dumps(shapes), *words])
    why = ""
    if done.timed_out:
        why = "the peer was cut off"
    elif done.code != 0:
        why = "the peer: " + done.last()
    return results(done.out), why


def results(out):
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def ours(check, group):
    """What bench_gpu measured of a group; a rehearsal takes tiny shapes and the CPU's op set."""
    if not check.place.program("bench_gpu"):
        check.not_run(group, "bench_gpu was not built")
        return []
    done = check.own("bench_gpu", "--only", group, *(["--rehearse"] if check.rehearsing else []))
    if done.code == NO_GPU:
        check.not_run(group, done.last())
    elif done.timed_out:
        check.failed(group, "bench_gpu was cut off: its time was up")
    elif done.code != 0:
        check.failed(group, f"bench_gpu: exit {done.code}: {done.last()}")
    return [line for line in results(done.out) if "measurement" in line]


def rate(result):
    return result.get("flops", result.get("bytes", 0)) / result["seconds"]


def with_unit(result):
    value = rate(result)
    if "flops" in result:
        return f"{value / 1e12:.3g} TFLOP/s" if value >= 1e12 else f"{value / 1e9:.3g} GFLOP/s"
    return f"{value / 1e9:.4g} GB/s"


def sizes(result, names):
    return dict(zip(names, map(int, result["shape"].split("x"))))


def rates(check):
    """What a large product and a large copy of PyTorch reach: ceilings for all that follows."""
    found, why = peer(check, "rates", TINY_RATES if check.rehearsing else [{}])
    if why:
        check.not_run("ceilings", why)
    for result in found:
        check.rates[result["what"]] = rate(result)
        size = f"{result['n']} x {result['n']}, bf16" if "n" in result else "read + written"
        check.add(f"ceiling: torch {result['what']}", MEASURED, figure=with_unit(result), reason=size)


def bound_of(check, flops, moved):
    """Seconds at least, by the ceilings that were measured; None without them."""
    if not {"matmul", "copy"} <= check.rates.keys():
        return None
    return max(flops / check.rates["matmul"], moved / check.rates["copy"])


def goal(check, text, reached):
    """What a figure is to reach (docs/benchmarks/gpu.md); it decides nothing. Not of a rehearsal."""
    return "" if check.rehearsing else f"goal {text}: {'reached' if reached else 'NOT reached'}"


def compare(check, part, own, moved, peers=(), note="", wanted=None):
    """A row of our result beside the fastest of the peers and the bound. `wanted`: the ratio that is
    the goal."""
    best = min(peers, key=lambda result: result["seconds"]) if peers else None
    bound = bound_of(check, own.get("flops", 0), moved)
    if best and wanted:
        ratio = best["seconds"] / own["seconds"]
        note = "; ".join(filter(None, (goal(check, f"ratio {wanted}", ratio >= wanted), note)))
    check.add(part, MEASURED, figure=with_unit(own),
              against=f"{with_unit({**own, 'seconds': best['seconds']})} torch {best['way']}"
              if best else "",
              ratio=best["seconds"] / own["seconds"] if best else None,
              bound=bound / own["seconds"] if bound else None, reason=note)


def moe_bytes(shape):
    """The fewest that a forward and backward of the experts move: each tensor once a product, weights
    and rows in bf16, gradients of the weights in f32."""
    rows, hidden, width = (shape[key] for key in ("tokens", "hidden", "width"))
    rows *= shape["top_k"]
    weights = 3 * shape["experts"] * hidden * width
    forward = 2 * (weights + rows * (2 * hidden + 3 * width))
    return 3 * forward + 2 * weights


def moe(check):
    """MoE layers with routing, permutation and combination, beside torch's grouped_mm. Forms that it
    does not have (f32, frozen experts) and the forward alone stand without it."""
    own = ours(check, "moe")
    compared = [line for line in own if line["measurement"] == LAYER + " bf16"]
    shapes = [sizes(line, MOE_SIZES) for line in compared]
    theirs, why = peer(check, "moe", shapes) if shapes else ([], "")
    for line in own:
        if not line["measurement"].startswith(("moe layer", LAYER)):
            continue
        shape = sizes(line, MOE_SIZES)
        tokens = shape["tokens"] * shape["top_k"] // shape["experts"]
        whole = line in compared
        name = line["measurement"].replace("forward and backward", "f+b")
        notes = [f"{tokens} tokens an expert", why if whole else ""]
        if whole and "H100" in " ".join(check.machine.names):
            notes.insert(0, goal(check, "500 TFLOP/s, at least 300", rate(line) >= 500e12))
        compare(check, f"{name} {line['shape']}", line, moe_bytes(shape) if whole else 0,
                [r for r in theirs if whole and r["shape"] == shape], "; ".join(filter(None, notes)))


def attention(check):
    """Forward and backward together, as the peer is timed; in bf16, as it computes. f32 stands alone."""
    lines = [line for line in ours(check, "attention") if line["measurement"].startswith("attention")]
    pairs = list(zip(lines[::2], lines[1::2]))
    shapes = [sizes(line, ATTENTION_SIZES) for line, _ in pairs if line["measurement"].endswith("bf16")]
    theirs, why = peer(check, "attention", shapes) if shapes else ([], "")
    for forward, backward in pairs:
        compute = forward["measurement"].split()[-1]
        compared = compute == "bf16"
        both = {key: forward[key] + backward[key] for key in ("seconds", "flops")}
        shape = sizes(forward, ATTENTION_SIZES)
        notes = [f"causal; forward {with_unit(forward)}, backward {with_unit(backward)}",
                 why if compared else ""]
        compare(check, f"attention f+b {compute} {forward['shape']}", both, 0,
                [r for r in theirs if compared and r["shape"] == shape],
                "; ".join(filter(None, notes)), wanted=1.0)


def products(check):
    """Dense maps and the loss, against the large product."""
    for line in ours(check, "products"):
        if "flops" in line:
            compare(check, f"{line['measurement']} {line['shape']}", line, 0)


def bandwidth(check):
    """Kernels that only move bytes, against the faster of both copies."""
    lines = [line for line in ours(check, "rows") if "bytes" in line]
    copies = [rate(line) for line in lines if line["measurement"] == "copy"]
    copy = max([*copies, check.rates.get("copy", 0)])
    for line in lines:
        check.add(f"{line['measurement']} {line['shape']}", MEASURED, figure=with_unit(line),
                  against=f"{copy / 1e9:.4g} GB/s copy", bound=rate(line) / copy,
                  reason="" if line["measurement"] == "copy"
                  else goal(check, "85 %", rate(line) >= 0.85 * copy))


def step(check):
    """A training step of an OLMoE-shaped model: this program, and transformers on the same
    checkpoint and tokens."""
    sys.path.insert(0, str(check.place.peers()))
    import gpu_step
    import run_hearth
    part, size = "training step, OLMoE", gpu_step.TINY if check.rehearsing else gpu_step.OLMOE
    if not check.place.program("hearth"):
        check.not_run(part, "hearth was not built")
        return
    try:
        turn = gpu_step.Turn(check, size)
        own = turn.hearth()
        theirs, why_no_peer = turn.peer()
    except run_hearth.Failed as error:
        check.add(part, FAILED, reason=str(error))
        return
    bound = bound_of(check, turn.flops(), turn.bytes())
    note = why_no_peer
    if theirs:
        note = "; ".join(filter(None, (goal(check, "ratio 1.5", theirs["step"] >= 1.5 * own["step"]),
                                       turn.note(own, theirs))))
    check.add(part, MEASURED, figure=f"{turn.tokens / own['step']:.0f} tok/s",
              against=f"{turn.tokens / theirs['step']:.0f} tok/s transformers" if theirs else "",
              ratio=theirs["step"] / own["step"] if theirs else None,
              bound=bound / own["step"] if bound else None,
              reason=note)
