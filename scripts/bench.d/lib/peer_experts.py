"""Expert parallelism of the peer: each rank has the experts of a part of the numbers, and rows go to them
and back by all-to-all (torch.distributed over gloo). Routing is that of transformers' block."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional


class Exchange(torch.autograd.Function):
    """Rows, sorted by receiver; backward sends the gradients back."""

    @staticmethod
    def forward(ctx, rows, sent, received):
        ctx.sent, ctx.received = sent, received
        out = rows.new_empty(sum(received), rows.shape[1])
        dist.all_to_all_single(out, rows.contiguous(), received, sent)
        return out

    @staticmethod
    def backward(ctx, gradient):
        rows = gradient.new_empty(sum(ctx.sent), gradient.shape[1])
        dist.all_to_all_single(rows, gradient.contiguous(), ctx.sent, ctx.received)
        return rows, None, None


def stacked(block):
    """The experts' weights, [experts, 2 width, hidden] and [experts, hidden, width]."""
    experts = block.experts
    if hasattr(experts, "gate_up_proj"):  # transformers 5
        return experts.gate_up_proj.data, experts.down_proj.data
    both = [torch.cat([one.gate_proj.weight.data, one.up_proj.weight.data]) for one in experts]
    return torch.stack(both), torch.stack([one.down_proj.weight.data for one in experts])


class SharedBlock(nn.Module):
    """A block of which this rank computes experts [rank E/N, (rank + 1) E/N)."""

    def __init__(self, block, config):
        super().__init__()
        rank, ranks = dist.get_rank(), dist.get_world_size()
        gate_up, down = stacked(block)
        self.experts = gate_up.shape[0]
        self.each = self.experts // ranks
        if self.each * ranks != self.experts:
            raise SystemExit("peer: the ranks must divide the experts")
        own = slice(rank * self.each, (rank + 1) * self.each)
        self.gate_up = nn.ParameterList(nn.Parameter(one.clone()) for one in gate_up[own])
        self.down = nn.ParameterList(nn.Parameter(one.clone()) for one in down[own])
        self.router = nn.Parameter(block.gate.weight.data.clone())
        self.k, self.normalise = config.num_experts_per_tok, config.norm_topk_prob
        with torch.no_grad():  # transformers 4 gives the logits, too
            found = block(torch.zeros(1, 1, gate_up.shape[2]))
        self.gives_logits = isinstance(found, tuple)

    def compute(self, rows, counts):
        """Rows by sender and, of a sender, by expert: counts [senders, own experts]."""
        pieces = rows.split(counts.flatten().tolist())
        out = [None] * len(pieces)
        for expert in range(self.each):
            places = range(expert, len(pieces), self.each)
            gate, up = functional.linear(torch.cat([pieces[i] for i in places]),
                                         self.gate_up[expert]).chunk(2, dim=-1)
            done = functional.linear(functional.silu(gate) * up, self.down[expert])
            for i, piece in zip(places, done.split([len(pieces[i]) for i in places])):
                out[i] = piece
        return torch.cat(out)

    def forward(self, hidden):
        tokens = hidden.reshape(-1, hidden.shape[-1])
        logits = functional.linear(tokens, self.router)
        weights, chosen = functional.softmax(logits, dim=-1, dtype=torch.float32).topk(self.k)
        if self.normalise:
            weights = weights / weights.sum(dim=-1, keepdim=True)
        order = chosen.flatten().argsort(stable=True)
        token = order // self.k
        counts = torch.bincount(chosen.flatten(), minlength=self.experts).view(-1, self.each)
        theirs = torch.empty_like(counts)
        dist.all_to_all_single(theirs, counts)
        sent, received = counts.sum(1).tolist(), theirs.sum(1).tolist()
        rows = Exchange.apply(tokens[token], sent, received)
        back = Exchange.apply(self.compute(rows, theirs), received, sent)
        weighted = back * weights.flatten()[order].unsqueeze(1).to(back.dtype)
        out = torch.zeros_like(tokens).index_add(0, token, weighted).view_as(hidden)
        return (out, logits) if self.gives_logits else out


def share_experts(model):
    """Puts SharedBlock in the place of each block with experts. Returns the names of the parameters that
    this rank alone has."""
    for layer in model.model.layers:
        if hasattr(layer.mlp, "experts"):
            layer.mlp = SharedBlock(layer.mlp, model.config)
    return [name for name, _ in model.named_parameters() if ".gate_up." in name or ".down." in name]


def clip(model, own, most):
    """torch's clip_grad_norm_, where the parameters `own` differ from rank to rank."""
    own = set(own)
    with_gradient = [(name, p.grad) for name, p in model.named_parameters() if p.grad is not None]
    squares = torch.zeros(2)
    for name, gradient in with_gradient:
        squares[int(name in own)] += gradient.square().sum()
    dist.all_reduce(squares[1:])
    factor = most / (squares.sum().sqrt() + 1e-6)
    if factor < 1:
        for _, gradient in with_gradient:
            gradient.mul_(factor)
