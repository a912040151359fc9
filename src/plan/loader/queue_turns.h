// Whose turn it is among queues of which the first is the most urgent.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

namespace hearth {

/// The most urgent queue that can go, unless another that can go has given way `patience` times in
/// a row. So while a queue can go, at most patience + N - 2 turns of N queues pass without it.
template <int N>
class QueueTurns {
 public:
  explicit QueueTurns(int32_t patience) : patience_(patience) {}

  /// The queues in the order in which to try them.
  std::array<int, N> order() const {
    std::array<int, N> result{};
    for (int q = 0; q < N; ++q) result[q] = q;
    // Those that have given way for long enough first, the longest of them before all.
    const auto rank = [&](int q) { return given_way_[q] >= patience_ ? -given_way_[q] : 1; };
    for (int i = 1; i < N; ++i) {
      for (int j = i; j > 0 && rank(result[j]) < rank(result[j - 1]); --j) {
        std::swap(result[j], result[j - 1]);
      }
    }
    return result;
  }

  /// Queue `gone` has had its turn. `could[q]`: whether queue q could have gone.
  void took(int gone, const std::array<bool, N>& could) {
    for (int q = 0; q < N; ++q) {
      given_way_[q] = q != gone && could[q] ? given_way_[q] + 1 : 0;
    }
  }

 private:
  int32_t patience_;
  std::array<int32_t, N> given_way_{};
};

}  // namespace hearth
