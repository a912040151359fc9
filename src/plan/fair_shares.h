// Divides the rates of resources among what passes through them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace hearth {

/// What passes through up to four resources at once, and the rate that it gets.
struct Flow {
  int32_t task = 0;
  std::array<int32_t, 4> through = {-1, -1, -1, -1};
  double left = 0;    // of its amount, at the time of the last change of rates
  double rate = 0;    // per second; set by FairShares
  double finish = 0;  // when it ends at this rate
};

/// Max-min fairness by progressive filling: the resource with the least for each of its flows gives
/// them that, they take it from their other resources, and so on. Needs no memory after the first
/// calls.
class FairShares {
 public:
  /// `rates`: what each resource passes per second; 0: no limit. Must outlive the object.
  explicit FairShares(std::span<const double> rates);
  /// Sets the rate of every flow. Each has a resource with a limit.
  void divide(std::vector<Flow>& flows);

 private:
  bool limited(int32_t resource) const {
    return resource >= 0 && rates_[static_cast<size_t>(resource)] > 0;
  }

  std::span<const double> rates_;
  std::vector<double> left_;      // of each resource
  std::vector<int32_t> waiting_;  // of each resource: its flows that have no rate yet
  std::vector<int32_t> used_;     // resources with flows
};

}  // namespace hearth
