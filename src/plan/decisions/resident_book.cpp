#include "plan/decisions/resident_book.h"

namespace hearth {

void ResidentBook::use(int64_t layer, int64_t expert) {
  if (slots_ <= 0) return;
  const int64_t key = number(layer, expert);
  if (const auto found = at_.find(key); found != at_.end()) {
    used_.splice(used_.begin(), used_, found->second);
    return;
  }
  if (count() == slots_) {
    at_.erase(used_.back());
    used_.pop_back();
  }
  used_.push_front(key);
  at_[key] = used_.begin();
}

std::vector<std::pair<int32_t, int32_t>> ResidentBook::used() const {
  std::vector<std::pair<int32_t, int32_t>> all;
  for (const int64_t key : used_) {
    all.emplace_back(static_cast<int32_t>(key / experts_), static_cast<int32_t>(key % experts_));
  }
  return all;
}

void ResidentBook::clear() {
  used_.clear();
  at_.clear();
}

}  // namespace hearth
