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

void ResidentBook::clear() {
  used_.clear();
  at_.clear();
}

}  // namespace hearth
