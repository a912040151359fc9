"""Faults that scripts/planted_faults plants: one replacement in a file. `old` occurs once there."""
from dataclasses import dataclass


@dataclass
class Fault:
    name: str
    file: str
    old: str
    new: str
    test: str = "test_parity"  # the executable that must fail


ATTENTION = "src/layers/attention_part.cpp"
GATE = "src/layers/router.cpp"
HEAD = "src/layers/head.cpp"
QKV = "src/layers/qkv.cpp"
MLP = "src/layers/mlp_part.cpp"
ELEMENTWISE = "cpu_kernels/elementwise.cpp"
FAMILY = "src/model/families/qwen3_moe.cpp"
OLMOE = "src/model/families/olmoe.cpp"
MIXTRAL = "src/model/families/mixtral.cpp"
QWEN2 = "src/model/families/qwen2_moe.cpp"
CONFIG = "src/model/families/decoder_config.cpp"
OPTIMIZER = "cpu_kernels/optimizer.cpp"
ROUTER = "cpu_kernels/router.cpp"
LOSSES = "cpu_kernels/router_losses.cpp"
EXPERTS = "cpu_kernels/experts_backward.cpp"
SAMPLER = "src/data/samples/sampler.cpp"
SESSION = "src/train/session.cpp"
RATE = "src/train/lr_schedule.h"
TOKENIZER = "src/data/tokenizer/"
CHAT = "src/data/chat/"
SAMPLES = "src/data/samples/"

FAULTS = [
    # Switches of config.json.
    Fault("norm_topk_prob ignored", FAMILY,
          'spec.normalize_weights = config.boolean("norm_topk_prob", false);',
          "spec.normalize_weights = true;"),
    Fault("norm_topk_prob never", FAMILY,
          'spec.normalize_weights = config.boolean("norm_topk_prob", false);',
          "spec.normalize_weights = false;"),
    Fault("window ignored", FAMILY, "read_window(config, spec);", ""),
    Fault("window of Mixtral ignored", MIXTRAL, "read_window(config, spec);", ""),
    Fault("windows in other layers", QWEN2, "i % 2 == 0 && i < end", "i % 2 == 1 && i < end"),
    Fault("windows beyond max_window_layers", QWEN2, "i % 2 == 0 && i < end",
          "i % 2 == 0 && i < end + 2"),
    Fault("Mixtral not renormalised", MIXTRAL, "spec.normalize_weights = true;", ""),
    Fault("Mixtral's w1 and w3 swapped", MIXTRAL, '"w1", "w3", "w2"', '"w3", "w1", "w2"'),
    Fault("clip_qkv ignored", OLMOE, 'spec.qkv_limit = config.number("clip_qkv", 1e-30, 1e30);',
          ""),
    Fault("padding of OLMoE ignored", OLMOE, "check_total(config, spec);",
          "check_total(config, spec);\n    spec.padding_id = -1;"),
    Fault("window one key wider", "cpu_kernels/attention_tiles.cpp",
          "lane_of(first + window)", "lane_of(first + window + 1)"),
    Fault("padding row has a gradient", "src/layers/embed.cpp", "c.spec.padding_id", "-1"),
    Fault("theta ignored", SESSION, "static_cast<float>(setup_.spec.rope_theta)", "1e4f"),
    Fault("norm eps ignored", CONFIG, 'spec.norm_eps = config.number("rms_norm_eps", 1e-30, 1);',
          "spec.norm_eps = 1e-6;"),
    Fault("sparse step from the front", CONFIG, "(i + 1) % step == 0", "i % step == 0"),
    # Attention.
    Fault("bias ignored", "src/layers/linear.cpp",
          "LinearView map = c.table.linear(block, weight, bias, compute);",
          "LinearView map = c.table.linear(block, weight, bias ? std::nullopt : bias, compute);"),
    Fault("o bias without gradient", ATTENTION,
          "w.add_gradient(d_mid, c.in(Value::attention), Slot::o, Slot::o_bias);",
          "w.add_gradient(d_mid, c.in(Value::attention), Slot::o, Slot::down);"),
    Fault("k norm with the weight of q", QKV, "w.norm(p.norm->weight), spec.norm_eps,",
          "w.norm(spec.qk_norm == QkNorm::head ? Slot::q_norm : p.norm->weight), spec.norm_eps,"),
    Fault("eps of a norm of its own", QKV, "w.norm(p.norm->weight), spec.norm_eps,",
          "w.norm(p.norm->weight), 0.05,"),
    Fault("whole norm's statistics of a head", QKV,
          """  if (spec.qkv_limit > 0) c.ops.clamp_forward""",
          """  if (p.is_normed(spec) && spec.qk_norm == QkNorm::whole) {
    for (int64_t t = 0; t < raw.rows; ++t) {
      for (int64_t h = 0; h < raw.cols; h += spec.head_dim) {
        double sum = 0;
        const int64_t end = h + spec.head_dim;
        for (int64_t i = h; i < end; ++i) sum += raw.row<float>(t)[i] * raw.row<float>(t)[i];
        const double rstd = 1 / __builtin_sqrt(sum / double(spec.head_dim) + spec.norm_eps);
        const double wrong = rstd / c.out(p.norm->rstd).as<float>()[t];
        for (int64_t i = h; i < end; ++i) unclamped.row<float>(t)[i] *= static_cast<float>(wrong);
      }
    }
  }
  if (spec.qkv_limit > 0) c.ops.clamp_forward"""),
    Fault("whole norm without gradient of its weight", QKV, "w.gradient(p.norm->weight));",
          "spec.qk_norm == QkNorm::whole ? View{} : w.gradient(p.norm->weight));"),
    Fault("clip forgotten in backward", QKV,
          "c.ops.clamp_backward(c.stream, dy, c.in(p.unclamped), spec.qkv_limit, dy);", ""),
    Fault("v not clamped", QKV, "if (spec.qkv_limit > 0) c.ops.clamp_forward(c.stream, unclamped, "
          "spec.qkv_limit, y);",
          "if (spec.qkv_limit > 0) c.ops.clamp_forward(c.stream, unclamped, "
          "p.norm ? spec.qkv_limit : 1e30, y);"),
    Fault("clip from below alone", ELEMENTWISE, "x[i] > limit ? limit : x[i];", "x[i];"),
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
    Fault("rope not undone for k", QKV, "rotate(c, p, dy, true);",
          "rotate(c, p, dy, p.out == Value::q);"),
    Fault("residual without gradient", ATTENTION,
          "c.ops.add(c.stream, d_mid, d_residual, d_residual);", ""),
    Fault("eps outside the root of norms", "cpu_kernels/rmsnorm.cpp", "1.0 / std::sqrt(mean + eps)",
          "1.0 / (std::sqrt(mean) + eps)"),
    # Gate and experts.
    Fault("gate weights without gradient", GATE,
          "router, d_logits, c.in(Value::normed));",
          "router, d_logits.slice(0, 0), c.in(Value::normed).slice(0, 0));"),
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
    Fault("derivative of silu", ELEMENTWISE, "(1.0f + g * (1.0f - s))",
          "(1.0f + g * s)"),
    Fault("shared expert without sigmoid", MLP,
          "      c.ops.sigmoid_gate_forward(c.stream, row_vector(logits), h, h);\n", ""),
    Fault("shared gate without gradient", MLP,
          "add_gradient(c, d_logits, normed, Slot::shared_gate);", ""),
    Fault("shared gate without gradient to its input", MLP,
          "c.ops.linear_dgrad(c.stream, d_logits, linear(c, Slot::shared_gate), d_normed, true);",
          ""),
    Fault("derivative of the shared gate", ELEMENTWISE, "static_cast<float>(sigmoid(-logit) * sum)",
          "static_cast<float>(sigmoid(-logit) * s * sum)"),
    Fault("shared down reads what was not weighed", MLP,
          "      c.ops.sigmoid_gate_forward(c.stream, logits, h, h);\n", ""),
    Fault("shared expert left out", "src/layers/combine.cpp", "base = out;",
          "base = c.moe() ? c.in(Value::mid) : ConstView(out);"),
    Fault("shared expert without gradient to its input", "src/layers/dispatch.cpp",
          "c.shared() ? ConstView(d_normed) : ConstView();", "ConstView();"),
    # Losses.
    Fault("loss divided per micro-batch", HEAD,
          "const double trained = c.scalar(Value::trained_tokens);",
          """double trained = 0;
    for (int64_t i = 0; i < labels.cols; ++i) trained += 2 * (labels.as<int32_t>()[i] >= 0);"""),
    Fault("loss divided by all tokens", HEAD,
          "const double trained = c.scalar(Value::trained_tokens);",
          "const double trained = c.scalar(Value::tokens);"),
    Fault("aux loss not times experts", LOSSES,
          "static_cast<double>(experts) / static_cast<double>(layers)",
          "1.0 / static_cast<double>(layers)"),
    Fault("aux loss without coefficient", HEAD,
          "c.settings.aux_loss * (options.tokens / c.scalar(Value::tokens))",
          "(options.tokens / c.scalar(Value::tokens))"),
    Fault("aux loss a micro-batch, not a share", HEAD,
          "c.settings.aux_loss * (options.tokens / c.scalar(Value::tokens))",
          "c.settings.aux_loss"),
    Fault("aux loss always per layer", HEAD,
          "options.pooled = c.settings.aux_mode == AuxLossMode::hf;", "options.pooled = false;"),
    Fault("aux loss always pooled", HEAD,
          "options.pooled = c.settings.aux_mode == AuxLossMode::hf;", "options.pooled = true;"),
    Fault("aux loss a mean of micro-batches", SESSION, "result.aux_loss += share *",
          "result.aux_loss += (share > 0 ? 0.5 : 0.0) *"),
    Fault("tied head without gradient", HEAD,
          "c.table.linear_gradient(weight.block, weight.slot, std::nullopt);",
          "c.spec.tied_head ? LinearGradient{} : "
          "c.table.linear_gradient(weight.block, weight.slot, std::nullopt);"),
    Fault("labels not shifted", SAMPLER,
          "static_cast<ptrdiff_t>(begin) + 1, batch.labels.end(),",
          "static_cast<ptrdiff_t>(begin), batch.labels.end(),"),
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
    Fault("bias correction one step late", "src/ops/adamw_step.cpp",
          "1 - std::pow(o.beta2, step)", "1 - std::pow(o.beta2, step + 1)"),
    Fault("decay not times rate", "src/ops/adamw_step.cpp",
          "static_cast<float>(o.lr * o.weight_decay)", "static_cast<float>(o.weight_decay)"),
    Fault("decay on norms and biases", "src/model/parameter_table.cpp",
          "tensor.decayed = !vector;", "tensor.decayed = true;"),
    Fault("tensors without gradient not decayed", OPTIMIZER,
          "moment1[i] = m;", "if (g == 0 && m == 0) continue;\n    moment1[i] = m;"),
    Fault("gradient not cleared", OPTIMIZER, "gradient[i] = 0;", ""),
    Fault("no clipping", "src/layers/clip.cpp", "limit > 0 ? std::min(1.0",
          "limit < 0 ? std::min(1.0"),
    Fault("rounded weights in f32", "src/model/parameter_memory.cpp",
          "trained && policy.compute == Compute::bf16 && enters_products",
          "trained && enters_products"),
    Fault("working copy stale", OPTIMIZER,
          "to_bf16_row(of(t.master, e.col), t.working.as<bf16>() + e.col, e.count);", ""),
    Fault("warm-up off by one", RATE,
          "return lr * static_cast<double>(s) / static_cast<double>(w);",
          "return lr * static_cast<double>(s + 1) / static_cast<double>(w);"),
    Fault("decay of the rate from step 0", RATE,
          "static_cast<double>(s - w) / static_cast<double>(n - w)",
          "static_cast<double>(s) / static_cast<double>(n)"),
    # The tokenizer: ids, spans and texts.
    *(Fault(name, TOKENIZER + file, old, new, "test_data") for name, file, old, new in [
        ("merges by place alone", "bpe_encode.cpp", "{ return a.rank < b.rank; }",
         "{ return a.rank != kNoRank && b.rank == kNoRank; }"),
        ("first of equal pairs counts", "bpe_encode.cpp", "merges_[at] = {pair, rank, joined};",
         "if (merges_[at].pair == kNoPair) merges_[at] = {pair, rank, joined};"),
        ("unknown tokens always fused", "bpe_encode.cpp", "if (unknown && fuse_unknown_) {",
         "if (unknown) {"),
        ("bytes of some characters", "bpe_encode.cpp", "byte_fallback_ && std::all_of(",
         "byte_fallback_ && std::any_of("),
        ("cached words of any length", "word_cache.h", "return entry.length == word.size() &&",
         "return entry.length >= word.size() &&"),
        ("first scheme always", "pre_tokenizers.cpp", "(first && words.begins_document(",
         "(first || words.begins_document("),
        ("invert ignored", "matcher.cpp", "splitter.take(match, !rule.invert);",
         "splitter.take(match, true);"),
        ("merged with previous, twice", "matcher.cpp", "is_match && !last_ ? extend(part)",
         "is_match ? extend(part)"),
        ("empty match behind a match", "matcher.h",
         "if (found->begin == found->end && found->end == last_end) {",
         "if (found->begin == found->end) {"),
        ("shortest added token", "added_tokens.cpp",
         "if (trie.ends[node] >= 0) longest = trie.ends[node], span.end = at + 1;",
         "if (trie.ends[node] >= 0 && longest < 0) longest = trie.ends[node], span.end = at + 1;"),
        ("single words anywhere", "added_tokens.cpp",
         "(token.single_word && beside_word(text, span))", "false"),
        ("white space of rstrip stays", "added_tokens.cpp",
         "if (token.rstrip) span.end = space_behind(text, span.end);", ""),
        ("prefix has no span", "aligned_text.cpp", "if (byte < change.to.end) return change.from;",
         "if (byte < change.to.end) return {change.from.begin, change.from.begin};"),
        ("spans of the first edit only", "aligned_text.cpp",
         "if (!edit->empty()) span = before(*edit, span);",
         "if (edit + 1 == edits_.rend()) span = before(*edit, span);"),
        ("marks in the order they come", "unicode_forms.cpp",
         "return combining_class(a) < combining_class(b);", "return false;"),
        ("half an interval possessive", "oniguruma.cpp",
         "const bool again = rest().starts_with('+') ||", "const bool again ="),
        ("\\s with U+0085 alone", "oniguruma.cpp", "\\x{85}\\x{a0}", "\\x{85}"),
        ("runs of bytes cut short", "decode_stages.cpp", "bytes_ += *byte;\n      return;",
         "bytes_ += *byte;\n      if (bytes_.size() == 2) finish(out);\n      return;"),
        ("strip keeps its count", "decode_stages.cpp",
         "if (part.begins) left_ = start_, held_ = 0, begins_ = true;",
         "if (part.begins) left_ = start_ + left_, held_ = 0, begins_ = true;"),
        ("template behind only", "post_processor.cpp", "(texts == 0 ? new_before : behind)",
         "(texts < 0 ? new_before : behind)"),
    ]),
    # Templates and masks.
    *(Fault(name, CHAT + file, old, new, "test_data") for name, file, old, new in [
        ("lstrip_blocks ignored", "jinja_lexer.cpp",
         "return leading_space(indent) == indent.size() ? text.substr(0, line) : text;",
         "return leading_space(indent) > indent.size() ? text.substr(0, line) : text;"),
        ("trim_blocks takes all space", "jinja_lexer.cpp",
         "} else if (!keep && rest_.starts_with('\\n')) {\n      advance(1);",
         "} else if (!keep && rest_.starts_with('\\n')) {\n      advance(leading_space(rest_));"),
        ("tojson in ASCII", "jinja_filters.cpp", "style.ascii = truth_or(bound[0], false);",
         "style.ascii = truth_or(bound[0], true);"),
        ("loop.last one early", "jinja_objects.cpp",
         'if (name == "last") return Value(!look_ahead());',
         'if (name == "last") return Value(length() - index0_ <= 2);'),
        ("header trained", "turn_finder.cpp",
         "if (text.starts_with(*prompt)) return prompt->size();",
         "if (text.starts_with(*prompt)) return prompt->empty() ? 0 : prompt->size() - 1;"),
        ("end of turn not trained", "turn_finder.cpp", "return span_of(*begin, with->size());",
         "return span_of(*begin, with->size() - 1);"),
        ("words of others may be trained", "mask.cpp",
         "if (words == Words::inside || (words == Words::unknown && by_piece)) {",
         "if (words == Words::inside && words == Words::unknown && by_piece) {"),
        ("all generation tags with last", "mask.cpp",
         "if (span.end > turn.begin && span.begin < turn.end) add_span(trained.trained, span);",
         "if (span.end > turn.begin || span.begin < turn.end) add_span(trained.trained, span);"),
        ("hidden generation tags believed", "mask.cpp", "if (whole.generated_hidden) {",
         "if (whole.generated_hidden && whole.text.empty()) {"),
        ("tags without the prompt of a completion", "mask.cpp",
         "within(whole.generated, trained.trained[0])",
         "within(whole.generated, {0, trained.trained[0].end})"),
        ("other turns with the words of the last", "turn_finder.cpp",
         "if (next != taken.end() && next->begin < end) continue;",
         "if (next != taken.end() && next->begin > text.size()) continue;"),
    ]),
    Fault("end token twice", "src/data/rows/row_converter.cpp",
          "encoding.ids.back() == with.end_id();", "encoding.ids.back() == with.end_id() + 1;",
          "test_data"),
    Fault("prompt of a text row trained", "src/data/rows/row_converter.cpp",
          "options.train_on == TrainOn::all ? 0 : prompt.size();",
          "options.train_on == TrainOn::all ? prompt.size() : 0;",
          "test_data"),
    # From rows to batches.
    *(Fault(name, SAMPLES + file, old, new, "test_data") for name, file, old, new in [
        ("row lost at the end of a window", "epoch_plan.cpp",
         "pack_window(set, seq_len, begin, i + 1, plan);",
         "pack_window(set, seq_len, begin, i + 1 == plan.rows.size() ? i + 1 : i, plan);"),
        ("cursor one too far behind an epoch", "sampler.cpp",
         "cursor_ = {cursor_.epoch + 1, 0};",
         "cursor_ = {cursor_.epoch + 1, current.sequences() > 1 ? 1 : 0};"),
        ("same fraction in each epoch", "row_set.cpp",
         "RandomSite::shuffle, static_cast<uint32_t>(epoch),",
         "RandomSite::shuffle, 0 * static_cast<uint32_t>(epoch),"),
        ("key without the template", "row_key.cpp",
         "hasher.update_field(template_identity({model, chat_template, template_date, "
         "follow_links}));",
         "static_cast<void>(template_identity({model, chat_template, template_date, "
         "follow_links}));"),
        ("words of an entry not checked", "store_file.cpp",
         "if (words.digest() != footer.words_digest || ", "if ("),
        ("bad rows counted for each file alone", "file_tokens.cpp",
         "FileTokens FileTokenizer::read(const std::string& path) {\n",
         "FileTokens FileTokenizer::read(const std::string& path) {\n  bad_ = 0;\n"),
        ("newest entry goes first", "row_cache.cpp",
         "std::tie(a.used, a.path) < std::tie(b.used, b.path)",
         "std::tie(a.used, a.path) > std::tie(b.used, b.path)"),
        ("rows for evaluation trained on", "run_rows.cpp",
         "(is_held ? held : train).push_back(static_cast<uint32_t>(row));",
         "if (is_held) held.push_back(static_cast<uint32_t>(row));\n"
         "      train.push_back(static_cast<uint32_t>(row));"),
        ("rows of a batch change places", "file_tokens.cpp",
         "    converted = std::move(current);\n",
         "    std::swap(converted, current);\n    if (converted.raw.size() > 1) "
         "std::swap(converted.rows.front(), converted.rows.back());\n"),
        ("first label of a cut row counts", "row_words.cpp", "std::min({begin, done, limit})",
         "std::min({done - n, done, limit})"),
        ("temporary file of a dead process stays", "row_cache.cpp",
         "        remove_file(path);\n      } catch (const Error&) {  // its maker",
         "        static_cast<void>(lock);\n      } catch (const Error&) {  // its maker"),
    ]),
]
