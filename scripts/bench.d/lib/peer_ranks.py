"""One rank of the peer of several: transformers with torch's DistributedDataParallel over gloo and
AdamW trains a checkpoint in f32, one sequence a rank and step. With `ep` the ranks share the experts
(peer_experts.py).

usage: peer_ranks.py CHECKPOINT ROWS --steps N [--parallel dp|ep]
Ranks come from Open MPI's environment. Rank 0 prints one JSON object: seconds and loss of each step.
"""
import argparse
import json
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoModelForCausalLM
from transformers.utils import logging

import peer_experts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint")
    parser.add_argument("rows")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--parallel", choices=["dp", "ep"], default="dp")
    options = parser.parse_args()
    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    ranks = int(os.environ["OMPI_COMM_WORLD_SIZE"])
    os.environ.update(MASTER_ADDR="10.77.0.1", MASTER_PORT="29511", GLOO_SOCKET_IFNAME="eth0")
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    model = AutoModelForCausalLM.from_pretrained(
        options.checkpoint, dtype=torch.float32, attn_implementation="sdpa", use_cache=False)
    model.train()
    own = peer_experts.share_experts(model) if options.parallel == "ep" else []
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, own)
    # Experts without a token have no gradient; the reducer must know.
    shared = DistributedDataParallel(model, find_unused_parameters=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.0, fused=True)
    with open(options.rows) as rows:
        ids = torch.tensor([json.loads(row)["input_ids"] for row in rows])
    seconds, losses = [], []
    for step in range(options.steps):
        batch = ids[step * ranks + rank:step * ranks + rank + 1]
        begin = time.perf_counter()
        loss = shared(input_ids=batch, labels=batch).loss
        loss.backward()
        if own:
            for name in own:  # of the mean over all ranks, as DistributedDataParallel has it
                gradient = model.get_parameter(name).grad
                if gradient is not None:
                    gradient.div_(ranks)
            peer_experts.clip(model, own, 1.0)
        else:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.perf_counter() - begin)
        total = loss.detach().clone()
        dist.all_reduce(total)
        losses.append(total.item() / ranks)
    if rank == 0:
        print(json.dumps({"seconds": seconds, "losses": losses}), flush=True)
    dist.destroy_process_group()


main()
