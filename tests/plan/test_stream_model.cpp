// The model of two streams for expert domains (plan/domains/stream_model.h), against HybridEP's Table IV
// and against its own equations.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <random>

#include "plan/domains/stream_model.h"

namespace hearth::test {
namespace {

constexpr double kMega = 1e6;

/// Rows of Table IV: 8 GPUs with 128 Gb/s, D and P in bytes.
StreamCase table_4(double before_s, double rows, double experts) {
  StreamCase of;
  of.ranks = 8;
  of.bytes_per_s = 128e9 / 8;
  of.before_s = before_s;
  of.row_bytes = rows * kMega;
  of.expert_bytes = experts * kMega;
  return of;
}

}  // namespace

TEST_CASE("stream model: Table IV of the paper needs ten times the computation that it prints") {
  // As printed the best p is nearly 1.
  CHECK(best_domain_of_paper(table_4(0.049e-3, 8, 4.7)) == 1);
  CHECK(best_domain_of_paper(table_4(0.049e-3, 8, 2.35)) == 2);
  CHECK(best_p_of_paper(table_4(0.049e-3, 8, 4.7)) == Catch::Approx(0.976).margin(5e-4));
  // With ten times that, the domains of the paper: p = 1 - S / G in its text, 0.75 and 0.5.
  CHECK(best_domain_of_paper(table_4(0.49e-3, 8, 4.7)) == 2);
  CHECK(best_domain_of_paper(table_4(0.49e-3, 8, 2.35)) == 4);
  CHECK(best_p_of_paper(table_4(0.49e-3, 8, 4.7)) == Catch::Approx(0.76).margin(5e-3));
  CHECK(best_p_of_paper(table_4(0.49e-3, 8, 2.35)) == Catch::Approx(0.52).margin(5e-3));
  // Rows of which none travels agree either way.
  for (const double before : {0.099e-3, 0.99e-3}) {
    CHECK(best_domain_of_paper(table_4(before, 3, 0.094)) == 8);
    CHECK(best_domain_of_paper(table_4(before, 3, 0.047)) == 8);
    CHECK(best_p_of_paper(table_4(before, 3, 0.094)) == 0);
  }
}

TEST_CASE("stream model: the paper's optimum is between the divisors beside the best one") {
  std::mt19937 random(3);
  const auto one_of = [&](double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random);
  };
  for (int i = 0; i < 500; ++i) {
    StreamCase of;
    of.ranks = 1 << std::uniform_int_distribution<int32_t>(1, 6)(random);
    of.bytes_per_s = 1e9;
    of.before_s = one_of(0, 1);
    of.row_bytes = one_of(0, 1e9);
    of.expert_bytes = one_of(1e6, 2e8);
    const int32_t best = best_domain_of_paper(of);
    const double p = best_p_of_paper(of);
    const auto share = [&](int32_t domain) { return stream_times(of, domain).p; };
    INFO(of.ranks << " ranks, S = " << best << ", p* = " << p);
    if (best > 1) CHECK(p <= share(best / 2) + 1e-12);
    if (best < of.ranks) CHECK(p >= share(best * 2) - 1e-12);
  }
}

TEST_CASE("stream model: gradients of experts that train make domains smaller\\, never larger") {
  std::mt19937 random(5);
  const auto one_of = [&](double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random);
  };
  int smaller = 0;
  for (int i = 0; i < 300; ++i) {
    StreamCase of;
    of.ranks = 16;
    of.bytes_per_s = 1e9;
    of.before_s = one_of(0, 0.2);
    of.experts_s = one_of(0, 0.2);
    of.row_bytes = one_of(0, 1e9);
    of.expert_bytes = one_of(1e5, 1e7);
    StreamCase trained = of;
    trained.gradient_bytes = 50 * of.expert_bytes;  // compressed weights, dense gradients
    CHECK(best_domain(trained) <= best_domain(of));
    smaller += best_domain(trained) < best_domain(of) ? 1 : 0;
    // No row travels, nothing is gathered: computation alone is left, which the paper hides.
    of.expert_bytes = of.gradient_bytes = 0;
    CHECK(stream_times(of, 16).layer_s == Catch::Approx(3 * (of.before_s + of.experts_s)));
  }
  CHECK(smaller > 30);
}

TEST_CASE("stream model: the shared expert costs where weights travel\\, and there alone") {
  StreamCase of = table_4(0, 8, 4.7 / 50);
  of.gradient_bytes = 4.7 * kMega;
  const StreamCase without = of;
  of.shared_bytes = 2 * 7.0 / 8 * 4.7 * kMega;
  for (const int32_t domain : {1, 2, 4, 8}) {
    const double more = stream_times(of, domain).layer_s - stream_times(without, domain).layer_s;
    CHECK(more == Catch::Approx(domain > 1 ? of.shared_bytes / of.bytes_per_s : 0).margin(1e-12));
    // The paper's time does not have it.
    CHECK(stream_times(of, domain).paper_s == stream_times(without, domain).paper_s);
  }
}

}  // namespace hearth::test
