#include "verdict/loss_record.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace hearth {
namespace {

constexpr size_t kMost = 10;

double mean(std::vector<double>::const_iterator begin, int64_t n) {
  return n == 0 ? 0 : std::accumulate(begin, begin + n, 0.0) / static_cast<double>(n);
}

}  // namespace

void LossRecord::add(double loss, double grad_norm) {
  ++steps_;
  without_gradient_ += grad_norm == 0;
  if (first_.size() < kMost) first_.push_back(loss);
  last_.push_back(loss);
  if (last_.size() > kMost) last_.erase(last_.begin());
}

int64_t LossRecord::width() const {
  if (steps_ == 0) return 0;
  return std::clamp<int64_t>(steps_ / 10, 1, std::ssize(first_));
}

double LossRecord::first() const { return mean(first_.begin(), width()); }

double LossRecord::last() const { return mean(last_.end() - width(), width()); }

Json LossRecord::to_json() const {
  return JsonObject{{"steps", steps_},
                    {"without_gradient", without_gradient_},
                    {"first", JsonArray(first_.begin(), first_.end())},
                    {"last", JsonArray(last_.begin(), last_.end())}};
}

void LossRecord::restore(const Json* saved, const std::string& source) {
  if (saved == nullptr) return;
  const auto require = [&](bool holds) {
    if (!holds) throw storage_error(source + ": losses: not a record of the run's losses");
  };
  const auto count = [&](const char* name) {
    const Json* value = saved->find(name);
    require(value != nullptr && value->is_signed() && value->as_int() >= 0);
    return value->as_int();
  };
  const auto list = [&](const char* name) {
    const Json* values = saved->find(name);
    require(values != nullptr && values->is_array());
    std::vector<double> losses;
    for (const Json& value : values->as_array()) {
      require(value.is_number());
      losses.push_back(value.as_double());
    }
    return losses;
  };
  require(saved->is_object());
  steps_ = count("steps");
  without_gradient_ = count("without_gradient");
  first_ = list("first");
  last_ = list("last");
  const auto most = static_cast<int64_t>(kMost);
  require(std::ssize(first_) == std::min(steps_, most) && first_.size() == last_.size());
}

}  // namespace hearth
