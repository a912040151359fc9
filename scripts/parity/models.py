"""The models that training.py trains, each with published tensors in and out."""
import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM
from transformers.utils import logging

from plain_model import PlainModel

logging.disable_progress_bar()


def load_config(directory):
    return json.loads((Path(directory) / "config.json").read_text())


def load_tensors(directory):
    """Published name -> tensor as stored."""
    tensors = {}
    for path in sorted(Path(directory).glob("*.safetensors")):
        tensors.update(load_file(path))
    return tensors


# What Mixtral's checkpoints call the parts of a layer's experts.
MIXTRAL = {".mlp.": ".block_sparse_moe.", "gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}


def published(named, model_type):
    """Published, per-expert names for transformers' tensors (fused ones: rows gate, then up)."""
    tensors = {}
    for name, value in by_expert(named).items():
        for part, other in MIXTRAL.items() if model_type == "mixtral" else ():
            name = name.replace(part, other)
        tensors[name] = value
    return tensors


def by_expert(named):
    tensors = {}
    for name, value in named:
        stem, _, last = name.rpartition(".")
        if last == "gate_up_proj":
            for e, (gate, up) in enumerate(v.chunk(2) for v in value):
                tensors[f"{stem}.{e}.gate_proj.weight"] = gate
                tensors[f"{stem}.{e}.up_proj.weight"] = up
        elif last == "down_proj":
            for e, down in enumerate(value):
                tensors[f"{stem}.{e}.down_proj.weight"] = down
        else:
            tensors[name] = value
    return tensors


class Transformers:
    """transformers' model with f32 masters; `dtype` is the type it computes in."""

    def __init__(self, directory, frozen, dtype=torch.float32):
        # grouped_mm, the default for experts, refuses widths that are no multiple of 16 bytes.
        self.model, self.info = AutoModelForCausalLM.from_pretrained(
            directory, dtype=dtype, output_loading_info=True, experts_implementation="eager")
        self.model.train()
        self.masters = {}
        stored = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
        for (name, p), (_, value) in zip(self.model.named_parameters(), stored.named_parameters()):
            p.requires_grad_(not frozen(name))
            master = p if dtype == torch.float32 else value.detach().clone().requires_grad_()
            self.masters[name] = master

    def parameters(self):
        return [(n, self.masters[n]) for n, p in self.model.named_parameters() if p.requires_grad]

    def forward(self, ids):
        out = self.model(input_ids=torch.tensor([ids]), output_router_logits=True, use_cache=False)
        return out.logits[0], list(out.router_logits)

    def backward(self, loss):
        loss.backward()
        for name, p in self.model.named_parameters():
            master = self.masters[name]
            if p is not master and p.grad is not None:  # accumulated in f32
                gradient = p.grad.float()
                master.grad = gradient if master.grad is None else master.grad + gradient
                p.grad = None

    def refresh(self):
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                if p is not self.masters[name]:
                    p.copy_(self.masters[name])

    def tensors(self):
        return {n: t.detach().clone() for n, t in published(
            self.masters.items(), self.model.config.model_type).items()}


class Plain(PlainModel):
    """plain_model.py's, in any float type."""

    def __init__(self, directory, frozen, dtype=torch.float64):
        tensors = {n: t.to(dtype) for n, t in load_tensors(directory).items()}
        if load_config(directory).get("tie_word_embeddings"):
            tensors.pop("lm_head.weight", None)
        for name, tensor in tensors.items():
            tensor.requires_grad_(not frozen(name))
        super().__init__(load_config(directory), tensors)

    def parameters(self):
        return [(n, t) for n, t in self.tensors.items() if t.requires_grad]

    def backward(self, loss):
        loss.backward()
        for _, p in self.parameters():  # an expert without tokens
            if p.grad is None:
                p.grad = torch.zeros_like(p)

    def refresh(self):
        pass
