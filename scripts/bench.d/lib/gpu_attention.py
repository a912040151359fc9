"""Causal attention of PyTorch, forward and backward in bf16, by each of its back ends that agrees."""
import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel

WAYS = {"cuda": {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION},
        "cpu": {"flash": SDPBackend.FLASH_ATTENTION}}


def attention_seconds(timer, batch, seq, heads, kv_heads, head_dim):
    """(back end, seconds of forward and backward); those that decline the shape are left out."""
    def tensor(count):
        return torch.randn(batch, count, seq, head_dim, device=timer.device, dtype=torch.bfloat16)

    q, k, v = (tensor(count).requires_grad_() for count in (heads, kv_heads, kv_heads))
    dy = tensor(heads)

    def step():
        for parameter in (q, k, v):
            parameter.grad = None
        functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=heads != kv_heads).backward(dy)

    for name, back_end in WAYS[timer.device].items():
        try:
            with sdpa_kernel(back_end):
                yield name, timer.seconds(step)
        except RuntimeError as error:
            if "No available kernel" not in str(error) and "No viable backend" not in str(error):
                raise
