// Whose turn it is among queues of which the first is the most urgent.
#pragma once

#include <array>
#include <cstdint>

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
    int n = 0;
    for (int q = 0; q < N; ++q) {
      if (given_way_[q] >= patience_) result[n++] = q;
    }
    for (int q = 0; q < N; ++q) {
      if (given_way_[q] < patience_) result[n++] = q;
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
