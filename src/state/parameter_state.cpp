#include "state/parameter_state.h"

#include "model/parameter_access.h"

namespace hearth {

namespace {

std::vector<StateView> views_of(const ParameterTable& table, CopyRole role) {
  std::vector<StateView> views;
  for (const Tensor& t : table.tensors()) {
    const Copy& copy = t.copies[static_cast<int>(role)];
    if (!copy.present()) continue;
    StateView view;
    view.name = t.name;
    view.dtype = copy.view.dtype;
    view.shape = t.vector ? std::vector<int64_t>{t.cols} : std::vector<int64_t>{t.rows, t.cols};
    view.end = view.shape[0];
    view.bytes = {static_cast<std::byte*>(copy.view.raw()), copy.view.bytes()};
    view.place = table.block(t.block).place;
    view.memory = &table.memory();
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace

void register_parameters(StateRegistry& registry, ParameterTable& table) {
  registry.add({"weights",
                [&table] { return views_of(table, CopyRole::master); },
                {},
                [&table] { refresh_working_copies(table); }});
  registry.add({"moment1", [&table] { return views_of(table, CopyRole::moment1); }, {}, {}});
  registry.add({"moment2", [&table] { return views_of(table, CopyRole::moment2); }, {}, {}});
}

}  // namespace hearth
