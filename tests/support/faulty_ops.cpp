#include "support/faulty_ops.h"

#include <cmath>
#include <limits>
#include <utility>

#include "ops/adamw_step.h"
#include "support/planted.h"

namespace hearth::test {
namespace {

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

std::vector<float> copy_of(ConstView v) {
  std::vector<float> all;
  for (int64_t r = 0; r < v.rows; ++r)
    all.insert(all.end(), v.row<float>(r), v.row<float>(r) + v.cols);
  return all;
}

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
