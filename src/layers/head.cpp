// head: final norm, logits in chunks, and all losses. In training forward and backward are one
// task, so that logits never exist as a whole; in decoding it gives the last token's logits.
//
// Auxiliary load-balancing loss over M MoE layers and T tokens, with f[l, e] the share of tokens
// that chose e in layer l (summed over the k choices) and P[l, e] the mean probability:
//   per-layer  mean over l of E * sum_e f[l, e] P[l, e]
//   hf         E * sum_e mean_l(f[l, e]) mean_l(P[l, e])       (pooled, as transformers does)
// Its gradient of probs[l, t, e] is the same for all tokens: E f / (M T), f of the layer or pooled.
#include "layers/kinds.h"
#include "layers/linear.h"

namespace hearth {

namespace {

class Head final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    const DType type = s.settings.activations;
    // The head stands behind the last layer: its residual is that of layer L.
    std::vector<Port> list = {ports::hidden(s, Value::residual, Access::read),
                              ports::hidden(s, Value::tmp_normed, Access::temporary),
                              {.value = Value::tmp_rstd,
                               .access = Access::temporary,
                               .dtype = type,
                               .rows_per_token = 1}};
    if (s.pass == Pass::decode) {
      list.push_back({.value = Value::logits,
                      .access = Access::write,
                      .dtype = type,
                      .extra_rows = 1,
                      .cols = s.spec.vocabulary});
      return list;
    }
    list.push_back(ports::token_ints(Value::labels, Access::read));
    list.push_back(ports::scalar(Value::micro_tokens, Access::read));
    list.push_back(ports::scalar(Value::micro_trained_tokens, Access::read));
    list.push_back(ports::scalar(Value::loss, Access::write));
    list.push_back(ports::scalar(Value::aux_loss, Access::write));
    list.push_back(ports::scalar(Value::z_loss, Access::write));
    for (int32_t l = 0; l < s.spec.layers; ++l) {
      if (!s.spec.moe[static_cast<size_t>(l)]) continue;
      const auto offset = static_cast<int32_t>(l - s.spec.layers);
      for (const Value v : {Value::router_counts, Value::router_prob_sums}) {
        list.push_back({.value = v,
                        .access = Access::read,
                        .dtype = DType::f64,
                        .extra_rows = 1,
                        .cols = s.spec.experts,
                        .layer_offset = offset});
      }
      if (s.settings.z_loss != 0) {
        list.push_back({.value = Value::router_squares,
                        .access = Access::read,
                        .dtype = DType::f64,
                        .extra_rows = 1,
                        .layer_offset = offset});
      }
    }
    if (s.pass == Pass::train) {
      add_dropout_port(s, list);
      list.push_back(ports::scalar(Value::trained_tokens, Access::read));
      list.push_back(ports::scalar(Value::tokens, Access::read));
      list.push_back(ports::hidden(s, Value::d_residual, Access::write));
      list.push_back(ports::hidden(s, Value::tmp_hidden, Access::temporary));
      if (s.spec.moe_layers() > 0) {
        list.push_back({.value = Value::dprobs,
                        .access = Access::write,
                        .dtype = type,
                        .extra_rows = s.spec.moe_layers(),
                        .cols = s.spec.experts});
      }
    }
    return list;
  }

  std::vector<BlockUse> blocks(const TaskShape& s) const override {
    std::vector<BlockUse> uses;
    const auto use = [&](BlockId begin, BlockId end) {
      if (begin == end) return;
      uses.push_back({begin, end, BlockAccess::read_weights});
      if (s.pass == Pass::train) uses.push_back({begin, end, BlockAccess::add_gradient});
    };
    const BlockId head = s.table.find_block(BlockKind::head);
    const auto adapters = s.table.adapters_of(head, head + 1);
    use(head, head + 1);
    use(adapters.first, adapters.second);
    if (s.spec.tied_head) {
      const BlockId table = s.table.find_block(BlockKind::embedding);
      use(table, table + 1);
    }
    return uses;
  }

  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    const ScratchNeed norm = max_of(ops.row_scratch(s.tokens, s.spec.hidden),
                                    ops.router_losses_scratch(s.spec.moe_layers(), s.spec.experts));
    const BlockId head = s.table.find_block(BlockKind::head);
    const int64_t rank = s.table.rank_of(head, head + 1);
    if (s.pass == Pass::decode) {
      return max_of(norm, ops.linear_scratch(1, s.spec.vocabulary, s.spec.hidden, rank));
    }
    return max_of(norm,
                  ops.cross_entropy_scratch(s.tokens, s.spec.hidden, s.spec.vocabulary, rank));
  }
  size_t lists(const TaskShape& s) const override {
    return 3 * list_bytes<ConstView>(s.spec.moe_layers());
  }
  Work work(const TaskShape& s) const override {
    const double a_row =
        2.0 * static_cast<double>(s.spec.hidden) * static_cast<double>(s.spec.vocabulary);
    if (s.pass == Pass::decode) return {};
    const BlockId head = s.table.tensor(s.table.head_weight()).block;
    const double of_pair = pair_share(s.table, head, head + 1);
    if (s.pass != Pass::train) return {0, 0, a_row * (1 + of_pair)};
    const bool trained = s.table.tensor(s.table.head_weight()).trainable;
    return {0, 0, a_row * ((trained ? 3 : 2) + 3 * of_pair)};
  }

  void run(const BodyContext& c) const override {
    const TensorId norm = *c.table.find_slot(c.table.find_block(BlockKind::head), Slot::final_norm);
    const Tensor& weight = c.table.tensor(c.table.head_weight());
    const LinearView head =
        linear_of(c, weight.block, weight.slot, std::nullopt, c.settings.compute);
    const View normed = c.out(Value::tmp_normed);
    const View rstd = row_vector(c.out(Value::tmp_rstd));
    c.ops.rmsnorm_forward(c.stream, c.in(Value::residual), c.table.weight(norm), c.spec.norm_eps,
                          normed, rstd);
    if (c.pass == Pass::decode) {
      c.ops.linear_forward(c.stream, normed.slice(c.batch.tokens - 1, 1), head,
                           c.out(Value::logits));
      return;
    }
    const Labels labels(row_vector(c.in(Value::labels)),
                        static_cast<int64_t>(c.scalar(Value::micro_trained_tokens)));
    router_losses(c);
    if (c.pass == Pass::eval) {
      c.ops.cross_entropy(c.stream, normed, head, labels, 1, c.out(Value::loss), {}, {});
      return;
    }
    const double trained = c.scalar(Value::trained_tokens);
    const LinearGradient gradient =
        c.table.linear_gradient(weight.block, weight.slot, std::nullopt);
    const View d_normed = c.out(Value::tmp_hidden);
    c.ops.cross_entropy(c.stream, normed, head, labels, trained > 0 ? 1 / trained : 0,
                        c.out(Value::loss), d_normed, gradient);
    c.ops.rmsnorm_backward(c.stream, d_normed, c.in(Value::residual), c.table.weight(norm), rstd,
                           c.out(Value::d_residual), c.table.gradient(norm));
  }

 private:
  /// The step's loss holds coefficient * sum over micro-batches of (its share of tokens) * aux.
  static void router_losses(const BodyContext& c) {
    const int64_t layers = c.spec.moe_layers();
    auto counts = list_of<ConstView>(c, layers), prob_sums = list_of<ConstView>(c, layers),
         squares = list_of<ConstView>(c, layers);
    for (int32_t l = 0; l < c.spec.layers; ++l) {
      if (!c.spec.moe[static_cast<size_t>(l)]) continue;
      const auto offset = static_cast<int32_t>(l - c.spec.layers);
      counts.push_back(c.in(Value::router_counts, offset));
      prob_sums.push_back(c.in(Value::router_prob_sums, offset));
      if (c.settings.z_loss != 0) squares.push_back(c.in(Value::router_squares, offset));
    }
    RouterLosses options;
    options.pooled = c.settings.aux_mode == AuxLossMode::hf;
    options.tokens = c.scalar(Value::micro_tokens);
    View dprobs;
    if (c.pass == Pass::train && !counts.empty()) {
      options.aux_weight = c.settings.aux_loss * (options.tokens / c.scalar(Value::tokens));
      dprobs = c.out(Value::dprobs);
    }
    c.ops.router_losses(c.stream, options, counts, prob_sums, squares, c.out(Value::aux_loss),
                        c.out(Value::z_loss), dprobs);
  }
};

}  // namespace

const Body& head_body() {
  static const Head body;
  return body;
}

}  // namespace hearth
