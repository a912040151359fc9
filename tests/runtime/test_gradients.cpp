// Gradients of a whole two-layer model in f64 against central differences, discrete choices frozen.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "base/sanitized.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

const OpSet& reference() {
  register_all_op_sets();
  return find_op_set("reference");
}

/// A step of two micro-batches: its gradients by the train list, its loss by the eval list.
class GradientCheck {
 public:
  GradientCheck(const std::string& config, AuxLossMode mode, double z_loss = 0,
                const std::vector<std::string>& adapters = {}, const TinyPlaces& places = {})
      : model_(config, reference(), DType::f64, 1, adapters, places),
        batches_{{{7, 1, 5}, model_.spec.vocabulary, 3}, {{9}, model_.spec.vocabulary, 4}} {
    model_.settings.aux_mode = mode;
    model_.settings.z_loss = z_loss;
    model_.settings.max_grad_norm = 0;
    // The router decides far from ties, so that small differences change no choice.
    for (Tensor& t : model_.table.tensors()) {
      if (t.slot == Slot::router) scale(t, 3);
    }
    for (const TinyBatch& batch : batches_) {
      tokens_ += static_cast<double>(batch.tokens());
      trained_ += static_cast<double>(batch.trained());
    }
  }

  double loss_of_eval() {
    const Schedule list = single_eval_schedule(model_.input(kTokens, kTokens));
    return loss(*model_.executor(list));
  }

  /// Largest |analytic - numeric| over the largest gradient of its tensor, and where.
  std::pair<double, std::string> worst(bool recompute) {
    const std::vector<std::vector<double>> analytic = gradients(recompute);
    const Schedule list = single_eval_schedule(model_.input(kTokens, kTokens));
    const auto executor = model_.executor(list);
    std::pair<double, std::string> worst{0, ""};
    for (size_t id = 0; id < analytic.size(); ++id) {
      Tensor& t = model_.table.tensors()[id];
      double* w = master(t);
      double largest = 1e-3;
      for (const double g : analytic[id]) largest = std::max(largest, std::abs(g));
      // A spread of large tensors. Whether memory is misused does not depend on the element.
      const int64_t stride = std::max<int64_t>(1, t.size() / (kSanitized ? 2 : 19));
      for (int64_t i = 0; i < t.size(); i += stride) {
        const double kept = w[i], h = 1e-5;
        w[i] = kept + h;
        const double above = loss(*executor);
        w[i] = kept - h;
        const double below = loss(*executor);
        w[i] = kept;
        const double numeric = (above - below) / (2 * h);
        const double error = std::abs(numeric - analytic[id][static_cast<size_t>(i)]) / largest;
        if (error > worst.first) worst = {error, t.name + "[" + std::to_string(i) + "]"};
      }
    }
    return worst;
  }

 private:
  static constexpr int64_t kTokens = 16;

  static double* master(Tensor& t) {
    return t.copies[static_cast<int>(CopyRole::master)].view.as<double>();
  }
  static void scale(Tensor& t, double factor) {
    for (int64_t i = 0; i < t.size(); ++i) master(t)[i] *= factor;
  }

  /// Runs the train list up to the gradient norm: an abandoned step updates nothing.
  std::vector<std::vector<double>> gradients(bool recompute) {
    Schedule list = single_train_schedule(model_.input(kTokens, kTokens, 2), 2, recompute);
    const auto executor = model_.executor(list);
    std::vector<BatchShape> shapes;
    for (int32_t m = 0; m < 2; ++m) {
      shapes.push_back(TinyModel::give(*executor, batches_[static_cast<size_t>(m)], m));
    }
    executor->scalar(Value::tokens) = tokens_;
    executor->scalar(Value::trained_tokens) = trained_;
    const auto is_norm = [](const Task& task) { return task.kind == TaskKind::norm; };
    const auto norm = std::find_if(list.tasks.begin(), list.tasks.end(), is_norm);
    RunOptions options;
    options.order.resize(static_cast<size_t>(norm - list.tasks.begin()));
    for (size_t i = 0; i < options.order.size(); ++i) options.order[i] = static_cast<TaskId>(i);
    executor->run(shapes, options);
    std::vector<std::vector<double>> all;
    for (size_t id = 0; id < model_.table.tensors().size(); ++id) {
      const ConstView g = model_.table.gradient(static_cast<TensorId>(id));
      all.emplace_back(g.as<double>(), g.as<double>() + g.size());
    }
    return all;
  }

  double loss(Executor& executor) const {
    double sum = 0;
    for (const TinyBatch& batch : batches_) {
      const BatchShape shape = TinyModel::give(executor, batch, 0);
      executor.run({&shape, 1});
      sum += executor.scalar(Value::loss, 0) / trained_ +
             (model_.settings.aux_loss * executor.scalar(Value::aux_loss, 0) +
              model_.settings.z_loss * executor.scalar(Value::z_loss, 0)) *
                 static_cast<double>(batch.tokens()) / tokens_;
    }
    return sum;
  }

  TinyModel model_;
  std::vector<TinyBatch> batches_;
  double tokens_ = 0, trained_ = 0;
};

void check(const JsonObject& changes, AuxLossMode mode = AuxLossMode::per_layer,
           bool recompute = false, double z_loss = 0, const std::vector<std::string>& adapters = {},
           const TinyPlaces& places = {}) {
  GradientCheck gradient_check(tiny_config(changes), mode, z_loss, adapters, places);
  const auto [error, where] = gradient_check.worst(recompute);
  INFO("worst at " << where << ": " << error);
  CHECK(error < 1e-6);
}

TEST_CASE("whole model: gradients in f64") { check({}); }
TEST_CASE("whole model: gradients with the pooled auxiliary loss") { check({}, AuxLossMode::hf); }
TEST_CASE("whole model: gradients with recomputed blocks") {
  check({}, AuxLossMode::per_layer, true);
}
TEST_CASE("whole model: gradients with the router's z-loss") {
  check({{"mlp_only_layers", JsonArray{0}}}, AuxLossMode::per_layer, true, 0.1);
  check({}, AuxLossMode::hf, false, 0.1);
}
TEST_CASE("whole model: gradients with biases, tied head, weights not normalized") {
  check({{"attention_bias", true}, {"tie_word_embeddings", true}, {"norm_topk_prob", false}});
}
TEST_CASE("whole model: gradients with a dense layer and one expert a token") {
  check({{"mlp_only_layers", JsonArray{0}}, {"num_experts_per_tok", 1}, {"norm_topk_prob", false}});
}
TEST_CASE("whole model: gradients with a sliding window") {
  check({{"use_sliding_window", true}, {"sliding_window", 3}, {"max_window_layers", 0}});
}

double loss_with(const JsonObject& changes) {
  return GradientCheck(tiny_config(changes), AuxLossMode::per_layer).loss_of_eval();
}

TEST_CASE("whole model: gradients with norms of whole projections and clamped q, k and v") {
  const JsonObject olmoe = {{"model_type", "olmoe"}, {"head_dim", 6}, {"attention_bias", true}};
  JsonObject clamped = olmoe;
  clamped.emplace_back("clip_qkv", 0.8);
  CHECK(loss_with(clamped) != loss_with(olmoe));  // some elements are clamped
  check(clamped, AuxLossMode::per_layer, true);
}

TEST_CASE("whole model: gradients with a shared expert and windows by layer") {
  const JsonObject qwen2 = {{"model_type", "qwen2_moe"},
                            {"shared_expert_intermediate_size", 9},
                            {"use_sliding_window", true},
                            {"sliding_window", 3},
                            {"max_window_layers", 2}};
  check(qwen2, AuxLossMode::hf);
  JsonObject dense = qwen2;
  dense.emplace_back("mlp_only_layers", JsonArray{0});
  check(dense, AuxLossMode::per_layer, true);
  JsonObject full = qwen2;
  full[2].second = false;
  CHECK(loss_with(full) != loss_with(qwen2));
}

TEST_CASE("whole model: gradients with adapters on every kind of map") {
  check({{"attention_bias", true}}, AuxLossMode::per_layer, true, 0,
        {"attention", "experts", "router", "head"});
  check({{"model_type", "qwen2_moe"},
         {"shared_expert_intermediate_size", 9},
         {"mlp_only_layers", JsonArray{0}}},
        AuxLossMode::hf, false, 0,
        {"shared-experts", "dense", "*.1.self_attn.q_proj*", "*o_proj*"});
}

TEST_CASE("whole model: gradients of a model over three places") {
  for (const uint64_t seed : {1, 2}) {
    const TinyPlaces places{virtual_devices(2),
                            [=](ParameterTable& table) { place_at_random(table, 3, seed); }};
    check({{"mlp_only_layers", JsonArray{0}}}, AuxLossMode::hf, seed == 1, 0.1,
          {"attention", "experts"}, places);
  }
}

}  // namespace
}  // namespace hearth::test
