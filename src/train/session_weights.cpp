// Weights of a session: read, drawn, and shown to saved state.
#include <algorithm>

#include "base/system.h"
#include "model/adapters.h"
#include "model/parameter_access.h"
#include "state/parameter_state.h"
#include "train/session.h"

namespace hearth {

namespace {

/// While it lives, homes lie where gradients do: what fills homes fills those.
class HomesInGradients {
 public:
  explicit HomesInGradients(ParameterTable& table) : table_(table) { exchange(); }
  ~HomesInGradients() { exchange(); }
  HomesInGradients(const HomesInGradients&) = delete;
  HomesInGradients& operator=(const HomesInGradients&) = delete;

 private:
  void exchange() {
    for (Tensor& t : table_.tensors()) {
      if (!t.trainable) continue;
      std::swap(t.copies[static_cast<int>(CopyRole::master)].view,
                t.copies[static_cast<int>(CopyRole::gradient)].view);
    }
  }
  ParameterTable& table_;
};

/// The pairs as training begins with them; of a model alone, nothing.
void read_adapters(RunSetup& setup) {
  if (setup.adapter) {
    setup.adapter->read(setup.table);
  } else {
    init_adapters(setup.table, setup.settings.seed);
  }
}

}  // namespace

void Session::read_weights() {
  const uint64_t before = resident_bytes();
  setup_.checkpoint->read_weights(setup_.table, *pool_);
  read_adapters(setup_);
  refresh_working_copies(setup_.table);
  read_bytes_ = peak_resident_bytes() - std::min(peak_resident_bytes(), before);
}

void Session::read_start() {
  const HomesInGradients guard(setup_.table);
  setup_.checkpoint->read_weights(setup_.table, *pool_, WeightSet::trained);
  read_adapters(setup_);
}

size_t Session::views_through(const Task& update) const {
  const BlockId blocks = update.blocks.back().end;
  const TensorId end = blocks > 0 ? setup_.table.block(blocks - 1).end : 0;
  size_t views = 0;
  for (TensorId id = 0; id < end; ++id) views += setup_.table.tensor(id).trainable;
  return views;
}

void Session::register_state(StateRegistry& registry) {
  register_parameters(registry, setup_.table);
}

}  // namespace hearth
