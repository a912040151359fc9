#include "device/budget.h"

#include <utility>

#include "base/error_format.h"

namespace hearth {

Budget::Budget(std::string memory, std::string remedy, uint64_t bytes)
    : memory_(std::move(memory)), remedy_(std::move(remedy)), bytes_(bytes) {}

std::shared_ptr<void> Budget::claim(const std::string& name, uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (bytes > bytes_ - used_) {
      throw usage_error("memory of {}: {} needs {} bytes, but {} of the budget of {} are left; {}",
                        memory_, name, bytes, bytes_ - used_, bytes_, remedy_);
    }
    used_ += bytes;
  }
  // Unlocked: where there is no memory for the pointer, it gives the claim back at once.
  return {this, [self = shared_from_this(), bytes](void*) {
            const std::lock_guard guard(self->mutex_);
            self->used_ -= bytes;
          }};
}

uint64_t Budget::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace hearth
