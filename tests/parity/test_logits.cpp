// Logits of whole rows and, through the key-value cache, token by token, beside those of
// transformers. HEARTH_PARITY_CASES names another folder of cases (scripts/parity/run).
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "base/file_ops.h"
#include "parity/recorded_case.h"
#include "support/all_op_sets.h"
#include "train/session.h"

namespace hearth::test {
namespace {

std::vector<int32_t> read_ids(const RecordedCase& c, int64_t row) {
  const std::string text = read_file(c.rows());
  size_t begin = 0;
  for (int64_t i = 0; i < row; ++i) begin = text.find('\n', begin) + 1;
  const Json line = parse_json(text.substr(begin, text.find('\n', begin) - begin), c.rows());
  std::vector<int32_t> ids;
  for (const Json& id : line.find("input_ids")->as_array()) {
    ids.push_back(static_cast<int32_t>(id.as_int()));
  }
  const auto seq_len = static_cast<size_t>(c.options.find("seq_len")->as_int());
  if (ids.size() > seq_len) ids.resize(seq_len);
  return ids;
}

/// Squared sums over positions, and the largest error of a logit in parts of its position's
/// largest one.
struct Difference {
  double wrong = 0, right = 0, worst = 0;

  void see(const float* actual, const double* expected, size_t n) {
    double most = 0, largest = 0;
    for (size_t i = 0; i < n; ++i) {
      const double d = actual[i] - expected[i];
      wrong += d * d;
      right += expected[i] * expected[i];
      largest = std::max(largest, std::abs(expected[i]));
      if (!(std::abs(d) <= most)) most = std::abs(d);
    }
    if (!(most / largest <= worst)) worst = most / largest;
  }
};

/// `cached`: every token is decoded behind the cache of those before it, else every prefix anew.
Difference compare_logits(const RecordedCase& c, bool cached) {
  register_all_op_sets();
  RunConfig config;
  config.model = c.model();
  config.compute = c.computes_bf16() ? ComputeChoice::bf16 : ComputeChoice::f32;
  config.threads = 1;
  PlanRequest request;
  request.longest = request.decode_tokens = request.cache_rows = 64;
  const PlacedModel model = place_model(untrained_model(open_model(config), config), request);
  Session session(model);
  session.read_weights();

  Difference difference;
  for (const auto& [name, expected] : c.tensors) {
    if (!name.starts_with("logits.")) continue;
    const std::vector<int32_t> ids = read_ids(c, std::stoll(name.substr(7)));
    const size_t vocabulary = expected.size() / ids.size();
    for (size_t t = 0; t < ids.size(); ++t) {
      const std::span<const int32_t> all(ids);
      const float* logits = cached ? session.decode(all.subspan(t, 1), static_cast<int64_t>(t))
                                   : session.decode(all.first(t + 1), 0);
      difference.see(logits, expected.data() + t * vocabulary, vocabulary);
    }
  }
  REQUIRE(difference.right > 0);
  return difference;
}

}  // namespace

TEST_CASE("Logits are those of transformers, with and without the cache", "[logits]") {
  for (const RecordedCase& c : recorded_cases()) {
    if (c.computes_bf16()) continue;
    for (const bool cached : {false, true}) {
      const double error = compare_logits(c, cached).worst;
      INFO(c.name << (cached ? ", cached" : "") << ": logits differ by " << error);
      CHECK(error <= 1e-5);
    }
  }
}

TEST_CASE("Logits in bf16 are as near to f64 as torch's", "[logits]") {
  double ours = 0, torch = 0;
  int cases = 0;
  for (const RecordedCase& c : recorded_cases()) {
    if (!c.computes_bf16()) continue;
    const Difference difference = compare_logits(c, false);
    ours += difference.wrong / difference.right;
    torch += c.expected.find("torch_bf16")->find("logits")->as_double();
    ++cases;
  }
  REQUIRE(cases > 0);
  INFO("error " << std::sqrt(ours / cases) << ", of torch " << std::sqrt(torch / cases));
  CHECK(std::sqrt(ours) <= 1.2 * std::sqrt(torch));
}

}  // namespace hearth::test
