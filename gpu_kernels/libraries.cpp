// The libraries behind all lists of choices.
#include "gpu_kernels/attention_choices.h"
#include "gpu_kernels/gpu_op_set.h"
#include "gpu_kernels/grouped_choices.h"
#include "gpu_kernels/product_choices.h"

namespace hearth::HEARTH_GPU {
namespace {

std::vector<const Choice*> all_choices() {
  std::vector<const Choice*> all;
  for (const ProductChoice* choice : product_choices()) all.push_back(choice);
  for (const GroupedChoice* choice : grouped_choices()) all.push_back(choice);
  for (const AttentionChoice* choice : attention_choices()) all.push_back(choice);
  return all;
}

}  // namespace

std::vector<OpLibrary> GpuOps::libraries() const {
  std::vector<OpLibrary> found;
  for (const Choice* choice : all_choices()) {
    std::string version = choice->version();
    if (version.empty() || is_refused(choice->name())) continue;
    found.push_back({std::string(choice->name()), std::move(version)});
  }
  return found;
}

void GpuOps::call_library(const std::string& name, bool called) const {
  refuse_choice(name, !called);
}

}  // namespace hearth::HEARTH_GPU
