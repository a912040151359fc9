"""The table of parity cases: what differs from the base in config.json, storage and options."""
from dataclasses import dataclass, field

# Odd widths, vocabulary and expert count. Qwen3-MoE: H/heads is 8 while head_dim is 12.
COMMON = dict(
    vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, num_experts_per_tok=2, hidden_act="silu", max_position_embeddings=128,
    rms_norm_eps=1e-6, initializer_range=0.25, tie_word_embeddings=False,
    router_aux_loss_coef=0.02, rope_parameters={"rope_theta": 1e6, "rope_type": "default"})
BASE_CONFIGS = dict(
    qwen3_moe=dict(COMMON, intermediate_size=40, moe_intermediate_size=13, head_dim=12,
                   num_experts=7, norm_topk_prob=True, attention_bias=False),
    olmoe=dict(COMMON, intermediate_size=13, num_experts=7, norm_topk_prob=False,
               attention_bias=False, rms_norm_eps=1e-5),
    mixtral=dict(COMMON, intermediate_size=13, num_local_experts=7, sliding_window=None),
    # Dimensions that hardly turn make attention indifferent to their bias of k: theta is small.
    qwen2_moe=dict(COMMON, intermediate_size=40, moe_intermediate_size=13,
                   shared_expert_intermediate_size=19, num_experts=7, norm_topk_prob=False,
                   rope_parameters={"rope_theta": 50.0, "rope_type": "default"}))

# Named as the options of `hearth train`.
BASE_TRAIN = dict(
    steps=12, micro_batch=2, grad_accum=2, seq_len=64, lr=3e-3, lr_schedule="cosine", warmup=3,
    weight_decay=0.1, beta1=0.9, beta2=0.999, eps=1e-8, max_grad_norm=1.0, router_aux_loss=0.01,
    aux_loss_mode="hf", decay_all=False, freeze=[], compute_dtype="f32",
    threads=1)  # on such small models workers mostly wait for each other


@dataclass
class Case:
    name: str
    about: str
    config: dict = field(default_factory=dict)   # over BASE_CONFIGS[family]
    train: dict = field(default_factory=dict)    # over BASE_TRAIN
    dtype: str = "float32"                       # as stored
    shard: str = "5GB"
    old_config: bool = False   # config.json as transformers 4 published it
    published: dict = field(default_factory=dict)  # over the written config.json
    idle_expert: bool = False  # one expert is never chosen
    rows: int = 11             # steps span the ends of epochs: 48 rows are read
    seed: int = 1
    extra: list = field(default_factory=list)    # options that must not change a number
    recorded: bool = False     # also a recorded case of tests/golden/parity
    family: str = "qwen3_moe"  # model_type

    def settings(self):
        """config.json's keys; None leaves one out."""
        settings = {**BASE_CONFIGS[self.family], **self.config}
        return {key: value for key, value in settings.items() if value is not None}


CASES = [
    Case("base", "GQA, head_dim apart from H/heads, normalised weights, aux hf", recorded=True),
    Case("bias_mha", "attention_bias, MHA, weights as they are, aux per-layer, linear",
         dict(attention_bias=True, num_key_value_heads=4, norm_topk_prob=False),
         dict(aux_loss_mode="per-layer", lr_schedule="linear", router_aux_loss=0.05),
         recorded=True),
    Case("dense_layers", "mlp_only_layers beside MoE layers, constant rate",
         dict(num_hidden_layers=3, mlp_only_layers=[1]),
         dict(lr_schedule="constant", aux_loss_mode="per-layer")),
    Case("sparse_step", "decoder_sparse_step 2 and mlp_only_layers, eps that shows in norms and AdamW",
         dict(num_hidden_layers=4, decoder_sparse_step=2, mlp_only_layers=[3], rms_norm_eps=0.02,
              num_experts=4),
         dict(eps=1e-4, beta1=0.8, beta2=0.95), recorded=True),
    Case("tied_old", "tied head, config.json of transformers 4, theta 1e4",
         dict(tie_word_embeddings=True, rope_parameters={"rope_theta": 1e4,
                                                         "rope_type": "default"}),
         old_config=True, recorded=True),
    Case("bf16_shards", "bf16 stored, in many shards with an index", dtype="bfloat16",
         shard="12KB", recorded=True),
    Case("f16", "f16 stored", dtype="float16"),
    Case("padding", "pad_token_id: its embedding gets no gradient", dict(pad_token_id=60),
         seed=3),
    Case("tied_bf16", "tied head, bf16, shards, config.json of transformers 4, pad_token_id",
         dict(tie_word_embeddings=True, pad_token_id=60), dtype="bfloat16", shard="20KB",
         old_config=True, seed=3),
    Case("top1", "one expert a token: its weight is 1, the gate learns from aux alone",
         dict(num_experts_per_tok=1), seed=2),
    Case("top1_plain", "one expert a token, weight as it is, one expert never chosen",
         dict(num_experts_per_tok=1, norm_topk_prob=False, num_experts=7), idle_expert=True,
         recorded=True),
    Case("idle_expert", "two experts a token, one expert never chosen",
         dict(num_experts=11, attention_bias=True), idle_expert=True),
    # Its aux loss is constant: with a coefficient, tokens outside the loss would step by noise.
    Case("all_experts", "every expert for every token",
         dict(num_experts=3, num_experts_per_tok=3), dict(router_aux_loss=0.0)),
    Case("window", "sliding window of 5 in every layer, pad_token_id",
         dict(use_sliding_window=True, sliding_window=5, pad_token_id=60), seed=3,
         recorded=True),
    Case("window_off", "window keys without use_sliding_window",
         published=dict(use_sliding_window=False, sliding_window=3, max_window_layers=1)),
    Case("no_head_dim", "head_dim left out, one key head for all", dict(head_dim=None,
                                                                         num_key_value_heads=1)),
    Case("no_clip", "no clipping, no aux, no decay, three micro-batches of one row",
         dict(norm_topk_prob=False),
         dict(max_grad_norm=0.0, router_aux_loss=0.0, weight_decay=0.0, micro_batch=1,
              grad_accum=3)),
    Case("decay_all", "decay of norms and biases too, other betas and eps, no warm-up",
         dict(attention_bias=True),
         dict(decay_all=True, beta1=0.8, beta2=0.95, eps=1e-5, warmup=0, weight_decay=0.5)),
    Case("frozen", "frozen router and norms", dict(attention_bias=True),
         dict(freeze=["*.mlp.gate.weight", "*norm.weight"])),
    Case("config_coef", "coefficient of config.json", dict(output_router_logits=True),
         dict(router_aux_loss=None)),
    Case("cut_rows", "rows cut to 12 ids, micro-batches of three", {},
         dict(seq_len=12, micro_batch=3)),
    Case("recompute", "blocks recomputed", dict(num_hidden_layers=3),
         extra=["--recompute", "blocks"]),
    Case("wide", "sizes past the tiles of the kernels",
         dict(hidden_size=144, head_dim=32, num_attention_heads=6, num_key_value_heads=3,
              moe_intermediate_size=80, num_experts=16, num_experts_per_tok=4,
              vocab_size=613, initializer_range=0.1),
         dict(micro_batch=3, threads=2)),
]

CASES += [Case(*words, family="olmoe", **more) for words, more in [
    (("olmoe", "norms of whole projections, weights as they are, aux per-layer",
      {}, dict(aux_loss_mode="per-layer")), dict(recorded=True)),
    (("olmoe_clip", "clip_qkv in every second element, biases, MHA",
      dict(clip_qkv=0.5, attention_bias=True, num_key_value_heads=4)), dict(recorded=True)),
    (("olmoe_kv1", "one key head for all, tied, normalised weights, config.json of transformers 4",
      dict(num_key_value_heads=1, tie_word_embeddings=True, norm_topk_prob=True)),
     dict(old_config=True)),
    (("olmoe_top1", "one expert a token, one never chosen, bf16 shards, clip_qkv",
      dict(num_experts_per_tok=1, clip_qkv=0.8)),
     dict(idle_expert=True, dtype="bfloat16", shard="12KB")),
    (("olmoe_frozen", "frozen norms and experts, blocks recomputed", dict(clip_qkv=1.0),
      dict(freeze=["*norm.weight", "*.mlp.experts.*"])), dict(extra=["--recompute", "blocks"])),
]]
CASES += [Case(*words, family="mixtral", **more) for words, more in [
    (("mixtral", "names of its own, always normalised", {}), dict(recorded=True, seed=2)),
    (("mixtral_window", "sliding window of 5, head_dim apart from H/heads, bf16 shards",
      dict(sliding_window=5, head_dim=12)),
     dict(dtype="bfloat16", shard="12KB", recorded=True)),
    (("mixtral_kv4", "MHA, tied, aux per-layer, config.json of transformers 4",
      dict(num_key_value_heads=4, tie_word_embeddings=True),
      dict(aux_loss_mode="per-layer")), dict(old_config=True)),
    (("mixtral_top1", "one expert a token, one never chosen, one key head for all",
      dict(num_experts_per_tok=1, num_key_value_heads=1)), dict(idle_expert=True)),
]]
CASES += [Case(*words, family="qwen2_moe", **more) for words, more in [
    (("qwen2", "shared expert, biases of q, k and v, weights as they are", {}),
     dict(recorded=True)),
    (("qwen2_windows", "a window in one of four layers, dense ones between, normalised weights",
      dict(num_hidden_layers=4, use_sliding_window=True, sliding_window=4, max_window_layers=2,
           decoder_sparse_step=2, norm_topk_prob=True), dict(aux_loss_mode="per-layer")),
     dict(published=dict(layer_types=None), recorded=True)),
    (("qwen2_types", "windows by layer_types, no biases, tied, mlp_only_layers",
      dict(num_hidden_layers=3, use_sliding_window=True, sliding_window=5, qkv_bias=False,
           layer_types=["full_attention", "sliding_attention", "full_attention"],
           mlp_only_layers=[1], tie_word_embeddings=True)), {}),
    (("qwen2_top1", "one expert a token, one never chosen, MHA, bf16 shards, transformers 4",
      dict(num_experts_per_tok=1, num_key_value_heads=4)),
     dict(idle_expert=True, dtype="bfloat16", shard="12KB", old_config=True)),
    (("qwen2_frozen", "frozen shared experts, one key head for all, blocks recomputed",
      dict(num_key_value_heads=1), dict(freeze=["*.shared_expert*"])),
     dict(extra=["--recompute", "blocks"])),
]]

# bf16 compute; judged together (bf16.py).
CASES += [
    Case(f"bf16_compute_{seed}", "bf16 compute beside torch's", config,
         dict(compute_dtype="bf16", lr=3e-4), dtype="bfloat16", seed=seed, family=family,
         recorded=seed in (12, 17))
    for seed, (family, config) in enumerate([
        ("qwen3_moe", dict(hidden_size=64, moe_intermediate_size=48)),
        ("qwen3_moe", dict(attention_bias=True)),
        ("qwen3_moe", dict(tie_word_embeddings=True, norm_topk_prob=False)),
        ("qwen3_moe", dict(hidden_size=96, num_hidden_layers=3, mlp_only_layers=[0])),
        ("olmoe", dict(clip_qkv=1.0)),
        ("mixtral", dict(hidden_size=64)),
        ("qwen2_moe", dict())], start=11)]


def find(name):
    return next(case for case in CASES if case.name == name)
