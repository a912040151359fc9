"""One turn of the peer: transformers with torch.optim.AdamW trains a checkpoint, with --lora RANK
PEFT's adapters on attention and on every expert.

usage: peer.py CHECKPOINT ROWS --dtype f32|bf16 --impl NAME --batch N --steps N --threads N --lr X
               [--lora RANK] [--device cuda]
Prints one JSON object: seconds of each step, the losses, peak memory of the process (of the GPU),
and on a CPU what torch reaches right after.
"""
import argparse
import json
import time

import torch
from transformers import AutoModelForCausalLM
from transformers.utils import logging

import torch_rates


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint")
    parser.add_argument("rows")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--impl", default="grouped_mm")
    for name in ("batch", "steps", "threads"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--lora", type=int, default=0)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    return parser.parse_args()


def peak_bytes():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def with_adapters(model, rank):
    from peft import LoraConfig, get_peft_model
    return get_peft_model(model, LoraConfig(
        r=rank, lora_alpha=2 * rank, lora_dropout=0.0,
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj"],
        target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]))


def main():
    options = arguments()
    torch.set_num_threads(options.threads)
    logging.disable_progress_bar()
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[options.dtype]
    model = AutoModelForCausalLM.from_pretrained(
        options.checkpoint, dtype=dtype, attn_implementation="sdpa",
        experts_implementation=options.impl, use_cache=False).to(options.device)
    if options.lora:
        model = with_adapters(model, options.lora)
    model.train()
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=options.lr, weight_decay=0.0, fused=True)
    with open(options.rows) as rows:
        ids = torch.tensor([json.loads(row)["input_ids"] for row in rows], device=options.device)

    seconds, losses = [], []
    for step in range(options.steps):
        batch = ids[step * options.batch:(step + 1) * options.batch]
        begin = time.perf_counter()
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if options.device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
        losses.append(loss.item())
    on_cpu = options.device == "cpu"
    result = {"seconds": seconds, "losses": losses,
              "peak_bytes": peak_bytes() if on_cpu else torch.cuda.max_memory_allocated(),
              "parameters": sum(p.numel() for p in parameters)}
    del model, parameters, optimizer, loss
    if on_cpu:
        result["rates"] = torch_rates.measure(options.threads)
    print(json.dumps(result))


main()
