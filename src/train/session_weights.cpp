// Weights of a session: read, drawn, and shown to saved state.
#include <algorithm>

#include "base/system.h"
#include "model/adapters.h"
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
  refresh_working();
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

void Session::refresh_working() {
  for (Tensor& t : setup_.table.tensors()) {
    const Copy& working = t.copies[static_cast<int>(CopyRole::working)];
    if (!working.present()) continue;
    const View master = t.copies[static_cast<int>(CopyRole::master)].view;
    convert(master.dtype, master.data, working.view.dtype, working.view.raw(), t.size());
  }
}

void Session::register_state(StateRegistry& registry) {
  const auto views_of = [this](CopyRole role) {
    std::vector<StateView> views;
    for (const Tensor& t : setup_.table.tensors()) {
      const Copy& copy = t.copies[static_cast<int>(role)];
      if (!copy.present()) continue;
      StateView view;
      view.name = t.name;
      view.dtype = copy.view.dtype;
      view.shape = t.vector ? std::vector<int64_t>{t.cols} : std::vector<int64_t>{t.rows, t.cols};
      view.end = view.shape[0];
      view.bytes = {static_cast<std::byte*>(copy.view.raw()), copy.view.bytes()};
      views.push_back(std::move(view));
    }
    return views;
  };
  registry.add({"weights",
                [views_of] { return views_of(CopyRole::master); },
                {},
                [this] { refresh_working(); }});
  registry.add({"moment1", [views_of] { return views_of(CopyRole::moment1); }, {}, {}});
  registry.add({"moment2", [views_of] { return views_of(CopyRole::moment2); }, {}, {}});
}

}  // namespace hearth
