#include "gpu_kernels/product_choices.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <set>

namespace hearth::HEARTH_GPU {
namespace {

// Whether nobody has said this line yet.
bool is_new(const std::string& line) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  return said.insert(line).second;
}

}  // namespace

std::span<const ProductChoice* const> product_choices() {
  static const std::array<const ProductChoice*, 1> choices = {&cublaslt_choice()};
  return choices;
}

const ProductChoice* choose_product(std::span<const ProductChoice* const> choices,
                                    GpuStream& stream, const DenseProduct& product,
                                    const std::function<void(const std::string&)>& say) {
  for (const ProductChoice* choice : choices) {
    const std::string reason = choice->declines(stream, product);
    if (reason.empty()) return choice;
    const std::string line = std::string(choice->name()) + " not used: " + reason;
    if (is_new(line)) say(line);
  }
  return nullptr;
}

size_t product_workspace_bytes() {
  size_t bytes = 0;
  for (const ProductChoice* choice : product_choices()) {
    bytes = std::max(bytes, choice->workspace_bytes());
  }
  return bytes;
}

}  // namespace hearth::HEARTH_GPU
