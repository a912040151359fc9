// Bodies that run as the product's, but with other numbers, other ops (faulty_ops.h) or something
// done before or after them: faults of the mathematics, planted by name (support/planted.h). Without
// a fault planted they pass everything on.
#include <cmath>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "support/faulty_ops.h"
#include "support/planted.h"

namespace hearth::test {
namespace {

/// The model as a family would have read it wrongly.
ModelSpec wrong_spec(ModelSpec spec) {
  const bool qwen3 = spec.family == "qwen3_moe", mixtral = spec.family == "mixtral";
  const bool olmoe = spec.family == "olmoe", qwen2 = spec.family == "qwen2_moe";
  if (qwen3 && planted("norm-topk-prob-ignored")) spec.normalize_weights = true;
  if (qwen3 && planted("norm-topk-prob-never")) spec.normalize_weights = false;
  if (mixtral && planted("mixtral-not-renormalised")) spec.normalize_weights = false;
  if ((qwen3 && planted("window-ignored")) || (mixtral && planted("window-of-mixtral-ignored"))) {
    spec.windows.assign(spec.windows.size(), 0);
  }
  if (qwen2 && planted("windows-in-other-layers")) {
    for (size_t i = 0; i + 1 < spec.windows.size(); i += 2) {
      std::swap(spec.windows[i], spec.windows[i + 1]);
    }
  }
  if (qwen2 && planted("windows-beyond-max-window-layers")) {
    for (size_t i = spec.windows.size(); i-- > 2;) {
      if (spec.windows[i] == 0) spec.windows[i] = spec.windows[i - 2];
    }
  }
  if (olmoe && planted("clip-qkv-ignored")) spec.qkv_limit = 0;
  if (planted("padding-row-has-a-gradient") || (olmoe && planted("padding-of-olmoe-ignored"))) {
    spec.padding_id = -1;
  }
  if (planted("norm-eps-ignored")) spec.norm_eps = 1e-6;
  return spec;
}

/// The ports of a task, some of them bound to other memory.
class WrongPorts {
 public:
  explicit WrongPorts(const BodyContext& c) : c_(c), ports_(c.ports.begin(), c.ports.end()) {}

  const std::vector<BoundPort>& ports() const { return ports_; }
  bool has(Value value) const {
    for (const BoundPort& bound : ports_) {
      if (bound.port.value == value) return true;
    }
    return false;
  }
  void give(Value value, double x) { *copy<double>(value) = x; }
  /// A copy of a value, which the body reads instead.
  template <class T>
  T* copy(Value value) {
    for (BoundPort& bound : ports_) {
      if (bound.port.value != value) continue;
      const auto* from = bound.data;
      auto& memory = memory_.emplace_back(from, from + bound.port.bytes(c_.batch.tokens));
      bound.data = memory.data();
      break;
    }
    return reinterpret_cast<T*>(memory_.back().data());
  }

 private:
  const BodyContext& c_;
  std::vector<BoundPort> ports_;
  std::deque<std::vector<std::byte>> memory_;
};

/// Documents of a sequence, as if they were one.
void join_documents(const BodyContext& c, WrongPorts& ports, BatchShape& batch) {
  for (const Value value : {Value::query_offsets, Value::key_offsets}) {
    auto* offsets = ports.copy<int32_t>(value);
    offsets[0] = 0;
    offsets[1] = static_cast<int32_t>(c.batch.tokens);
  }
  batch.sequences = 1;
}

void change_head(const BodyContext& c, WrongPorts& ports) {
  if (planted("labels-not-shifted")) {
    auto* labels = ports.copy<int32_t>(Value::labels);
    for (int64_t t = c.batch.tokens; t-- > 1;) labels[t] = labels[t - 1];
    if (c.batch.tokens > 0) labels[0] = -100;
  }
  if (c.pass != Pass::train) return;
  if (planted("loss-divided-per-micro-batch")) {
    ports.give(Value::trained_tokens, 2 * c.scalar(Value::micro_trained_tokens));
  }
  if (planted("loss-divided-by-all-tokens")) {
    ports.give(Value::trained_tokens, c.scalar(Value::tokens));
  }
}

void change_clip(WrongPorts& ports) {
  if (!ports.has(Value::tensor_norms)) return;
  const double norm = planted("infinite-norm")       ? HUGE_VAL
                      : planted("norm-beyond-f32")   ? 1e39
                      : planted("square-beyond-f32") ? 1e25
                                                     : 0;
  if (norm > 0) ports.copy<double>(Value::tensor_norms)[0] = norm * norm;
}

/// The rate that a step would have by another schedule.
double wrong_rate(int64_t update, double lr) {
  static std::mutex mutex;
  static std::map<int64_t, double> given;
  const std::lock_guard lock(mutex);
  given[update] = lr;
  if (planted("warm-up-off-by-one")) return given.contains(update - 1) ? given[update - 1] : 0;
  if (planted("decay-of-the-rate-from-step-0")) return lr * (1 - static_cast<double>(update) / 64);
  return lr;
}

void change_update(const BodyContext& c, WrongPorts& ports) {
  const Value finite = c.has(Value::due_finite) ? Value::due_finite : Value::finite;
  if (c.scalar(Value::update_step) == 0) return;  // none is due
  if (planted("apply-non-finite-step")) ports.give(finite, 1);
  if (planted("no-clipping")) {
    ports.give(c.has(Value::due_clip) ? Value::due_clip : Value::clip, 1);
  }
  ports.give(Value::lr,
             wrong_rate(static_cast<int64_t>(c.scalar(Value::update_step)), c.scalar(Value::lr)));
  // What the verdict of a run must see.
  const bool expert = planted("lost-gradients-of-an-expert");
  const bool attention = planted("lost-gradients-of-attention");
  for (const BlockUse& use : c.blocks) {
    for (BlockId id = use.begin; id < use.end; ++id) {
      const Block& own = c.table.block(id);
      const Block& base = own.kind == BlockKind::adapter ? c.table.block(own.base) : own;
      const bool lost = (expert && base.kind == BlockKind::expert && base.expert == 0) ||
                        (attention && base.kind == BlockKind::attention);
      for (TensorId t = own.begin; lost && t < own.end; ++t) {
        if (const View gradient = c.table.gradient(t)) c.ops.clear(c.stream, gradient);
      }
    }
  }
  if (!planted("changed-frozen-tensor") || c.scalar(finite) == 0) return;
  for (Tensor& t : c.table.tensors()) {
    if (t.trainable) continue;
    ++*static_cast<unsigned char*>(t.home().view.raw());
    break;
  }
}

class FaultyBody final : public Body {
 public:
  explicit FaultyBody(TaskKind kind) : kind_(kind), right_(replace_body(kind, *this)) {}

  std::vector<Port> ports(const TaskShape& s) const override { return right_.ports(s); }
  std::vector<BlockUse> blocks(const TaskShape& s) const override { return right_.blocks(s); }
  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    return right_.scratch(s, ops);
  }
  Work work(const TaskShape& s) const override { return right_.work(s); }
  size_t lists(const TaskShape& s) const override { return right_.lists(s); }

  void run(const BodyContext& c) const override {
    if (!any_planted()) return right_.run(c);
    const ModelSpec spec = wrong_spec(c.spec);
    RunSettings settings = c.settings;
    if (planted("aux-loss-without-coefficient")) settings.aux_loss = 1;
    WrongPorts ports(c);
    BatchShape batch = c.batch;
    if (kind_ == TaskKind::attention && c.pass != Pass::decode && planted("rows-see-each-other")) {
      join_documents(c, ports, batch);
    }
    if (kind_ == TaskKind::head && c.pass != Pass::decode) change_head(c, ports);
    if (kind_ == TaskKind::clip) change_clip(ports);
    if (kind_ == TaskKind::update) change_update(c, ports);
    const FaultyTask task(c, kind_);
    right_.run({task.ops(), c.stream, spec, settings, c.table, c.pass, c.phase, c.layer, batch,
                ports.ports(), c.blocks, c.place, c.part, c.batches, c.wave, c.rule, c.ranks,
                c.lists});
    if (kind_ == TaskKind::head && c.pass == Pass::train &&
        planted("aux-loss-a-mean-of-micro-batches")) {
      const double share = c.scalar(Value::micro_tokens) / c.scalar(Value::tokens);
      c.set_scalar(Value::aux_loss, c.scalar(Value::aux_loss) * 0.5 / share);
    }
  }

 private:
  TaskKind kind_;
  const Body& right_;
};

/// For the life of the program.
const bool replaced = [] {
  static std::deque<FaultyBody> bodies;
  for (int kind = 0; kind < static_cast<int>(TaskKind::copy); ++kind) {
    bodies.emplace_back(static_cast<TaskKind>(kind));
  }
  return true;
}();

}  // namespace
}  // namespace hearth::test
