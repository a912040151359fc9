"""The models that are measured: small enough for 16 GB with AdamW, with products of real size."""

COMMON = dict(vocab_size=8192, hidden_size=1024, num_hidden_layers=4, num_attention_heads=16,
              num_key_value_heads=4, max_position_embeddings=4096, rms_norm_eps=1e-6,
              rope_theta=10000.0, hidden_act="silu", attention_dropout=0.0, initializer_range=0.02,
              tie_word_embeddings=False, router_aux_loss_coef=0.0, torch_dtype="float32")

CONFIGS = {
    "mixtral": {**COMMON, "architectures": ["MixtralForCausalLM"], "model_type": "mixtral",
                "intermediate_size": 2048, "num_local_experts": 8, "num_experts_per_tok": 2,
                "sliding_window": None},
    "olmoe": {**COMMON, "architectures": ["OlmoeForCausalLM"], "model_type": "olmoe",
              "num_key_value_heads": 16, "intermediate_size": 512, "num_experts": 64,
              "num_experts_per_tok": 8, "norm_topk_prob": False, "clip_qkv": None,
              "attention_bias": False, "rope_scaling": None},
    "qwen3": {**COMMON, "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
              "head_dim": 64, "intermediate_size": 3072, "moe_intermediate_size": 384,
              "num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": True,
              "decoder_sparse_step": 1, "mlp_only_layers": [], "attention_bias": False,
              "rope_scaling": None},
}


def expert_width(config):
    return config.get("moe_intermediate_size", config["intermediate_size"])


def experts(config):
    return config.get("num_experts", config.get("num_local_experts"))


def heads(config):
    """Widths of queries and of keys."""
    size = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    return size * config["num_attention_heads"], size * config["num_key_value_heads"]


def parameters(config):
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    q, kv = heads(config)
    layer = hidden * (2 * q + 2 * kv + experts(config)) \
        + 3 * experts(config) * hidden * expert_width(config)
    return 2 * config["vocab_size"] * hidden + layers * layer


def step_flops(config, batch, seq):
    """Floating-point operations of the products of a step, 2 a multiply-add: forward, gradient of
    the data, gradient of the weights; causal attention over the pairs that count, without what an
    implementation computes again."""
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    q, kv = heads(config)
    token = layers * (hidden * (2 * q + 2 * kv + experts(config))
                      + 3 * config["num_experts_per_tok"] * hidden * expert_width(config)) \
        + config["vocab_size"] * hidden
    pairs = batch * seq * (seq + 1) / 2
    return 6 * token * batch * seq + 12 * q * pairs * layers


def adapter_parameters(config, rank):
    """Of low-rank pairs on attention and on every expert."""
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    q, kv = heads(config)
    attention = 2 * (hidden + q) + 2 * (hidden + kv)
    return layers * rank * (attention + 3 * experts(config) * (hidden + expert_width(config)))


def lora_step_flops(config, batch, seq, rank):
    """The same where the model is frozen and the pairs are trained: no gradient of the model's
    weights, all three products of the pairs."""
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    q, kv = heads(config)
    chosen = 3 * config["num_experts_per_tok"]
    token = layers * (hidden * (2 * q + 2 * kv + experts(config))
                      + chosen * hidden * expert_width(config)) + config["vocab_size"] * hidden
    pairs_token = layers * rank * (2 * (hidden + q) + 2 * (hidden + kv)
                                   + chosen * (hidden + expert_width(config)))
    pairs = batch * seq * (seq + 1) / 2
    return (4 * token + 6 * pairs_token) * batch * seq + 12 * q * pairs * layers
