#include "support/faulty_ops.h"

#include <cmath>
#include <limits>
#include <utility>

#include "ops/adamw_step.h"
#include "support/planted.h"

namespace hearth::test {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

std::vector<float> copy_of(ConstView v) {
  std::vector<float> all;
  for (int64_t r = 0; r < v.rows; ++r)
    all.insert(all.end(), v.row<float>(r), v.row<float>(r) + v.cols);
  return all;
}

/// Heads of x [T, heads * width] in another order: as attention takes them if a key head served
/// every `kv_heads`-th query head, instead of neighbours; `back` undoes it.
void regroup(ConstView x, int64_t heads, int64_t kv_heads, bool back, View y) {
  const int64_t group = heads / kv_heads, width = x.cols / heads;
  const std::vector<float> from = copy_of(x);
  for (int64_t t = 0; t < x.rows; ++t) {
    for (int64_t kv = 0; kv < kv_heads; ++kv) {
      for (int64_t lane = 0; lane < group; ++lane) {
        const int64_t right = kv * group + lane, wrong = lane * kv_heads + kv;
        const float* head = from.data() + t * x.cols + (back ? right : wrong) * width;
        std::copy(head, head + width, y.row<float>(t) + (back ? wrong : right) * width);
      }
    }
  }
}

AttentionShape wrong_shape(const BodyContext& c, AttentionShape shape) {
  if (planted("window-one-key-wider") && shape.window > 0) ++shape.window;
  if (planted("scale-from-hidden-size")) {
    shape.scale = 1 / std::sqrt(static_cast<double>(c.spec.hidden / c.spec.heads));
  }
  return shape;
}

/// AdamW in plain loops, with the faults that are in the middle of it.
void wrong_adamw(const AdamWOptions& options, const AdamWTensors& t) {
  AdamWOptions late = options;
  ++late.step;
  AdamWStep s = adamw_step(options);
  if (planted("bias-correction-one-step-late")) s.root_c2 = adamw_step(late).root_c2;
  if (planted("decay-not-times-rate")) s.decay = static_cast<float>(options.weight_decay);
  auto* w = t.master.as<float>();
  auto *m = t.moment1.as<float>(), *v = t.moment2.as<float>(), *gradient = t.gradient.as<float>();
  for (int64_t i = 0; i < t.master.size(); ++i) {
    const float g = gradient[i] * s.gradient_scale;
    if (!planted("gradient-not-cleared")) gradient[i] = 0;
    m[i] = s.beta1 * m[i] + s.rest1 * g;
    v[i] = s.beta2 * v[i] + s.rest2 * g * g;
    if (planted("tensors-without-gradient-not-decayed") && g == 0 && m[i] == 0) continue;
    float root = std::sqrt(v[i]) * s.root_c2 + s.eps;
    if (planted("eps-inside-the-root")) root = std::sqrt(v[i] * s.root_c2 * s.root_c2 + s.eps);
    if (planted("eps-before-bias-correction")) root = (std::sqrt(v[i]) + s.eps) * s.root_c2;
    w[i] -= w[i] * s.decay + s.rate * m[i] / root;
  }
  if (t.working) {
    for (int64_t r = 0; r < t.working.rows; ++r) {
      convert(DType::f32, t.master.row<float>(r), t.working.dtype, t.working.slice(r, 1).raw(),
              static_cast<size_t>(t.working.cols));
    }
  }
}

bool wrong_in_the_middle_of_adamw() {
  for (const char* fault : {"bias-correction-one-step-late", "decay-not-times-rate",
                            "gradient-not-cleared", "tensors-without-gradient-not-decayed",
                            "eps-inside-the-root", "eps-before-bias-correction"}) {
    if (planted(fault)) return true;
  }
  return false;
}

}  // namespace

void spoil(View v) {
  if (!v || v.size() == 0) return;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  convert(DType::f32, &nan, v.dtype, v.raw(), 1);
}

namespace {

thread_local const FaultyTask* running = nullptr;

template <auto Member, class... P>
void pass_on(Stream& stream, P... arguments) {
  (FaultyTask::current().right().*Member)(stream, arguments...);
}
template <auto Method, class... P>
void compute(Stream& stream, P... arguments) {
  (FaultyTask::current().*Method)(stream, arguments...);
}

class FaultyOps final : public OpSet {
 public:
  FaultyOps() {
    faulty<&FaultyTask::embedding_forward>(embedding_forward);
    faulty<&FaultyTask::rmsnorm_forward>(rmsnorm_forward);
    faulty<&FaultyTask::rmsnorm_backward>(rmsnorm_backward);
    faulty<&FaultyTask::linear_forward>(linear_forward);
    faulty<&FaultyTask::linear_dgrad>(linear_dgrad);
    faulty<&FaultyTask::linear_wgrad>(linear_wgrad);
    faulty<&FaultyTask::rope>(rope);
    faulty<&FaultyTask::attention_forward>(attention_forward);
    faulty<&FaultyTask::attention_backward>(attention_backward);
    faulty<&FaultyTask::router_forward>(router_forward);
    faulty<&FaultyTask::router_backward>(router_backward);
    faulty<&FaultyTask::router_losses>(router_losses);
    faulty<&FaultyTask::combine>(combine);
    faulty<&FaultyTask::experts_forward>(experts_forward);
    faulty<&FaultyTask::experts_backward>(experts_backward);
    faulty<&FaultyTask::swiglu_backward>(swiglu_backward);
    faulty<&FaultyTask::sigmoid_gate_forward>(sigmoid_gate_forward);
    faulty<&FaultyTask::sigmoid_gate_backward>(sigmoid_gate_backward);
    faulty<&FaultyTask::clamp_forward>(clamp_forward);
    faulty<&FaultyTask::clamp_backward>(clamp_backward);
    faulty<&FaultyTask::add>(add);
    faulty<&FaultyTask::cross_entropy>(cross_entropy);
    faulty<&FaultyTask::adamw>(adamw);
    right<&OpTable::embedding_backward>();
    right<&OpTable::router_sums>();
    right<&OpTable::router_z_forward>();
    right<&OpTable::router_z_backward>();
    right<&OpTable::route>();
    right<&OpTable::permute>();
    right<&OpTable::to_expert_order>();
    right<&OpTable::to_token_order>();
    right<&OpTable::swiglu_forward>();
    right<&OpTable::cast>();
    right<&OpTable::clear>();
    right<&OpTable::sum_squares>();
  }
  std::string_view name() const override { return "planted"; }
  bool supports(DType activations, Compute type) const override {
    return FaultyTask::current().right().supports(activations, type);
  }

 private:
  template <auto Method, class... P>
  static void faulty(Op<void(Stream&, P...)>& op) {
    op.add("planted", &compute<Method, P...>);
  }
  template <auto Member>
  void right() {
    add_right<Member>(this->*Member);
  }
  template <auto Member, class... P>
  static void add_right(Op<void(Stream&, P...)>& op) {
    op.add("planted", &pass_on<Member, P...>);
  }
};

}  // namespace

FaultyTask::FaultyTask(const BodyContext& context, TaskKind kind)
    : c_(context), kind_(kind), outer_(std::exchange(running, this)) {}
FaultyTask::~FaultyTask() { running = outer_; }

const OpSet& FaultyTask::ops() {
  static const FaultyOps table;
  return table;
}

const FaultyTask& FaultyTask::current() { return *running; }

bool FaultyTask::is(ConstView v, Value value, int32_t layer_offset) const {
  for (const BoundPort& bound : c_.ports) {
    if (bound.port.value != value || bound.port.layer_offset != layer_offset) continue;
    return v.data == bound.data;
  }
  return false;
}

bool FaultyTask::is_weight(ConstView v, Slot slot) const {
  if (kind_ != TaskKind::attention) return false;
  const auto id = c_.table.find_slot(c_.table.find_block(BlockKind::attention, c_.layer), slot);
  return id && v.data == c_.table.weight(*id).data;
}

// ---- embedding and norms -----------------------------------------------------------------------

void FaultyTask::embedding_forward(Stream& stream, ConstView ids, ConstView table, View out) const {
  right().embedding_forward(stream, ids, table, out);
  // Token 7 of the data: so a test chooses steps and micro-batches.
  if (!planted("nan-token-7")) return;
  for (int64_t t = 0; t < out.rows; ++t) {
    if (ids.as<int32_t>()[t] == 7) spoil(out.slice(t, 1));
  }
}

void FaultyTask::rmsnorm_forward(Stream& stream, ConstView x, ConstView weight, double eps, View y,
                                 View rstd) const {
  const bool of_k = is_weight(weight, Slot::k_norm), of_q = is_weight(weight, Slot::q_norm);
  if (of_k && planted("k-norm-with-the-weight-of-q") && c_.spec.qk_norm == QkNorm::head) {
    const BlockId block = c_.table.find_block(BlockKind::attention, c_.layer);
    weight = c_.table.weight(*c_.table.find_slot(block, Slot::q_norm));
  }
  if ((of_k || of_q) && planted("eps-of-a-norm-of-its-own")) eps = 0.05;
  right().rmsnorm_forward(stream, x, weight, eps, y, rstd);
  if (planted("eps-outside-the-root-of-norms")) {
    for (int64_t r = 0; r < y.rows; ++r) {
      float& right = rstd.as<float>()[r];
      const double mean = 1 / (static_cast<double>(right) * right) - eps;
      const double wrong = 1 / (std::sqrt(mean > 0 ? mean : 0) + eps);
      for (int64_t i = 0; i < y.cols; ++i) y.row<float>(r)[i] *= static_cast<float>(wrong / right);
      right = static_cast<float>(wrong);
    }
  }
  if ((of_k || of_q) && c_.spec.qk_norm == QkNorm::whole &&
      planted("statistics-of-a-head-in-a-whole-norm")) {
    for (int64_t r = 0; r < y.rows; ++r) {
      for (int64_t h = 0; h < y.cols; h += c_.spec.head_dim) {
        double sum = 0;
        const int64_t end = h + c_.spec.head_dim;
        for (int64_t i = h; i < end; ++i) sum += x.row<float>(r)[i] * x.row<float>(r)[i];
        const double of_head = 1 / std::sqrt(sum / static_cast<double>(c_.spec.head_dim) + eps);
        const double wrong = of_head / rstd.as<float>()[r];
        for (int64_t i = h; i < end; ++i) y.row<float>(r)[i] *= static_cast<float>(wrong);
      }
    }
  }
}

void FaultyTask::rmsnorm_backward(Stream& stream, ConstView dy, ConstView x, ConstView weight,
                                  ConstView rstd, View dx, View weight_gradient) const {
  const bool of_qk = is_weight(weight, Slot::k_norm) || is_weight(weight, Slot::q_norm);
  if (of_qk && c_.spec.qk_norm == QkNorm::whole && planted("whole-norm-without-its-gradient")) {
    weight_gradient = {};
  }
  right().rmsnorm_backward(stream, dy, x, weight, rstd, dx, weight_gradient);
}

// ---- linear maps -------------------------------------------------------------------------------

View FaultyTask::rounded(ConstView weight) const {
  std::vector<float>& copy = memory_.emplace_back(copy_of(weight));
  for (float& x : copy) x = round_to_bf16(x);
  return {copy.data(), DType::f32, weight.rows, weight.cols};
}

LinearView FaultyTask::wrong(const LinearView& w) const {
  LinearView map = w;
  if (planted("bias-ignored")) map.bias = {};
  if (map.low_rank && planted("alpha-not-divided")) {
    map.low_rank.scale *= static_cast<double>(map.low_rank.rank());
  }
  if (map.low_rank && c_.pass == Pass::eval && planted("dropout-at-evaluation")) {
    map.low_rank.dropout = {c_.settings.lora_dropout, 12345, {}};
  }
  // Not the router's and the shared expert's gate.
  const bool router = kind_ == TaskKind::attention && map.out() == c_.spec.experts;
  if (map.out() > 1 && !router && map.compute == Compute::f32 && map.weight.dtype == DType::f32 &&
      planted("rounded-weights-in-f32")) {
    map.weight = rounded(map.weight);
  }
  return map;
}

std::vector<ExpertView> FaultyTask::wrong(std::span<const ExpertView> experts) const {
  std::vector<ExpertView> all;
  for (const ExpertView& e : experts) {
    all.push_back({wrong(e.gate), wrong(e.up), wrong(e.down)});
    if (c_.spec.family == "mixtral" && planted("w1-and-w3-of-mixtral-swapped")) {
      std::swap(all.back().gate, all.back().up);
    }
  }
  return all;
}

void FaultyTask::linear_forward(Stream& stream, ConstView x, const LinearView& w, View y) const {
  right().linear_forward(stream, x, wrong(w), y);
}

void FaultyTask::linear_dgrad(Stream& stream, ConstView dy, const LinearView& w, View dx,
                              bool accumulate) const {
  if (kind_ == TaskKind::attention && is(dy, Value::tmp_logits) &&
      planted("router-without-gradient-to-its-input")) {
    return;
  }
  if (is(dy, Value::mlp_logits) && planted("shared-gate-without-gradient-to-its-input")) return;
  right().linear_dgrad(stream, dy, wrong(w), dx, accumulate);
}

void FaultyTask::linear_wgrad(Stream& stream, ConstView dy, ConstView x, const LinearView& w,
                              const LinearGradient& gradient) const {
  if (kind_ == TaskKind::attention && is(dy, Value::tmp_logits) &&
      planted("router-weights-without-gradient")) {
    return;
  }
  if (is(dy, Value::mlp_logits) && planted("shared-gate-without-gradient")) return;
  if (is(dy, Value::mlp_up) && planted("pair-gradient-dropped")) return;
  LinearGradient added = gradient;
  if (is(x, Value::attention) && planted("o-bias-without-gradient")) added.bias = {};
  if (added) right().linear_wgrad(stream, dy, x, wrong(w), added);
}

// ---- attention ---------------------------------------------------------------------------------

void FaultyTask::rope(Stream& stream, View x, int64_t heads, ConstView positions, ConstView cosine,
                      ConstView sine, bool inverse) const {
  if (inverse && is(x, Value::tmp_k) && planted("rope-not-undone-for-k")) return;
  if (planted("theta-ignored")) {
    std::vector<float>& c = memory_.emplace_back(copy_of(cosine));
    std::vector<float>& s = memory_.emplace_back(copy_of(sine));
    for (int64_t p = 0; p < cosine.rows; ++p) {
      for (int64_t i = 0; i < cosine.cols; ++i) {
        const double angle =
            static_cast<double>(p) *
            std::pow(1e4, -static_cast<double>(i) / static_cast<double>(cosine.cols));
        c[static_cast<size_t>(p * cosine.cols + i)] = static_cast<float>(std::cos(angle));
        s[static_cast<size_t>(p * cosine.cols + i)] = static_cast<float>(std::sin(angle));
      }
    }
    cosine = {c.data(), DType::f32, cosine.rows, cosine.cols};
    sine = {s.data(), DType::f32, sine.rows, sine.cols};
  }
  if (!planted("rope-interleaved")) {
    return right().rope(stream, x, heads, positions, cosine, sine, inverse);
  }
  const int64_t width = x.cols / heads;
  for (int64_t t = 0; t < x.rows; ++t) {
    const int32_t p = positions.as<int32_t>()[t];
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < width / 2; ++i) {
        float *first = x.row<float>(t) + h * width + 2 * i, *second = first + 1;
        const float c = cosine.row<float>(p)[i];
        const float s = inverse ? -sine.row<float>(p)[i] : sine.row<float>(p)[i];
        const float x1 = *first, x2 = *second;
        *first = x1 * c - x2 * s;
        *second = x2 * c + x1 * s;
      }
    }
  }
}

void FaultyTask::attention_forward(Stream& stream, const AttentionShape& shape,
                                   const SequenceOffsets& offsets, ConstView q, ConstView k,
                                   ConstView v, View out, View log_sum) const {
  const AttentionShape wrong = wrong_shape(c_, shape);
  if (!planted("key-heads-repeated-wrongly")) {
    return right().attention_forward(stream, wrong, offsets, q, k, v, out, log_sum);
  }
  std::vector<float>& memory = memory_.emplace_back(copy_of(q));
  const View grouped(memory.data(), DType::f32, q.rows, q.cols);
  regroup(q, shape.heads, shape.kv_heads, false, grouped);
  right().attention_forward(stream, wrong, offsets, grouped, k, v, out, log_sum);
  regroup(out, shape.heads, shape.kv_heads, true, out);
  regroup(log_sum, shape.heads, shape.kv_heads, true, log_sum);
}

void FaultyTask::attention_backward(Stream& stream, const AttentionShape& shape,
                                    const SequenceOffsets& offsets, ConstView dout, ConstView q,
                                    ConstView k, ConstView v, ConstView out, ConstView log_sum,
                                    View dq, View dk, View dv) const {
  const AttentionShape wrong = wrong_shape(c_, shape);
  if (!planted("key-heads-repeated-wrongly")) {
    return right().attention_backward(stream, wrong, offsets, dout, q, k, v, out, log_sum, dq, dk,
                                      dv);
  }
  const auto grouped = [&](ConstView x) {
    std::vector<float>& memory = memory_.emplace_back(copy_of(x));
    const View y(memory.data(), DType::f32, x.rows, x.cols);
    regroup(x, shape.heads, shape.kv_heads, false, y);
    return y;
  };
  right().attention_backward(stream, wrong, offsets, grouped(dout), grouped(q), k, v, grouped(out),
                             grouped(log_sum), dq, dk, dv);
  regroup(dq, shape.heads, shape.kv_heads, true, dq);
}

void FaultyTask::clamp_forward(Stream& stream, ConstView x, double limit, View y) const {
  if (is(x, Value::v_unclamped) && planted("v-not-clamped")) limit = 1e30;
  right().clamp_forward(stream, x, limit, y);
  if (!planted("clip-from-below-alone")) return;
  const std::vector<float> from = copy_of(x);
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t i = 0; i < y.cols; ++i) {
      y.row<float>(r)[i] =
          std::max(from[static_cast<size_t>(r * x.cols + i)], static_cast<float>(-limit));
    }
  }
}

void FaultyTask::clamp_backward(Stream& stream, ConstView dy, ConstView x, double limit,
                                View dx) const {
  if (dx.data == dy.data && planted("clip-forgotten-in-backward")) return;
  right().clamp_backward(stream, dy, x, limit, dx);
}

void FaultyTask::add(Stream& stream, ConstView a, ConstView b, View y) const {
  if (kind_ == TaskKind::attention && c_.phase == Phase::backward && is(y, Value::d_residual) &&
      planted("residual-without-gradient")) {
    return;
  }
  right().add(stream, a, b, y);
}

// ---- router and experts ------------------------------------------------------------------------

void FaultyTask::router_forward(Stream& stream, ConstView logits, bool normalize, View probs,
                                View choice, View weight) const {
  right().router_forward(stream, logits, normalize || planted("softmax-over-the-chosen"), probs,
                         choice, weight);
}

void FaultyTask::router_backward(Stream& stream, ConstView dweight, ConstView probs,
                                 ConstView choice, bool normalize, ConstView dprobs,
                                 View dlogits) const {
  if (!normalize || !planted("normalisation-not-differentiated")) {
    return right().router_backward(stream, dweight, probs, choice, normalize, dprobs, dlogits);
  }
  // As of weights that were divided by a constant.
  std::vector<float>& memory = memory_.emplace_back(copy_of(dweight));
  for (int64_t t = 0; t < dweight.rows; ++t) {
    double divisor = 0;
    for (int64_t j = 0; j < choice.cols; ++j) {
      divisor += probs.row<float>(t)[choice.row<int32_t>(t)[j]];
    }
    for (int64_t j = 0; j < choice.cols; ++j) {
      float& d = memory[static_cast<size_t>(t * choice.cols + j)];
      d = static_cast<float>(d / divisor);
    }
  }
  right().router_backward(stream, {memory.data(), DType::f32, dweight.rows, dweight.cols}, probs,
                          choice, false, dprobs, dlogits);
}

void FaultyTask::router_losses(Stream& stream, const RouterLosses& losses,
                               std::span<const ConstView> counts,
                               std::span<const ConstView> prob_sums,
                               std::span<const ConstView> squares, View aux, View z,
                               View dprobs) const {
  RouterLosses wrong = losses;
  if (planted("aux-loss-always-per-layer")) wrong.pooled = false;
  if (planted("aux-loss-always-pooled")) wrong.pooled = true;
  if (dprobs && planted("aux-loss-of-a-micro-batch-not-a-share")) {
    wrong.aux_weight = c_.settings.aux_loss;
  }
  right().router_losses(stream, wrong, counts, prob_sums, squares, aux, z, dprobs);
  if (counts.empty() || !planted("aux-loss-not-times-experts")) return;
  const auto experts = static_cast<double>(c_.spec.experts);
  aux.as<double>()[0] /= experts;
  for (int64_t r = 0; r < dprobs.rows; ++r) {
    for (int64_t i = 0; i < dprobs.cols; ++i)
      dprobs.row<float>(r)[i] /= static_cast<float>(experts);
  }
}

void FaultyTask::combine(Stream& stream, ConstView rows, const RoutingView& routing,
                         ConstView weight, ConstView base, View out) const {
  if (kind_ == TaskKind::combine && planted("shared-expert-left-out")) base = c_.in(Value::mid);
  if (kind_ == TaskKind::dispatch && planted("shared-expert-without-gradient-to-its-input")) {
    base = {};
  }
  right().combine(stream, rows, routing, weight, base, out);
}

void FaultyTask::experts_forward(Stream& stream, ConstView x, ConstView offsets,
                                 std::span<const ExpertView> experts, View gate, View up,
                                 View y) const {
  right().experts_forward(stream, x, offsets, wrong(experts), gate, up, y);
}

void FaultyTask::experts_backward(Stream& stream, ConstView dy, ConstView row_weight, ConstView x,
                                  ConstView offsets, std::span<const ExpertView> experts, View gate,
                                  View up, View dx, View drow_weight,
                                  std::span<const ExpertGradient> gradients) const {
  std::vector<ExpertGradient> to(gradients.begin(), gradients.end());
  for (ExpertGradient& g : to) {
    if (planted("pair-gradient-dropped")) g.up = {};
    if (c_.spec.family == "mixtral" && planted("w1-and-w3-of-mixtral-swapped")) {
      std::swap(g.gate, g.up);
    }
  }
  if (planted("expert-gradient-not-weighted")) {
    std::vector<float>& ones = memory_.emplace_back(static_cast<size_t>(row_weight.cols), 1.0f);
    row_weight = {ones.data(), DType::f32, 1, row_weight.cols};
  }
  right().experts_backward(stream, dy, row_weight, x, offsets, wrong(experts), gate, up, dx,
                           drow_weight, to);
  if (planted("nan-gradient-of-an-expert")) spoil(gradients.back().down.weight);
}

// ---- elementwise -------------------------------------------------------------------------------

void FaultyTask::swiglu_backward(Stream& stream, ConstView dh, View gate, View up, View h) const {
  if (!planted("derivative-of-silu")) return right().swiglu_backward(stream, dh, gate, up, h);
  const std::vector<float> d = copy_of(dh), g = copy_of(gate), u = copy_of(up);
  right().swiglu_backward(stream, dh, gate, up, h);
  for (int64_t r = 0, at = 0; r < gate.rows; ++r) {
    for (int64_t i = 0; i < gate.cols; ++i, ++at) {
      const auto k = static_cast<size_t>(at);
      const double s = sigmoid(g[k]);
      gate.row<float>(r)[i] = static_cast<float>(d[k] * u[k] * s * (1 + g[k] * s));
    }
  }
}

void FaultyTask::sigmoid_gate_forward(Stream& stream, ConstView logits, ConstView x, View y) const {
  const bool backward = c_.phase == Phase::backward;
  if (!backward && planted("shared-expert-without-sigmoid")) return;  // y is x
  if (backward && planted("shared-down-reads-what-was-not-weighed")) return;
  right().sigmoid_gate_forward(stream, logits, x, y);
}

void FaultyTask::sigmoid_gate_backward(Stream& stream, ConstView dy, ConstView logits, ConstView y,
                                       View dlogits, View dx) const {
  if (!planted("derivative-of-the-shared-gate")) {
    return right().sigmoid_gate_backward(stream, dy, logits, y, dlogits, dx);
  }
  const std::vector<float> before = copy_of(logits);
  right().sigmoid_gate_backward(stream, dy, logits, y, dlogits, dx);
  for (size_t t = 0; t < before.size(); ++t) {
    dlogits.as<float>()[t] *= static_cast<float>(sigmoid(before[t]));
  }
}

// ---- loss and optimizer ------------------------------------------------------------------------

void FaultyTask::cross_entropy(Stream& stream, ConstView x, const LinearView& head,
                               const Labels& labels, double scale, View loss, View dx,
                               const LinearGradient& gradient) const {
  const bool dropped = c_.spec.tied_head && planted("tied-head-without-gradient");
  right().cross_entropy(stream, x, wrong(head), labels, scale, loss, dx,
                        dropped ? LinearGradient{} : gradient);
  if (!dx || !planted("infinite-loss")) return;  // as the op leaves it
  loss.as<double>()[0] = HUGE_VAL;
  spoil(dx);
  spoil(gradient.weight);
}

void FaultyTask::adamw(Stream& stream, const AdamWOptions& options,
                       std::span<const AdamWTensors> tensors) const {
  AdamWOptions wrong = options;
  if (planted("decay-on-norms-and-biases")) wrong.weight_decay = c_.settings.adamw.weight_decay;
  if (wrong_in_the_middle_of_adamw()) {
    for (const AdamWTensors& t : tensors) wrong_adamw(wrong, t);
    return;
  }
  std::vector<AdamWTensors> all(tensors.begin(), tensors.end());
  for (AdamWTensors& t : all) {
    if (planted("working-copy-stale")) t.working = {};
  }
  right().adamw(stream, wrong, all);
}

}  // namespace hearth::test
