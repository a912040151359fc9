"""Faults that scripts/planted_faults plants: one replacement in a file. `old` occurs once there."""
from dataclasses import dataclass


@dataclass
class Fault:
    name: str
    file: str
    old: str
    new: str


ATTENTION = "src/layers/attention_part.cpp"
GATE = "src/layers/gate.cpp"
HEAD = "src/layers/head.cpp"
FAMILY = "src/model/families/qwen3_moe.cpp"
OPTIMIZER = "cpu_kernels/optimizer.cpp"
ROUTER = "cpu_kernels/router.cpp"
EXPERTS = "cpu_kernels/experts_backward.cpp"
SAMPLER = "src/data/sampler.cpp"
SESSION = "src/train/session.cpp"
RATE = "src/train/lr_schedule.h"

FAULTS = [
    # Switches of config.json.
    Fault("norm_topk_prob ignored", FAMILY,
          'spec.normalize_weights = config.boolean("norm_topk_prob", false);',
          "spec.normalize_weights = true;"),
    Fault("norm_topk_prob never", FAMILY,
          'spec.normalize_weights = config.boolean("norm_topk_prob", false);',
          "spec.normalize_weights = false;"),
    Fault("window ignored", FAMILY,
          'spec.window = config.integer("sliding_window", 1, kMaxPositions);',
          'spec.window = 0 * config.integer("sliding_window", 1, kMaxPositions);'),
    Fault("window one key wider", "cpu_kernels/attention_tiles.cpp",
          "lane_of(first + window)", "lane_of(first + window + 1)"),
    Fault("padding row has a gradient", "src/layers/embed.cpp", "c.spec.padding_id", "-1"),
    Fault("theta ignored", SESSION, "static_cast<float>(setup_.spec.rope_theta)", "1e4f"),
    Fault("norm eps ignored", FAMILY, 'spec.norm_eps = config.number("rms_norm_eps", 1e-30, 1);',
          "spec.norm_eps = 1e-6;"),
    Fault("sparse step from the front", FAMILY, "(i + 1) % step == 0", "i % step == 0"),
    # Attention.
    Fault("bias ignored", ATTENTION,
          "return c.table.linear(block, weight, bias, c.settings.compute);",
          "return c.table.linear(block, weight, bias == Slot::down ? std::optional(bias) : "
          "std::nullopt, c.settings.compute);"),
    Fault("o bias without gradient", ATTENTION,
          "w.add_gradient(d_mid, c.in(Value::attention), Slot::o, Slot::o_bias);",
          "w.add_gradient(d_mid, c.in(Value::attention), Slot::o, Slot::down);"),
    Fault("k norm with the weight of q", ATTENTION, "head_norm(c, w, Slot::k_norm, k_raw",
          "head_norm(c, w, Slot::q_norm, k_raw"),
    Fault("scale from hidden size", ATTENTION,
          "1.0 / std::sqrt(static_cast<double>(spec.head_dim))",
          "1.0 / std::sqrt(static_cast<double>(spec.hidden / spec.heads))"),
    Fault("key heads repeated wrongly", "cpu_kernels/attention_tiles.h",
          "return kv_head * group() + (begin + lane) % group();",
          "return (begin + lane) % group() * shape.kv_heads + kv_head;"),
    Fault("rope interleaved", "cpu_kernels/rope.cpp",
          """s = sign * sine[i], x1 = first[i], x2 = second[i];
    first[i] = x1 * c - x2 * s;
    second[i] = x2 * c + x1 * s;""",
          """s = sign * sine[i], x1 = first[2 * i], x2 = first[2 * i + 1];
    first[2 * i] = x1 * c - x2 * s;
    first[2 * i + 1] = x2 * c + x1 * s + 0 * second[i];"""),
    Fault("rope not undone for k", ATTENTION,
          "c.ops.rope(c.stream, dk, spec.kv_heads, positions, cosine, sine, true);",
          "c.ops.rope(c.stream, dk, spec.kv_heads, positions, cosine, sine, false);"),
    Fault("residual without gradient", ATTENTION,
          "c.ops.add(c.stream, d_mid, d_residual, d_residual);", ""),
    Fault("eps outside the root of norms", "cpu_kernels/rmsnorm.cpp", "1.0 / std::sqrt(mean + eps)",
          "1.0 / (std::sqrt(mean) + eps)"),
    # Gate and experts.
    Fault("gate weights without gradient", GATE,
          "if (const View gradient = c.table.gradient(id)) {",
          "if (const View gradient = c.table.gradient(id); false) {"),
    Fault("gate without gradient to its input", GATE,
          "c.ops.linear_dgrad(c.stream, d_logits, router, d_normed, true);",
          "static_cast<void>(d_normed);"),
    Fault("normalisation not differentiated", ROUTER,
          "(dw[j] - mean) / divisor", "dw[j] / divisor"),
    Fault("softmax over the chosen", ROUTER,
          "w[j] = static_cast<float>(p[chosen[j]] / divisor);",
          "w[j] = static_cast<float>(p[chosen[j]] / (0 * divisor + "
          "weight_divisor(p, chosen, k, true)));"),
    Fault("expert gradient not weighted", EXPERTS, "scale_row(weight, to, to, cols.count);", ""),
    Fault("derivative of silu", "cpu_kernels/elementwise.cpp", "(1.0f + g * (1.0f - s))",
          "(1.0f + g * s)"),
    # Losses.
    Fault("loss divided per micro-batch", HEAD,
          "const double trained = c.scalar(Value::trained_tokens);",
          """double trained = 0;
    for (int64_t i = 0; i < labels.cols; ++i) trained += 2 * (labels.as<int32_t>()[i] >= 0);"""),
    Fault("loss divided by all tokens", HEAD,
          "const double trained = c.scalar(Value::trained_tokens);",
          "const double trained = c.scalar(Value::tokens);"),
    Fault("aux loss not times experts", HEAD,
          "static_cast<double>(experts) / static_cast<double>(layers)",
          "1.0 / static_cast<double>(layers)"),
    Fault("aux loss without coefficient", HEAD,
          "c.settings.aux_loss * (tokens / c.scalar(Value::tokens))",
          "(tokens / c.scalar(Value::tokens))"),
    Fault("aux loss a micro-batch, not a share", HEAD,
          "c.settings.aux_loss * (tokens / c.scalar(Value::tokens))", "c.settings.aux_loss"),
    Fault("aux loss always per layer", HEAD, "if (c.settings.aux_mode == AuxLossMode::hf) {",
          "if (c.settings.aux_mode != AuxLossMode::hf && layers < 0) {"),
    Fault("aux loss always pooled", HEAD, "if (c.settings.aux_mode == AuxLossMode::hf) {",
          "if (layers > 0) {"),
    Fault("aux loss a mean of micro-batches", SESSION, "result.aux_loss += share *",
          "result.aux_loss += (share > 0 ? 0.5 : 0.0) *"),
    Fault("tied head without gradient", HEAD,
          "c.out(Value::loss), d_normed, c.table.gradient(weight));",
          "c.out(Value::loss), d_normed, c.spec.tied_head ? View{} : c.table.gradient(weight));"),
    Fault("labels not shifted", SAMPLER,
          """labels.begin() + 1, labels.end());
  batch.labels.push_back(kIgnoredLabel);""",
          "labels.begin(), labels.end());"),
    Fault("rows see each other", SAMPLER,
          "batch.offsets.push_back(static_cast<int32_t>(batch.tokens));",
          "if (batch.offsets.size() > 1) batch.offsets.pop_back();\n"
          "  batch.offsets.push_back(static_cast<int32_t>(batch.tokens));"),
    # Optimizer.
    Fault("eps inside the root", OPTIMIZER,
          "std::fma(std::sqrt(v), s.root_c2, s.eps)",
          "std::sqrt(std::fma(v, s.root_c2 * s.root_c2, s.eps))"),
    Fault("eps before bias correction", OPTIMIZER,
          "std::fma(std::sqrt(v), s.root_c2, s.eps)",
          "((std::sqrt(v) + s.eps) * s.root_c2)"),
    Fault("bias correction one step late", OPTIMIZER,
          "1 - std::pow(o.beta2, static_cast<double>(o.step))",
          "1 - std::pow(o.beta2, static_cast<double>(o.step + 1))"),
    Fault("decay not times rate", OPTIMIZER,
          "decay(static_cast<float>(o.lr * o.weight_decay))",
          "decay(static_cast<float>(o.weight_decay))"),
    Fault("decay on norms and biases", "src/model/parameter_table.cpp",
          "tensor.decayed = !vector;", "tensor.decayed = true;"),
    Fault("tensors without gradient not decayed", OPTIMIZER,
          "moment1[i] = m;", "if (g == 0 && m == 0) continue;\n    moment1[i] = m;"),
    Fault("gradient not cleared", OPTIMIZER, "gradient[i] = 0;", ""),
    Fault("no clipping", "src/layers/norm.cpp", "limit > 0 ? std::min(1.0",
          "limit < 0 ? std::min(1.0"),
    Fault("rounded weights in f32", "src/model/parameter_memory.cpp",
          "trained && policy.compute == Compute::bf16 && enters_products",
          "trained && enters_products"),
    Fault("working copy stale", OPTIMIZER,
          "to_bf16_row(at(master), working.row<bf16>(e.row) + e.col, e.count);", ""),
    Fault("warm-up off by one", RATE,
          "return lr * static_cast<double>(s) / static_cast<double>(w);",
          "return lr * static_cast<double>(s + 1) / static_cast<double>(w);"),
    Fault("decay of the rate from step 0", RATE,
          "static_cast<double>(s - w) / static_cast<double>(n - w)",
          "static_cast<double>(s) / static_cast<double>(n)"),
]
