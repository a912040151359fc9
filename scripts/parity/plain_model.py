"""The families written down from their definitions, over published tensors, in any float type.

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
        self.family = config["model_type"]

    def linear(self, x, name):
        y = x @ self.tensors[f"{name}.weight"].T
        bias = self.tensors.get(f"{name}.bias")
        return y if bias is None else y + bias

    def window(self, layer):
        """How many keys up to itself a query sees, None = all."""
        c = self.config
        if self.family == "olmoe" or (self.family != "mixtral" and not c.get("use_sliding_window")):
            return None
        if self.family == "qwen2_moe":
            slides = (c["layer_types"][layer] == "sliding_attention" if c.get("layer_types")
                      else layer % 2 == 0 and layer < c["max_window_layers"])
            return c["sliding_window"] if slides else None
        return c.get("sliding_window")

    def project(self, x, prefix, which, heads):
        """[tokens, heads, head_dim] of q, k or v, before rope."""
        y = self.linear(x, f"{prefix}.{which}_proj")
        norm = self.tensors.get(f"{prefix}.{which}_norm.weight")
        if norm is not None and self.family == "olmoe":
            y = rms_norm(y, norm, self.config["rms_norm_eps"])
        limit = self.config.get("clip_qkv") if self.family == "olmoe" else None
        if limit is not None:
            y = torch.where(y > limit, limit, torch.where(y < -limit, -limit, y))
        y = y.view(x.shape[0], heads, self.head_dim)
        if norm is not None and self.family == "qwen3_moe":
            y = rms_norm(y, norm, self.config["rms_norm_eps"])
        return y

    def attention(self, x, prefix, window):
        c = self.config
        heads, groups = c["num_attention_heads"], c["num_key_value_heads"]
        tokens = x.shape[0]
        q = rope(self.project(x, prefix, "q", heads), self.theta)
        k = rope(self.project(x, prefix, "k", groups), self.theta)
        v = self.project(x, prefix, "v", groups)
        i = torch.arange(tokens)
        visible = i[:, None] >= i[None, :]
        if window:
            visible &= i[:, None] - i[None, :] < window
        outputs = []
        for head in range(heads):
            group = head // (heads // groups)
            score = q[:, head] @ k[:, group].T * self.head_dim ** -0.5
            score = score.masked_fill(~visible, float("-inf"))
            outputs.append(score.softmax(-1) @ v[:, group])
        return self.linear(torch.cat(outputs, dim=-1), f"{prefix}.o_proj")

    def swiglu(self, x, prefix, names=("gate_proj", "up_proj", "down_proj")):
        gate, up = (self.linear(x, f"{prefix}.{name}") for name in names[:2])
        return self.linear(gate * gate.sigmoid() * up, f"{prefix}.{names[2]}")

    def is_moe(self, layer):
        if self.family in ("olmoe", "mixtral"):
            return True
        return (layer not in (self.config.get("mlp_only_layers") or [])
                and (layer + 1) % self.config.get("decoder_sparse_step", 1) == 0)

    def mixture(self, x, layer):
        mixtral = self.family == "mixtral"
        prefix = f"{layer}.block_sparse_moe" if mixtral else f"{layer}.mlp"
        names = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
        logits = x @ self.tensors[f"{prefix}.gate.weight"].T
        probability = logits.softmax(-1)
        weight, chosen = probability.topk(self.config["num_experts_per_tok"], dim=-1)
        if mixtral or self.config.get("norm_topk_prob"):
            weight = weight / weight.sum(-1, keepdim=True)
        y = torch.zeros_like(x)
        for expert in range(self.experts):
            token, slot = (chosen == expert).nonzero(as_tuple=True)
            out = self.swiglu(x[token], f"{prefix}.experts.{expert}", names)
            y = y.index_add(0, token, out * weight[token, slot, None])
        if self.family == "qwen2_moe":
            share = self.linear(x, f"{prefix}.shared_expert_gate").sigmoid()
            y = y + share * self.swiglu(x, f"{prefix}.shared_expert")
        return y, logits

    def embed(self, ids):
        x = self.tensors["model.embed_tokens.weight"][torch.tensor(ids)]
        padding = self.config.get("pad_token_id", 1 if self.family == "olmoe" else None)
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
            x = x + self.attention(h, f"{prefix}.self_attn", self.window(layer))
            h = rms_norm(x, self.tensors[f"{prefix}.post_attention_layernorm.weight"], eps)
            if self.is_moe(layer):
                y, logits = self.mixture(h, prefix)
                routers.append(logits)
            else:
                y = self.swiglu(h, f"{prefix}.mlp")
            x = x + y
        x = rms_norm(x, self.tensors["model.norm.weight"], eps)
        head = self.tensors.get("lm_head.weight", self.tensors["model.embed_tokens.weight"])
        return x @ head.T, routers
