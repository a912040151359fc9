#include "model/parameter_memory.h"

#include <algorithm>

#include "base/arena.h"

namespace hearth {

namespace {

constexpr const char* kRoleNames[kCopyRoles] = {"weights (stored type)", "master weights",
                                                "working weights",       "gradients",
                                                "first moments",         "second moments"};

/// Whether products read the tensor in the compute type. Router and shared gate are always f32.
bool enters_products(const ParameterTable& table, TensorId id) {
  const Tensor& t = table.tensor(id);
  if (t.vector || t.slot == Slot::router || t.slot == Slot::shared_gate) return false;
  return t.slot != Slot::embedding || table.head_weight() == id;
}

bool is_of_expert(const ParameterTable& table, TensorId id) {
  return table.block(table.tensor(id).block).kind == BlockKind::expert;
}

bool has_working_copy(const ParameterTable& table, TensorId id, const CopyPolicy& policy) {
  return (policy.compute == Compute::bf16 && enters_products(table, id)) ||
         (policy.wired && is_of_expert(table, id));
}

bool needs_copy(const ParameterTable& table, TensorId id, CopyRole role, const CopyPolicy& policy) {
  const bool trained = policy.training && table.tensor(id).trainable;
  const Block& block = table.block(table.tensor(id).block);
  if (block.fetched) return block.present && trained && role == CopyRole::gradient;
  if (!block.present) return false;
  switch (role) {
    case CopyRole::stored: return !trained;
    case CopyRole::working: return trained && has_working_copy(table, id, policy);
    case CopyRole::master:
    case CopyRole::gradient: return trained;
    case CopyRole::moment1:
    case CopyRole::moment2: return trained && block.owned;
  }
  return false;
}

/// The only copy of a tensor that is not trained. Products in bf16 would round f32 weights in every
/// pass: rounded once, they have the same bits, half the size, and cross links in half the time. An
/// embedding is read as it is, too.
DType stored_type(const ParameterTable& table, TensorId id, const CopyPolicy& policy) {
  const Tensor& tensor = table.tensor(id);
  const bool rounded = policy.compute == Compute::bf16 && tensor.stored == DType::f32 &&
                       tensor.slot != Slot::embedding && enters_products(table, id);
  return rounded ? DType::bf16 : tensor.stored;
}

DType type_of(const ParameterTable& table, TensorId id, CopyRole role, const CopyPolicy& policy) {
  if (role == CopyRole::stored) return stored_type(table, id, policy);
  const bool rounded = role == CopyRole::working && policy.compute == Compute::bf16;
  return rounded ? DType::bf16 : policy.master;
}

/// Walks the tensors of a place that have a copy of the role: f(id, byte offset), returns the arena's
/// size.
template <class F>
size_t layout(const ParameterTable& table, const CopyPolicy& policy, Place place, CopyRole role,
              F&& f) {
  size_t offset = 0;
  for (TensorId id = 0; id < static_cast<TensorId>(table.tensors().size()); ++id) {
    if (table.place(id) != place || !needs_copy(table, id, role, policy)) continue;
    const Tensor& t = table.tensor(id);
    const size_t unit = size_of(type_of(table, id, role, policy));
    offset = align_up(offset, unit * kTensorAlignment);
    f(id, offset);
    offset += unit * static_cast<size_t>(t.size());
  }
  return align_up(offset, sizeof(double) * kTensorAlignment);
}

/// One more than the last place at which a block lives.
Place places_of(const ParameterTable& table) {
  Place last = kHostPlace;
  for (const Block& block : table.blocks()) last = std::max(last, block.place);
  return last + 1;
}

/// Whether a tensor's master lies behind that of the one before it. Blocks that exchanged their memory
/// are not where the order of the table has them.
bool is_behind(const ParameterTable& table, TensorId before, TensorId id) {
  const View head = table.view(before, CopyRole::master);
  const auto elements = align_up(static_cast<size_t>(table.tensor(before).size()),
                                 static_cast<size_t>(kTensorAlignment));
  return static_cast<const std::byte*>(head.data) + elements * size_of(head.dtype) ==
         table.view(id, CopyRole::master).data;
}

View run_view(const ParameterTable& table, TensorId begin, int64_t n, CopyRole role) {
  const View first = table.tensor(begin).copies[static_cast<int>(role)].view;
  if (!first) return {};
  return {first.raw(), first.dtype, 1, n};
}

}  // namespace

std::optional<DType> copy_type(const ParameterTable& table, TensorId id, CopyRole role,
                               const CopyPolicy& policy) {
  if (!needs_copy(table, id, role, policy)) return std::nullopt;
  return type_of(table, id, role, policy);
}

DType read_type(const ParameterTable& table, TensorId id, const CopyPolicy& policy) {
  if (!policy.training || !table.tensor(id).trainable) {
    return type_of(table, id, CopyRole::stored, policy);
  }
  const bool working = has_working_copy(table, id, policy);
  return type_of(table, id, working ? CopyRole::working : CopyRole::master, policy);
}

size_t parameter_bytes(const ParameterTable& table, TensorId id, const CopyPolicy& policy) {
  const Tensor& t = table.tensor(id);
  size_t bytes = 0;
  for (int r = 0; r < kCopyRoles; ++r) {
    const auto role = static_cast<CopyRole>(r);
    if (!needs_copy(table, id, role, policy)) continue;
    bytes += size_of(type_of(table, id, role, policy)) * static_cast<size_t>(t.size());
  }
  return bytes;
}

std::vector<ParameterArena> parameter_arenas(const ParameterTable& table,
                                             const CopyPolicy& policy) {
  std::vector<ParameterArena> arenas;
  for (Place place = kHostPlace; place < places_of(table); ++place) {
    for (int r = 0; r < kCopyRoles; ++r) {
      const auto role = static_cast<CopyRole>(r);
      const size_t bytes = layout(table, policy, place, role, [](TensorId, size_t) {});
      if (bytes > 0) arenas.push_back({place, role, kRoleNames[r], bytes});
    }
  }
  return arenas;
}

void bind_parameters(ParameterTable& table, const CopyPolicy& policy,
                     std::span<const PlaceArenas> arenas) {
  HEARTH_CHECK(std::ssize(arenas) >= places_of(table), "parameter memory: place missing");
  for (int r = 0; r < kCopyRoles; ++r) {
    const auto role = static_cast<CopyRole>(r);
    for (Tensor& t : table.tensors()) t.copies[r] = {};
    for (Place place = kHostPlace; place < std::ssize(arenas); ++place) {
      std::byte* arena = arenas[static_cast<size_t>(place)][static_cast<size_t>(r)];
      layout(table, policy, place, role, [&](TensorId id, size_t offset) {
        HEARTH_CHECK(arena != nullptr, "parameter memory: arena missing");
        Tensor& t = table.tensor(id);
        t.copies[r] = {View(arena + offset, type_of(table, id, role, policy), t.rows, t.cols),
                       t.version};
      });
    }
  }
}

void bind_parameters(ParameterTable& table, const CopyPolicy& policy, const PlaceArenas& host) {
  bind_parameters(table, policy, std::span(&host, 1));
}

bool have_equal_memory(const ParameterTable& table, BlockId a, BlockId b) {
  const Block &x = table.block(a), &y = table.block(b);
  if (x.end - x.begin != y.end - y.begin) return false;
  for (TensorId i = 0; i < x.end - x.begin; ++i) {
    for (int r = 0; r < kCopyRoles; ++r) {
      const View &of_x = table.tensor(x.begin + i).copies[r].view,
                 &of_y = table.tensor(y.begin + i).copies[r].view;
      if (of_x.dtype != of_y.dtype || of_x.rows != of_y.rows || of_x.cols != of_y.cols ||
          (of_x.data == nullptr) != (of_y.data == nullptr)) {
        return false;
      }
    }
  }
  return true;
}

void exchange_memory(ParameterTable& table, BlockId a, BlockId b) {
  HEARTH_CHECK(have_equal_memory(table, a, b), "parameter memory: blocks of different memory");
  const Place place_a = table.block(a).place, place_b = table.block(b).place;
  std::vector<std::byte> bytes_a, bytes_b;
  for (TensorId i = 0; i < table.block(a).end - table.block(a).begin; ++i) {
    for (int r = 0; r < kCopyRoles; ++r) {
      View& of_a = table.tensor(table.block(a).begin + i).copies[r].view;
      View& of_b = table.tensor(table.block(b).begin + i).copies[r].view;
      if (of_a.data == nullptr) continue;
      auto* const in_a = static_cast<std::byte*>(of_a.raw());
      auto* const in_b = static_cast<std::byte*>(of_b.raw());
      bytes_a.resize(of_a.bytes());
      bytes_b.resize(of_b.bytes());
      table.memory().read(place_a, in_a, bytes_a);
      table.memory().read(place_b, in_b, bytes_b);
      table.memory().write(place_a, in_a, bytes_b);
      table.memory().write(place_b, in_b, bytes_a);
      std::swap(of_a.data, of_b.data);
    }
  }
  table.set_place(a, place_b);
  table.set_place(b, place_a);
}

void add_update_runs(const ParameterTable& table, BlockId begin, BlockId end, bool by_factor,
                     std::pmr::vector<UpdateRun>& runs) {
  if (begin >= end) return;
  const TensorId first = table.block(begin).begin;
  const TensorId last = table.block(end - 1).end;
  const auto has = [&](TensorId id, CopyRole role) {
    return table.tensor(id).copies[static_cast<int>(role)].present();
  };
  for (TensorId id = first; id < last;) {
    const Tensor& t = table.tensor(id);
    if (!has(id, CopyRole::master)) {
      ++id;
      continue;
    }
    TensorId stop = id + 1;
    const Place place = table.place(id);
    while (stop < last && table.place(stop) == place && table.tensor(stop).decayed == t.decayed &&
           has(stop, CopyRole::master) && is_behind(table, stop - 1, stop) &&
           has(stop, CopyRole::working) == has(id, CopyRole::working) &&
           has(stop, CopyRole::moment1) == has(id, CopyRole::moment1) &&
           (!by_factor || table.tensor(stop).factor == t.factor)) {
      ++stop;
    }
    const View head = table.view(id, CopyRole::master);
    const View tail = table.view(stop - 1, CopyRole::master);
    const auto gap =
        static_cast<const std::byte*>(tail.data) - static_cast<const std::byte*>(head.data);
    const int64_t n = gap / static_cast<int64_t>(size_of(head.dtype)) + tail.size();
    runs.push_back({id, stop, place, t.decayed, run_view(table, id, n, CopyRole::gradient),
                    run_view(table, id, n, CopyRole::master),
                    run_view(table, id, n, CopyRole::moment1),
                    run_view(table, id, n, CopyRole::moment2),
                    run_view(table, id, n, CopyRole::working), t.factor});
    id = stop;
  }
}

std::pmr::vector<UpdateRun> update_runs(const ParameterTable& table, BlockId begin, BlockId end) {
  std::pmr::vector<UpdateRun> runs;
  add_update_runs(table, begin, end, false, runs);
  return runs;
}

}  // namespace hearth
