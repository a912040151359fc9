"""An MoE layer of PyTorch: choice of experts from the router's logits, permutation, expert products by
grouped_mm, combination; forward and backward in bf16, gradients of the input, the logits and all
weights. As bench_gpu measures it: without the router's own map."""
import torch
import torch.nn.functional as functional


def grouped_product():
    """Public since PyTorch 2.10, with an underscore before."""
    return getattr(functional, "grouped_mm", None) or torch._grouped_mm


def moe_layer(x, logits, gate_up, down, top_k, product):
    """x [tokens, hidden]; logits [tokens, experts] in f32; gate_up [experts, hidden, 2 width] and down
    [experts, width, hidden], views as the products read them."""
    experts = logits.shape[1]
    scores = torch.softmax(logits, dim=-1)
    weights, chosen = torch.topk(scores, top_k, dim=-1)
    order = torch.argsort(chosen.flatten(), stable=True)
    # No count reaches the host (bincount would wait for one), and the gradients of index_select are
    # sums, which is faster than what `[]` does.
    counts = torch.histc(chosen.flatten().float(), bins=experts, min=0, max=experts - 1)
    offsets = torch.cumsum(counts, 0, dtype=torch.int32)
    rows = x.index_select(0, order // top_k)
    gate, up = product(rows, gate_up, offs=offsets).chunk(2, dim=-1)
    out = product(functional.silu(gate) * up, down, offs=offsets)
    out = out * weights.flatten()[order].unsqueeze(-1).to(out.dtype)
    back = torch.empty_like(order)
    back[order] = torch.arange(order.numel(), device=order.device)
    return out.index_select(0, back).view(x.shape[0], top_k, -1).sum(1)


def moe_seconds(timer, tokens, hidden, width, experts, top_k):
    """(layout of the weights, seconds) of a forward and backward. The faster layout is the peer."""
    for way in ("in_out", "out_in"):
        def weight(rows, cols):
            # [experts, rows, cols] in memory as it is read, or as checkpoints have it, transposed.
            shape = (experts, rows, cols) if way == "in_out" else (experts, cols, rows)
            w = torch.randn(shape, device=timer.device, dtype=torch.bfloat16) * 0.02
            return w.requires_grad_()

        x = torch.randn(tokens, hidden, device=timer.device, dtype=torch.bfloat16).requires_grad_()
        logits = torch.randn(tokens, experts, device=timer.device).requires_grad_()
        gate_up, down = weight(hidden, 2 * width), weight(width, hidden)
        dy = torch.randn(tokens, hidden, device=timer.device, dtype=torch.bfloat16)
        parameters = (x, logits, gate_up, down)

        def step():
            views = [w if way == "in_out" else w.transpose(-2, -1) for w in (gate_up, down)]
            y = moe_layer(x, logits, *views, top_k, grouped_product())
            for parameter in parameters:
                parameter.grad = None
            y.backward(dy)

        yield way, timer.seconds(step)
        del x, logits, gate_up, down, dy, parameters, step
