"""Fine-tuning as docs and torch define it, for any model that gives logits and router logits.

Each row of a micro-batch is its own sequence, run alone: no padding, no masks.
"""
import math

import torch
from transformers.models.qwen3_moe.modeling_qwen3_moe import load_balancing_loss_func


def learning_rate(options, step):
    """Rate of step `step` from 0."""
    n, warmup, rate = options["steps"], options["warmup"], options["lr"]
    if step < warmup:
        return rate * step / warmup
    x = (step - warmup) / (n - warmup)
    return {"constant": rate, "linear": rate * (1 - x),
            "cosine": rate * (1 + math.cos(math.pi * x)) / 2}[options["lr_schedule"]]


def aux_loss_hf(routers, top_k):
    return load_balancing_loss_func(tuple(routers), routers[0].shape[-1], top_k)


def aux_loss_per_layer(routers, top_k):
    """Mean over layers of E * sum_e (choices of e a token) * (mean probability of e)."""
    total = 0
    for logits in routers:
        tokens, experts = logits.shape
        probability = logits.softmax(-1)
        chosen = torch.zeros_like(probability)
        chosen.scatter_(1, probability.topk(top_k).indices, 1.0)
        total = total + experts * (chosen.mean(0) * probability.mean(0)).sum()
    return total / len(routers)


AUX_LOSSES = {"hf": aux_loss_hf, "per-layer": aux_loss_per_layer}


def cut(row, seq_len):
    ids = row["input_ids"][:seq_len]
    return ids, row.get("labels", row["input_ids"])[:seq_len]


def trained_tokens(labels):
    return sum(label != -100 for label in labels[1:])


def cross_entropy_sum(logits, labels):
    """In the logits' type, f32 at least; 0 where no token is trained."""
    if not trained_tokens(labels):
        return logits.sum() * 0
    if logits.dtype in (torch.bfloat16, torch.float16):
        logits = logits.float()
    return torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(labels[1:]),
                                             ignore_index=-100, reduction="sum")


class Routing:
    """Choices of experts seen so far, and how near the nearest one came to a tie."""

    def __init__(self, top_k):
        self.top_k, self.margin, self.counts = top_k, math.inf, None

    def see(self, routers):
        counts = []
        for logits in routers:
            if self.top_k < logits.shape[-1]:
                best = logits.detach().topk(self.top_k + 1).values
                self.margin = min(self.margin, (best[:, -2] - best[:, -1]).min().item())
            chosen = logits.topk(self.top_k).indices.flatten()
            counts.append(torch.bincount(chosen, minlength=logits.shape[-1]))
        counts = torch.stack(counts)
        self.counts = counts if self.counts is None else self.counts + counts

    def load(self):
        """Max over mean of the experts' tokens, a layer."""
        return (self.counts.max(1).values / self.counts.double().mean(1)).tolist()


def micro_batch_pass(model, rows, options, top_k):
    """(sum of cross-entropies, aux loss, router logits) of one micro-batch."""
    loss, routers = 0, []
    for ids, labels in rows:
        logits, router = model.forward(ids)
        loss = loss + cross_entropy_sum(logits, labels)
        routers.append(router)
    routers = [torch.cat(layer) for layer in zip(*routers)]
    return loss, AUX_LOSSES[options["aux_loss_mode"]](routers, top_k), routers


def evaluate(model, rows, options, top_k):
    rows = [cut(row, options["seq_len"]) for row in rows]
    tokens = sum(len(ids) for ids, _ in rows)
    trained = sum(trained_tokens(labels) for _, labels in rows)
    loss = aux = 0.0
    with torch.no_grad():
        for i in range(0, len(rows), options["micro_batch"]):
            micro = rows[i:i + options["micro_batch"]]
            ce, a, _ = micro_batch_pass(model, micro, options, top_k)
            loss += ce.item() / trained
            aux += a.item() * sum(len(ids) for ids, _ in micro) / tokens
    return dict(loss=loss, aux_loss=aux, tokens=tokens, trained_tokens=trained)


def parameter_groups(named, options):
    undecayed = lambda name: name.endswith("norm.weight") or name.endswith(".bias")
    keep = [p for n, p in named if undecayed(n) and not options["decay_all"]]
    decay = [p for n, p in named if not undecayed(n) or options["decay_all"]]
    return [dict(params=decay, weight_decay=options["weight_decay"]),
            dict(params=keep, weight_decay=0.0)]


def groups_by_ratio(named, options, ratios):
    """The same, apart by what multiplies the learning rate: ratios[name], else 1."""
    groups = []
    for ratio in sorted({ratios.get(name, 1) for name, _ in named}):
        some = [(n, p) for n, p in named if ratios.get(n, 1) == ratio]
        groups += [dict(group, ratio=ratio) for group in parameter_groups(some, options)]
    return groups


def train(model, rows, options, coefficient, top_k):
    """Trains model.parameters(); returns the records of the steps and the Routing of them all."""
    named = model.parameters()
    parameters = [p for _, p in named]
    ratios = getattr(model, "ratios", {})
    optimizer = torch.optim.AdamW(groups_by_ratio(named, options, ratios), lr=options["lr"],
                                  betas=(options["beta1"], options["beta2"]), eps=options["eps"])
    everything, records, position = Routing(top_k), [], 0
    for step in range(options["steps"]):
        model.refresh()
        rate = learning_rate(options, step)
        for group in optimizer.param_groups:
            group["lr"] = rate * group["ratio"]
        batches = []
        for _ in range(options["grad_accum"]):
            batches.append([cut(rows[(position + i) % len(rows)], options["seq_len"])
                            for i in range(options["micro_batch"])])
            position += options["micro_batch"]
        tokens = [sum(len(ids) for ids, _ in micro) for micro in batches]
        trained = sum(trained_tokens(labels) for micro in batches for _, labels in micro)
        loss = aux = 0.0
        seen = Routing(top_k)
        optimizer.zero_grad()
        for micro, count in zip(batches, tokens):
            ce, a, routers = micro_batch_pass(model, micro, options, top_k)
            share = count / sum(tokens)
            model.backward(ce / trained + coefficient * share * a)
            loss += ce.item() / trained
            aux += a.item() * share
            seen.see(routers)
            everything.see(routers)
        norm = torch.nn.utils.clip_grad_norm_(parameters, options["max_grad_norm"] or math.inf)
        optimizer.step()
        records.append(dict(step=step + 1, loss=loss, aux_loss=aux, grad_norm=norm.item(), lr=rate,
                            tokens=sum(tokens), trained_tokens=trained, expert_load=seen.load()))
    model.refresh()
    return records, everything
