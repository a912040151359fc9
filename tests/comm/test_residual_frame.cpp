// Frames of experts: what decodes to what, ties, errors, and frames that are not what was expected.
#include "comm/residual_frame.h"

#include <algorithm>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <random>

#include "comm/shared_expert.h"
#include "support/raises.h"

namespace hearth::test {
namespace {

constexpr double kAll = 0.25;  // a ratio that keeps every element
const FrameVersion kVersion{3, 5, 70, 0xabcdef};

struct Matrices {
  std::vector<std::vector<float>> weights, shared;
  std::vector<int64_t> sizes() const {
    std::vector<int64_t> sizes;
    for (const auto& each : weights) sizes.push_back(std::ssize(each));
    return sizes;
  }
};

float as_sent(float weight, DType type) {
  return type == DType::bf16 ? round_to_bf16(weight) : weight;
}

/// The shared expert has values of the type, weights need not.
Matrices random_matrices(std::mt19937& random, const std::vector<int64_t>& sizes, DType type,
                         float apart) {
  std::normal_distribution<float> normal;
  Matrices matrices;
  for (const int64_t n : sizes) {
    auto& weights = matrices.weights.emplace_back(static_cast<size_t>(n));
    auto& shared = matrices.shared.emplace_back(static_cast<size_t>(n));
    for (size_t i = 0; i < weights.size(); ++i) {
      shared[i] = as_sent(0.02f * normal(random), type);
      weights[i] = shared[i] + apart * 0.02f * normal(random);
    }
  }
  return matrices;
}

struct Sent {
  std::vector<std::byte> frame;
  double error = 0;
};

Sent sent(const Matrices& of, DType type, double ratio) {
  std::vector<SentTensor> tensors;
  for (size_t i = 0; i < of.weights.size(); ++i) tensors.push_back({of.weights[i], of.shared[i]});
  Sent result;
  result.frame.resize(frame_bytes(of.sizes(), type, ratio) + 8);
  FrameEncoder encoder;
  const Encoded encoded =
      encoder.encode(kVersion, type, tensors, ratio, {result.frame.data(), result.frame.size()});
  CHECK(encoded.bytes == frame_bytes(of.sizes(), type, ratio));
  result.frame.resize(encoded.bytes);
  result.error = encoded.error;
  return result;
}

std::vector<std::vector<float>> received(std::span<const std::byte> frame, const Matrices& of,
                                         DType type, const FrameVersion& version = kVersion) {
  std::vector<std::vector<std::byte>> memory;
  std::vector<ReceivedTensor> tensors;
  for (const auto& shared : of.shared) {
    memory.emplace_back(shared.size() * size_of(type), std::byte{0x5a});
    tensors.push_back({memory.back().data(), shared});
  }
  decode_frame({frame.data(), frame.size()}, version, type, tensors);
  std::vector<std::vector<float>> values;
  for (size_t i = 0; i < memory.size(); ++i) {
    auto& of_tensor = values.emplace_back(of.shared[i].size());
    convert(type, memory[i].data(), DType::f32, of_tensor.data(), std::ssize(of_tensor));
  }
  return values;
}

/// The k of largest residual, ties by index, the slow way.
std::vector<float> expected_of(std::span<const float> weights, std::span<const float> shared,
                               DType type, int64_t kept) {
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto magnitude = [&](size_t i) { return std::fabs(as_sent(weights[i], type) - shared[i]); };
  std::ranges::stable_sort(order, std::greater<>(), magnitude);
  std::vector<float> values(shared.begin(), shared.end());
  for (int64_t i = 0; i < kept; ++i) {
    const size_t at = order[static_cast<size_t>(i)];
    values[at] = as_sent(weights[at], type);
  }
  return values;
}

/// Encoded::error by its definition.
double error_of(const Matrices& of, const std::vector<std::vector<float>>& values, DType type) {
  double left_out = 0, all = 0;
  for (size_t t = 0; t < values.size(); ++t) {
    for (size_t i = 0; i < values[t].size(); ++i) {
      const double weight = as_sent(of.weights[t][i], type);
      left_out += (weight - values[t][i]) * (weight - values[t][i]);
      all += weight * weight;
    }
  }
  return left_out == 0 ? 0 : std::sqrt(left_out / all);
}

}  // namespace

TEST_CASE("residual frame: what is largest is sent\\, and the error is what its definition says") {
  std::mt19937 random(7);
  const std::vector<std::vector<int64_t>> shapes{{1},        {7, 0, 3}, {512, 512, 512}, {65535},
                                                 {65536, 2}, {65537},   {200000, 70000}};
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const auto& sizes : shapes) {
      for (const double ratio : {1.5, 5.0, 50.0, 3000.0}) {
        INFO(name_of(type) << " " << sizes.size() << " of " << sizes.front() << " by " << ratio);
        const Matrices of = random_matrices(random, sizes, type, 0.3f);
        const Sent frame = sent(of, type, ratio);
        const auto values = received(frame.frame, of, type);
        double residual = 0, kept_share = 1;
        for (size_t t = 0; t < sizes.size(); ++t) {
          const int64_t kept = kept_elements(sizes[t], type, ratio);
          CHECK(values[t] == expected_of(of.weights[t], of.shared[t], type, kept));
          if (sizes[t] == 0) continue;
          kept_share = std::min(kept_share, double(kept) / double(sizes[t]));
          for (size_t i = 0; i < values[t].size(); ++i) {
            const double r = as_sent(of.weights[t][i], type) - of.shared[t][i];
            residual += r * r;
          }
        }
        const double error = error_of(of, values, type);
        CHECK(std::fabs(frame.error - error) <= 1e-9 * error);
        // Top-k leaves out at most its share of the squares.
        double all = 0;
        for (const auto& each : of.weights) {
          for (const float w : each) all += double(as_sent(w, type)) * as_sent(w, type);
        }
        CHECK(frame.error * frame.error <= (1 - kept_share) * residual / all * (1 + 1e-9));
      }
    }
  }
}

TEST_CASE("residual frame: all elements\\, and dense: the bits of the weights") {
  std::mt19937 random(8);
  for (const DType type : {DType::f32, DType::bf16}) {
    const Matrices of = random_matrices(random, {70001, 333}, type, 1);
    for (const double ratio : {kAll, kDenseRatio}) {
      const Sent frame = sent(of, type, ratio);
      CHECK(frame.error == 0);
      const auto values = received(frame.frame, of, type);
      for (size_t t = 0; t < values.size(); ++t) {
        bool equal = true;
        for (size_t i = 0; i < values[t].size(); ++i) {
          equal = equal && std::bit_cast<uint32_t>(values[t][i]) ==
                               std::bit_cast<uint32_t>(as_sent(of.weights[t][i], type));
        }
        CHECK(equal);
      }
    }
  }
}

TEST_CASE("residual frame: a frame has a ratio's share of the bytes") {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const int64_t n : {int64_t{20000}, int64_t{70000}, int64_t{5000000}}) {
      const double dense = static_cast<double>(n) * static_cast<double>(size_of(type));
      for (const double ratio : {1.1, 2.5, 50.0, 500.0}) {
        const std::vector<int64_t> sizes{n};
        const auto payload = static_cast<double>(frame_bytes(sizes, type, ratio) - 64);
        CHECK(payload <= dense / ratio);
        CHECK(payload > dense / ratio - 8);
      }
      CHECK(kept_elements(n, type, 1e9) == 1);
      CHECK(kept_elements(n, type, kAll) == n);
    }
  }
  CHECK(kept_elements(0, DType::f32, 50) == 0);
}

TEST_CASE("residual frame: of equal residuals those with the lowest index") {
  Matrices of;
  of.shared = {std::vector<float>(100, 1.0f)};
  of.weights = {std::vector<float>(100, 1.0f)};
  for (const size_t i : {90, 20, 40, 60, 80}) of.weights[0][i] = i % 40 == 0 ? 1.5f : 0.5f;
  of.weights[0][70] = 3;
  // 400 bytes / 16.6 are 24, less 4 for the run: 3 elements.
  REQUIRE(kept_elements(100, DType::f32, 16.6) == 3);
  const auto values = received(sent(of, DType::f32, 16.6).frame, of, DType::f32)[0];
  std::vector<float> expected(100, 1.0f);
  expected[70] = 3;
  expected[20] = 0.5f;
  expected[40] = 1.5f;
  CHECK(values == expected);
}

TEST_CASE("residual frame: weights that are no numbers are above any threshold") {
  const float nan = std::nanf(""), huge = std::numeric_limits<float>::infinity();
  for (const float odd : {nan, huge}) {
    Matrices of;
    of.shared = {std::vector<float>(64, 0.0f)};
    of.weights = {std::vector<float>(64, 1.0f)};
    of.weights[0][40] = odd;
    const Sent one = sent(of, DType::f32, 16);
    CHECK_FALSE(one.error <= 1);
    const auto values = received(one.frame, of, DType::f32)[0];
    CHECK(std::bit_cast<uint32_t>(values[40]) == std::bit_cast<uint32_t>(odd));
  }
  Matrices zero;
  zero.weights = {std::vector<float>(64, 0.0f)};
  zero.shared = {std::vector<float>(64, 1.0f)};
  CHECK_FALSE(sent(zero, DType::f32, 16).error <= 1);
  zero.shared = zero.weights;
  CHECK(sent(zero, DType::f32, 16).error == 0);
}

TEST_CASE("residual frame: another version names both") {
  std::mt19937 random(9);
  const Matrices of = random_matrices(random, {100}, DType::f32, 1);
  const Sent frame = sent(of, DType::f32, 4);
  const auto refused = [&](FrameVersion version, const std::string& part) {
    const Raised raised = raised_by([&] { received(frame.frame, of, DType::f32, version); });
    INFO(raised.message);
    CHECK(raised.code == ExitCode::device);
    CHECK(raised.says(part));
    CHECK(raised.says("step 70, shared expert 0000000000abcdef"));
    CHECK(raised.message.find('\n') == std::string::npos);
  };
  refused({4, 5, 70, 0xabcdef}, "layer 4: weights of layer 3, expert 5");
  refused({3, 6, 70, 0xabcdef}, "expected expert 6 of step 70");
  refused({3, 5, 71, 0xabcdef}, "expected expert 5 of step 71");
  refused({3, 5, 70, 0xabcdee}, "expected expert 5 of step 70, shared expert 0000000000abcdee");
}

TEST_CASE("residual frame: damage is refused\\, or changes values alone") {
  std::mt19937 random(10);
  for (const DType type : {DType::f32, DType::bf16}) {
    const Matrices of = random_matrices(random, {300, 0, 40}, type, 1);
    for (const double ratio : {kDenseRatio, 4.0}) {
      const Sent whole = sent(of, type, ratio);
      for (size_t bytes = 0; bytes < whole.frame.size(); ++bytes) {
        const Raised raised =
            raised_by([&] { received(std::span(whole.frame).first(bytes), of, type); });
        CHECK(raised.code == ExitCode::device);
      }
      std::vector<std::byte> longer = whole.frame;
      longer.resize(longer.size() + 4);
      CHECK(raised_by([&] { received(longer, of, type); }).says("more bytes"));
      for (int round = 0; round < 3000; ++round) {
        std::vector<std::byte> frame = whole.frame;
        for (int damages = 1 + static_cast<int>(random() % 3); damages > 0; --damages) {
          frame[random() % frame.size()] = static_cast<std::byte>(random());
        }
        const Raised raised = raised_by([&] { received(frame, of, type); });
        CHECK((raised.code == ExitCode::done || raised.code == ExitCode::device));
      }
    }
  }
}

TEST_CASE("residual frame: an index that is none of its tensor") {
  Matrices of;
  of.shared = {std::vector<float>(100, 0.0f)};
  of.weights = {std::vector<float>(100, 1.0f)};
  const Sent whole = sent(of, DType::f32, 10);  // 6 elements, from the first on
  constexpr size_t kIndices = 64 + 4;
  const auto with = [&](size_t at, uint16_t value) {
    std::vector<std::byte> frame = whole.frame;
    std::memcpy(frame.data() + at, &value, sizeof value);
    return raised_by([&] { received(frame, of, DType::f32); });
  };
  CHECK(with(kIndices + 10, 99).code == ExitCode::done);
  CHECK(with(kIndices + 10, 100).says("indices"));
  CHECK(with(kIndices + 10, 4).says("indices"));  // twice
  CHECK(with(kIndices + 10, 3).says("indices"));  // not rising
  CHECK(with(64, 5).says("indices"));             // fewer than the tensor says
  CHECK(with(64, 7).says("indices"));
}

TEST_CASE("shared expert: the same bits in every order and in every split") {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0, 0.05f);
  constexpr int64_t kExperts = 6;
  constexpr size_t kSize = 1000;
  std::vector<std::vector<float>> experts(kExperts, std::vector<float>(kSize));
  for (auto& expert : experts) {
    for (float& w : expert) w = normal(random);
  }
  experts[2][0] = 1e30f;  // cut for the mean
  experts[3][1] = std::nanf("");
  for (const DType type : {DType::f32, DType::bf16}) {
    std::optional<std::vector<float>> expected;
    for (int round = 0; round < 20; ++round) {
      std::ranges::shuffle(experts, random);
      const auto split = static_cast<size_t>(random() % (kExperts + 1));
      std::vector<int32_t> sums[2] = {std::vector<int32_t>(kSize), std::vector<int32_t>(kSize)};
      for (size_t e = 0; e < experts.size(); ++e) {
        add_expert(experts[e], kExperts, sums[e < split ? 0 : 1]);
      }
      add_sums(sums[1], sums[0]);
      std::vector<float> mean(kSize);
      mean_of(sums[0], kExperts, type, mean);
      if (!expected) expected = mean;
      CHECK(mean == *expected);
    }
    for (size_t i = 2; i < kSize; ++i) {
      double sum = 0;
      for (const auto& expert : experts) sum += expert[i];
      const double exact = sum / kExperts, mean = (*expected)[i];
      const double rounding = type == DType::bf16 ? std::fabs(exact) / 256 : 0;
      REQUIRE(std::fabs(mean - exact) <= 2.4e-7 / 2 + rounding + 1e-9);
      REQUIRE(as_sent((*expected)[i], type) == (*expected)[i]);
    }
  }
}

}  // namespace hearth::test
