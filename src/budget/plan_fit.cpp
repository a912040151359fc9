#include "budget/plan_fit.h"

#include "base/error_format.h"
#include "base/setting.h"

namespace hearth {

std::string whole_mebibytes(uint64_t bytes) {
  return std::to_string((bytes >> 20) + (bytes % (uint64_t{1} << 20) > 0 ? 1 : 0));
}

std::string what_is_missing(const Plan& plan) {
  std::string text;
  for (size_t place = 0; place < plan.places.size(); ++place) {
    const PlaceLines& of = plan.places[place];
    if (of.fits()) continue;
    text += text.empty() ? "the plan needs " : "; it needs ";
    text += whole_mebibytes(of.peak) + " MiB of " +
            (place == kHostPlace ? std::string("host memory") : "the memory of " + of.budget.name) +
            ", but may use only " + whole_mebibytes(of.budget.bytes) + " MiB";
  }
  return text;
}

void require_fit(const Plan& plan) {
  if (plan.fits()) return;
  throw usage_error("{}; a smaller {}, {} or {} needs less", what_is_missing(plan),
                    spelled(Setting::micro_batch), spelled(Setting::seq_len),
                    spelled(Setting::max_new_tokens));
}

}  // namespace hearth
