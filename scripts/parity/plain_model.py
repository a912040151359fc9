"""Qwen3-MoE written down from its definition, over a dict of published tensors, in any float type.

An oracle beside transformers: it shares no code with it, works in f64 throughout (transformers
computes norms, gate and rope in f32 whatever it is asked for), and uses the published names.
"""
import torch

FLOAT64 = torch.float64


def rms_norm(x, weight, eps):
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))


def rope(x, theta):
    """x: [tokens, heads, dim]; dimension i turns with i + dim/2 by position * theta^(-2i/dim)."""
    tokens, _, dim = x.shape
    half = dim // 2
    frequency = theta ** (-torch.arange(half, dtype=FLOAT64) * 2 / dim)
    angle = torch.arange(tokens, dtype=FLOAT64)[:, None] * frequency
    cos, sin = angle.cos().to(x.dtype)[:, None], angle.sin().to(x.dtype)[:, None]
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class PlainModel:
    def __init__(self, config, tensors):
        """config: the parsed config.json; tensors: published name -> tensor."""
        self.config, self.tensors = config, tensors
        self.theta = (config.get("rope_parameters") or config)["rope_theta"]
        self.experts = config.get("num_experts") or config["num_local_experts"]
        self.head_dim = config.get("head_dim") or (
            config["hidden_size"] // config["num_attention_heads"])
        self.window = config["sliding_window"] if config.get("use_sliding_window") else None

    def linear(self, x, name):
        y = x @ self.tensors[f"{name}.weight"].T
        bias = self.tensors.get(f"{name}.bias")
        return y if bias is None else y + bias

    def attention(self, x, prefix):
        c, eps = self.config, self.config["rms_norm_eps"]
        heads, groups = c["num_attention_heads"], c["num_key_value_heads"]
        tokens = x.shape[0]
        q = self.linear(x, f"{prefix}.q_proj").view(tokens, heads, self.head_dim)
        k = self.linear(x, f"{prefix}.k_proj").view(tokens, groups, self.head_dim)
        v = self.linear(x, f"{prefix}.v_proj").view(tokens, groups, self.head_dim)
        q = rope(rms_norm(q, self.tensors[f"{prefix}.q_norm.weight"], eps), self.theta)
        k = rope(rms_norm(k, self.tensors[f"{prefix}.k_norm.weight"], eps), self.theta)
        i = torch.arange(tokens)
        visible = i[:, None] >= i[None, :]
        if self.window:
            visible &= i[:, None] - i[None, :] < self.window
        outputs = []
        for head in range(heads):
            group = head // (heads // groups)
            score = q[:, head] @ k[:, group].T * self.head_dim ** -0.5
            score = score.masked_fill(~visible, float("-inf"))
            outputs.append(score.softmax(-1) @ v[:, group])
        return self.linear(torch.cat(outputs, dim=-1), f"{prefix}.o_proj")

    def swiglu(self, x, prefix):
        gate = self.linear(x, f"{prefix}.gate_proj")
        return self.linear(gate * gate.sigmoid() * self.linear(x, f"{prefix}.up_proj"),
                           f"{prefix}.down_proj")

    def is_moe(self, layer):
        return (layer not in (self.config.get("mlp_only_layers") or [])
                and (layer + 1) % self.config.get("decoder_sparse_step", 1) == 0)

    def mixture(self, x, prefix):
        logits = x @ self.tensors[f"{prefix}.gate.weight"].T
        probability = logits.softmax(-1)
        weight, chosen = probability.topk(self.config["num_experts_per_tok"], dim=-1)
        if self.config.get("norm_topk_prob"):
            weight = weight / weight.sum(-1, keepdim=True)
        y = torch.zeros_like(x)
        for expert in range(self.experts):
            token, slot = (chosen == expert).nonzero(as_tuple=True)
            out = self.swiglu(x[token], f"{prefix}.experts.{expert}")
            y = y.index_add(0, token, out * weight[token, slot, None])
        return y, logits

    def embed(self, ids):
        x = self.tensors["model.embed_tokens.weight"][torch.tensor(ids)]
        padding = self.config.get("pad_token_id")
        if padding is None:
            return x
        keep = torch.tensor([[id != padding] for id in ids])  # no gradient into its row
        return torch.where(keep, x, x.detach())

    def forward(self, ids):
        """Logits [tokens, vocabulary] of one sequence, and router logits, a MoE layer."""
        eps, routers = self.config["rms_norm_eps"], []
        x = self.embed(ids)
        for layer in range(self.config["num_hidden_layers"]):
            prefix = f"model.layers.{layer}"
            h = rms_norm(x, self.tensors[f"{prefix}.input_layernorm.weight"], eps)
            x = x + self.attention(h, f"{prefix}.self_attn")
            h = rms_norm(x, self.tensors[f"{prefix}.post_attention_layernorm.weight"], eps)
            if self.is_moe(layer):
                y, logits = self.mixture(h, f"{prefix}.mlp")
                routers.append(logits)
            else:
                y = self.swiglu(h, f"{prefix}.mlp")
            x = x + y
        x = rms_norm(x, self.tensors["model.norm.weight"], eps)
        head = self.tensors.get("lm_head.weight", self.tensors["model.embed_tokens.weight"])
        return x @ head.T, routers
