#include "data/samples/token_store.h"

#include <algorithm>

#include "base/error.h"

namespace hearth {

int64_t count_trained(std::span<const int32_t> labels) {
  if (labels.empty()) return 0;
  const auto targets = labels.subspan(1);
  return static_cast<int64_t>(targets.size()) -
         std::count(targets.begin(), targets.end(), kIgnoredLabel);
}

void TokenStore::add(std::span<const int32_t> ids, std::span<const int32_t> labels) {
  HEARTH_CHECK(!ids.empty() && ids.size() == labels.size(), "a row of ids and as many labels");
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  labels_.insert(labels_.end(), labels.begin(), labels.end());
  offsets_.push_back(tokens());
  trained_.push_back(count_trained(labels));
  total_trained_ += trained_.back();
  longest_ = std::max(longest_, static_cast<int64_t>(ids.size()));
}

int64_t TokenStore::bytes() const {
  return static_cast<int64_t>((ids_.capacity() + labels_.capacity()) * sizeof(int32_t) +
                              (offsets_.capacity() + trained_.capacity()) * sizeof(int64_t));
}

}  // namespace hearth
