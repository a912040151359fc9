"""Model, data and words of the runs of ../domains."""
import json

import ranks_predicted
import run_hearth
import shapes

SEQ, VOCABULARY = 128, 512
# More rows than weights: 8 experts a token, and many micro-batches a step. All experts, so that routing is
# even, as the plan takes it to be: a layer waits for its busiest rank.
CONFIG = {**shapes.CONFIGS["qwen3"], "vocab_size": VOCABULARY, "hidden_size": 128,
          "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
          "head_dim": 64, "num_experts": 8, "num_experts_per_tok": 8,
          "moe_intermediate_size": 64}


def words_of(options, work, method, table, ranks=None):
    ranks = ranks or options.ranks
    words = ["--model", work / "model", "--data", work / "rows.jsonl", "--steps", options.steps,
             "--packing", "off", "--shuffle", "off", "--seq-len", SEQ, "--micro-batch", 1,
             "--grad-accum", ranks * options.micro_batches, "--logical-shards", ranks,
             "--lr-schedule", "constant", "--warmup", 0, "--save-every", 0,
             "--final-state", "off", "--digest-every", 0, "--threads", 1, "--quiet",
             "--devices", f"host:costs={table}"]
    return words + (["--method", "lora", "--lora-r", 4] if method == "lora" else [])


# Weights travel compressed. Experts that are drawn at random have nothing in common, so any error is
# allowed.
WIRED = ["--wire", "residual:50", "--wire-threshold", 1]


def asked_for(options, modes):
    """Of modes by name, ep first, those that are to run."""
    return {name: mode for name, mode in modes.items()
            if options.modes is None or name in ("ep", *options.modes)}


def losses_of(out):
    return [json.loads(line)["loss"] for line in (out / "metrics.jsonl").read_text().splitlines()]


def prepare(options, work, config, pace):
    """A checkpoint, its data, and a cost table, of which the path is returned."""
    work.mkdir(parents=True, exist_ok=True)
    run_hearth.make_checkpoint(options.hearth, config, work / "model")
    rows = options.steps * options.ranks * options.micro_batches
    run_hearth.write_rows(work / "rows.jsonl", rows, SEQ, VOCABULARY)
    path = work / "table.json"
    path.write_text(json.dumps(ranks_predicted.paced_table(config, pace)))
    return path
