// Small rules of training: learning rate, globs, sampling.
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "base/glob.h"
#include "setup/trained_model.h"
#include "support/raises.h"
#include "train/lr_schedule.h"
#include "train/sampling.h"
#include "train/stop_texts.h"

namespace hearth::test {
namespace {

TEST_CASE("learning rate: warm-up from 0, then the schedule") {
  const auto rate = [](LrSchedule schedule, int64_t s, int64_t n, int64_t w, double least = 0) {
    return lr_factor({schedule, n, w, least}, s);
  };
  CHECK(rate(LrSchedule::linear, 0, 10, 4) == 0);
  CHECK(rate(LrSchedule::linear, 3, 10, 4) == 0.75);
  CHECK(rate(LrSchedule::linear, 4, 10, 4) == 1);
  CHECK(rate(LrSchedule::linear, 7, 10, 4) == 0.5);
  CHECK(rate(LrSchedule::constant, 9, 10, 4) == 1);
  CHECK(std::abs(rate(LrSchedule::cosine, 7, 10, 4) - 0.5) < 1e-15);
  CHECK(rate(LrSchedule::cosine, 0, 10, 0) == 1);
  CHECK(rate(LrSchedule::linear, 3, 3, 3) == 1);  // nothing but warm-up
  // transformers 4.57: get_cosine_with_min_lr_schedule_with_warmup, get_inverse_sqrt_schedule,
  // get_wsd_schedule (linear), with 10 steps, 4 of warm-up.
  CHECK(std::abs(rate(LrSchedule::cosine_with_min_lr, 7, 10, 4, 0.1) - 0.55) < 1e-15);
  CHECK(rate(LrSchedule::cosine_with_min_lr, 4, 10, 4, 0.1) == 1);
  CHECK(rate(LrSchedule::inverse_sqrt, 2, 100, 4) == 0.5);
  CHECK(rate(LrSchedule::inverse_sqrt, 4, 100, 4) == 1);
  CHECK(rate(LrSchedule::inverse_sqrt, 16, 100, 4) == 0.5);
  CHECK(rate(LrSchedule::inverse_sqrt, 30'000, 100'000, 0) == 0.5);
  CHECK(rate(LrSchedule::wsd, 5, 100, 10, 0) == 0.5);
  CHECK(std::abs(rate(LrSchedule::wsd, 5, 100, 10, 0.2) - 0.6) < 1e-15);
  CHECK(rate(LrSchedule::wsd, 10, 100, 10) == 1);
  CHECK(rate(LrSchedule::wsd, 90, 100, 10) == 1);
  CHECK(std::abs(rate(LrSchedule::wsd, 95, 100, 10, 0.2) - 0.6) < 1e-15);
  CHECK(std::abs(rate(LrSchedule::wsd, 99, 100, 10) - 0.1) < 1e-15);
}

TEST_CASE("warm-up: steps win over the ratio, which is rounded up") {
  TrainConfig config;
  config.warmup_ratio = 0.03;
  CHECK(warmup_steps(config, 100) == 3);
  CHECK(warmup_steps(config, 101) == 4);
  config.warmup = 0;
  CHECK(warmup_steps(config, 100) == 0);
}

TEST_CASE("globs: * matches anything, dots too, whole names only") {
  CHECK(glob_matches("*", "model.norm.weight"));
  CHECK(glob_matches("model.layers.*.mlp.*", "model.layers.12.mlp.gate.weight"));
  CHECK(glob_matches("*norm*weight", "model.layers.0.input_layernorm.weight"));
  CHECK_FALSE(glob_matches("model.norm", "model.norm.weight"));
  CHECK_FALSE(glob_matches("norm.weight", "model.norm.weight"));
  CHECK(glob_matches("a**b", "ab"));
  CHECK_FALSE(glob_matches("a*b*c", "acb"));
  CHECK_FALSE(glob_matches("", "a"));
}

TEST_CASE("trainable: freeze, trainable, both, and their refusals") {
  const auto table = [] {
    ParameterTable t;
    t.add_block(BlockKind::embedding);
    t.add_tensor("embed", Slot::embedding, 4, 2, false);
    t.add_block(BlockKind::router, 0);
    t.add_tensor("layers.0.gate", Slot::router, 3, 2, false);
    t.add_block(BlockKind::head);
    t.add_tensor("norm", Slot::final_norm, 1, 2, true);
    return t;
  };
  const auto trained = [](const ParameterTable& t) {
    std::string names;
    for (const Tensor& tensor : t.tensors()) names += tensor.trainable ? tensor.name + " " : "";
    return names;
  };
  const ParameterTable any = table();
  const PublishedLayout layout(
      any, find_family("qwen3_moe"), [&](const std::string& n) { return any.find(n).has_value(); },
      "test");
  ParameterTable all = table();
  select_trainable(all, layout, false, {}, {});
  CHECK(trained(all) == "embed layers.0.gate norm ");
  ParameterTable only = table();
  select_trainable(only, layout, false, {"layers.*"}, {});
  CHECK(trained(only) == "layers.0.gate ");
  ParameterTable less = table();
  select_trainable(less, layout, false, {}, {"layers.*"});
  CHECK(trained(less) == "embed norm ");
  ParameterTable both = table();
  select_trainable(both, layout, false, {"norm"}, {"*"});
  CHECK(trained(both) == "norm ");
  ParameterTable bad = table();
  CHECK(raised_by([&] { select_trainable(bad, layout, false, {}, {"*"}); }).code ==
        ExitCode::usage);
  const Raised nothing = raised_by([&] { select_trainable(bad, layout, false, {"experts"}, {}); });
  CHECK(nothing.code == ExitCode::usage);
  CHECK(nothing.says("experts"));
}

TEST_CASE("sampling: greedy, temperature, top-p") {
  const std::vector<float> logits = {0.0f, 2.0f, 1.0f, 2.0f};
  const auto next = [&](double temperature, double top_p, double uniform) {
    return next_token(logits, {.temperature = temperature, .top_p = top_p}, uniform);
  };
  CHECK(next(0, 1, 0.99) == 1);  // the lowest id on ties
  // Probabilities at temperature 1, sorted: 1 and 3 share e^2, then 2, then 0.
  const double total = 2 * std::exp(2.0) + std::exp(1.0) + 1;
  CHECK(next(1, 1, 0.0) == 1);
  CHECK(next(1, 1, std::exp(2.0) / total + 1e-9) == 3);
  CHECK(next(1, 1, 2 * std::exp(2.0) / total + 1e-9) == 2);
  CHECK(next(1, 1, 1 - 1e-12) == 0);
  CHECK(next(1, 0.5, 1 - 1e-12) == 3);
  CHECK(next(1, 1e-9, 1 - 1e-12) == 1);
}

TEST_CASE("sampling: top-k keeps ties, min-p is a share of the largest, in transformers' order") {
  const std::vector<float> logits = {0.0f, 2.0f, 1.0f, 2.0f, -1.0f};
  // The last token that a rule leaves.
  const auto last = [&](Sampling sampling) {
    sampling.temperature = 1;
    return next_token(logits, sampling, 1 - 1e-12);
  };
  CHECK(last({}) == 4);
  CHECK(last({.top_k = 1}) == 3);  // 1 and 3 tie
  CHECK(last({.top_k = 3}) == 2);
  CHECK(last({.top_k = 9}) == 4);
  CHECK(last({.min_p = 1}) == 3);
  CHECK(last({.min_p = std::exp(-1.0) - 1e-9}) == 2);
  CHECK(last({.min_p = std::exp(-1.0) + 1e-9}) == 3);
  CHECK(last({.min_p = std::exp(-2.0) - 1e-9}) == 0);
  // Top-p is a share of what top-k left: of three tokens, two have 84 %.
  CHECK(last({.top_k = 3, .top_p = 0.84}) == 3);
  CHECK(last({.top_k = 3, .top_p = 0.85}) == 2);
  // The draw is from what is left: 1 and 3 have half each.
  CHECK(next_token(logits, {.temperature = 1, .min_p = 1}, 0.49) == 1);
  CHECK(next_token(logits, {.temperature = 1, .min_p = 1}, 0.51) == 3);
  // The temperature comes first.
  CHECK(next_token(logits, {.temperature = 2, .min_p = 0.6}, 1 - 1e-12) == 2);
}

TEST_CASE("sampling: the repetition penalty counts a token once and lowers either sign") {
  std::vector<float> logits = {1.0f, -1.0f, 3.0f, 2.0f};
  penalize_repetition(logits, std::vector<int32_t>{2, 1, 2, 2}, 2);
  CHECK(logits == std::vector<float>{1.0f, -2.0f, 1.5f, 2.0f});
  penalize_repetition(logits, {}, 2);
  penalize_repetition(logits, std::vector<int32_t>{0, 3}, 1);
  CHECK(logits == std::vector<float>{1.0f, -2.0f, 1.5f, 2.0f});
}

TEST_CASE("stop texts: what may begin one is held back, and nothing else") {
  const auto shown = [](std::vector<std::string> stops, const std::vector<std::string>& pieces) {
    StopTexts texts(std::move(stops));
    std::string all;
    for (const std::string& piece : pieces) {
      all += texts.push(piece) + "|";
      if (texts.found()) return all + "stop";
    }
    return all + texts.finish();
  };
  CHECK(shown({}, {"ab", "c"}) == "ab|c|");
  CHECK(shown({"END"}, {"one E", "N", "D two"}) == "one |||stop");
  CHECK(shown({"END"}, {"one E", "N", "E", "ND"}) == "one ||EN||stop");
  CHECK(shown({"END"}, {"EN", "x"}) == "|ENx|");
  CHECK(shown({"END"}, {"E", "N"}) == "||EN");
  CHECK(shown({"aab"}, {"a", "a", "a", "b"}) == "||a||stop");
  CHECK(shown({"x", "yz"}, {"ay", "ax"}) == "a|ya|stop");
  CHECK(shown({"yz", "abcd"}, {"abyz"}) == "ab|stop");
  CHECK(shown({"b", "ab"}, {"xab"}) == "x|stop");
}

}  // namespace
}  // namespace hearth::test
