// Models whose routers all choose the same experts.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "support/stored_tensors.h"

namespace hearth::test {

/// All routers of a model choose the same experts: the first ones.
inline void make_routing_one_sided(const std::string& model) {
  edit(model, [](std::vector<StoredTensor>& tensors) {
    for (StoredTensor& tensor : tensors) {
      const bool router = tensor.entry.name.ends_with(".gate.weight");
      if (router) std::fill(tensor.data.begin(), tensor.data.end(), '\0');
    }
  });
}

}  // namespace hearth::test
