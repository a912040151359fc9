#include "state/parameter_state.h"

#include <functional>
#include <string>

#include "model/parameter_access.h"
#include "state/state_manifest.h"

namespace hearth {

namespace {

StateView view_of(const ParameterTable& table, const Tensor& t, DType dtype) {
  StateView view;
  view.name = t.name;
  view.dtype = dtype;
  view.shape = t.vector ? std::vector<int64_t>{t.cols} : std::vector<int64_t>{t.rows, t.cols};
  view.end = view.shape[0];
  view.place = table.block(t.block).place;
  view.memory = &table.memory();
  return view;
}

StateView own_view(const ParameterTable& table, const Tensor& t, const Copy& copy) {
  StateView view = view_of(table, t, copy.view.dtype);
  view.bytes = {static_cast<std::byte*>(copy.view.raw()), copy.view.bytes()};
  return view;
}

/// Masters and moments are f32 (docs/numbers.md).
StateView far_view(const ParameterTable& table, TensorId id, CopyRole role,
                   const TensorsElsewhere& elsewhere) {
  const Tensor& t = table.tensor(id);
  StateView view = view_of(table, t, DType::f32);
  elsewhere.show(id, role, static_cast<size_t>(t.size()) * size_of(view.dtype), view);
  return view;
}

using ViewsOf = std::function<std::vector<StateView>(CopyRole)>;

void add_weights(StateRegistry& registry, ParameterTable& table, const ViewsOf& views) {
  registry.add({std::string(kWeights),
                [views] { return views(CopyRole::master); },
                {},
                [&table] { refresh_working_copies(table); }});
}

void add_components(StateRegistry& registry, ParameterTable& table, const ViewsOf& views) {
  add_weights(registry, table, views);
  registry.add({"moment1", [views] { return views(CopyRole::moment1); }, {}, {}});
  registry.add({"moment2", [views] { return views(CopyRole::moment2); }, {}, {}});
}

/// What is in memory here: of owned tensors, or of all.
ViewsOf views_here(const ParameterTable& table, bool owned_alone) {
  return [&table, owned_alone](CopyRole role) {
    std::vector<StateView> views;
    for (const Tensor& t : table.tensors()) {
      const Copy& copy = t.copies[static_cast<int>(role)];
      if (!copy.present() || (owned_alone && !table.block(t.block).owned)) continue;
      views.push_back(own_view(table, t, copy));
    }
    return views;
  };
}

}  // namespace

void register_parameters(StateRegistry& registry, ParameterTable& table) {
  add_components(registry, table, views_here(table, true));
}

void register_parameters(StateRegistry& registry, ParameterTable& table,
                         const TensorsElsewhere& elsewhere) {
  add_components(registry, table, [&table, &elsewhere](CopyRole role) {
    std::vector<StateView> views;
    for (TensorId id = 0; id < std::ssize(table.tensors()); ++id) {
      const Tensor& t = table.tensor(id);
      const Copy& copy = t.copies[static_cast<int>(role)];
      if (!t.trainable) continue;
      views.push_back(table.block(t.block).owned ? own_view(table, t, copy)
                                                 : far_view(table, id, role, elsewhere));
    }
    return views;
  });
}

void register_masters(StateRegistry& registry, ParameterTable& table) {
  add_weights(registry, table, views_here(table, false));
}

}  // namespace hearth
