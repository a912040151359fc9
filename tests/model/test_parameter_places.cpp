// Copies of parameters by place: arenas, runs of the optimizer.
#include <map>

#include "checkpoint_fixture.h"
#include "place_fixture.h"

using namespace hearth;
using namespace hearth::test;

namespace {

ParameterTable small_table() {
  const Json json = small_config();
  return trained(family_of(json, "config.json").make_table(read_config(json)));
}

}  // namespace

TEST_CASE("parameter places: every copy lies in an arena of its block's place", "[places]") {
  std::map<CopyRole, size_t> together;
  ParameterTable plain = small_table();
  for (const ParameterArena& arena : parameter_arenas(plain, kRounded)) {
    CHECK(arena.place == kHostPlace);
    together[arena.role] += arena.bytes;
  }
  std::map<CopyRole, size_t> apart;
  ParameterTable mixed = small_table();
  move_blocks(mixed, Away::experts);
  Place last = kHostPlace;
  for (const ParameterArena& arena : parameter_arenas(mixed, kRounded)) {
    CHECK(arena.place >= last);
    last = arena.place;
    apart[arena.role] += arena.bytes;
  }
  CHECK(last == 1);
  for (const auto& [role, bytes] : together) {
    CHECK(apart[role] >= bytes);
    CHECK(apart[role] <= bytes + 512);  // the end of one arena more
  }
  const PlacedTable placed(small_table(), kRounded, Away::experts);
  for (TensorId id = 0; id < std::ssize(placed.table.tensors()); ++id) {
    const auto* data = static_cast<const std::byte*>(placed.table.view(id, CopyRole::master).data);
    bool on_host = false;
    for (const auto& arena : placed.arenas) {
      on_host |= data >= arena.data() && data < arena.data() + arena.size();
    }
    CHECK(on_host == (placed.table.place(id) == kHostPlace));
  }
}

TEST_CASE("parameter places: a run of the optimizer ends where the place changes", "[places]") {
  const PlacedTable placed(small_table(), kTraining, Away::experts);
  const auto blocks = static_cast<BlockId>(placed.table.blocks().size());
  const auto runs = update_runs(placed.table, 0, blocks);
  TensorId next = 0;
  size_t away = 0;
  for (const UpdateRun& run : runs) {
    CHECK(run.begin == next);
    next = run.end;
    for (TensorId id = run.begin; id < run.end; ++id) CHECK(placed.table.place(id) == run.place);
    away += run.place == 1;
  }
  CHECK(next == std::ssize(placed.table.tensors()));
  CHECK(away > 0);
  CHECK(away < runs.size());
  // The experts of a layer are one run as they are on the host alone.
  const PlacedTable host(small_table(), kTraining, Away::nothing);
  CHECK(update_runs(host.table, 0, blocks).size() <= runs.size());
}

TEST_CASE("parameter places: blocks exchange their memory and keep their content", "[places]") {
  PlacedTable placed(small_table(), kRounded, Away::odd_experts);
  ParameterTable& table = placed.table;
  placed.fill();
  std::map<CopyRole, std::vector<std::byte>> before;
  for (int r = 0; r < kCopyRoles; ++r) {
    before[static_cast<CopyRole>(r)] = placed.bytes(static_cast<CopyRole>(r));
  }
  const auto blocks = static_cast<BlockId>(table.blocks().size());
  const size_t runs = update_runs(table, 0, blocks).size();
  const BlockId here = table.find_block(BlockKind::expert, 0, 0),
                there = table.find_block(BlockKind::expert, 0, 1);
  const void* const memory = table.view(table.block(there).begin, CopyRole::master).data;
  REQUIRE(have_equal_memory(table, here, there));
  exchange_memory(table, here, there);
  CHECK(table.block(here).place == 1);
  CHECK(table.block(there).place == kHostPlace);
  CHECK(table.view(table.block(here).begin, CopyRole::master).data == memory);
  for (const auto& [role, bytes] : before) CHECK(placed.bytes(role) == bytes);
  // The memory of a run still is that of its tensors.
  size_t elements = 0;
  for (const UpdateRun& run : update_runs(table, 0, blocks)) {
    for (TensorId id = run.begin; id < run.end; ++id) {
      const auto* const data = static_cast<const float*>(table.view(id, CopyRole::moment2).data);
      const auto* const first = static_cast<const float*>(run.moment2.data);
      CHECK(data >= first);
      CHECK(data + table.tensor(id).size() <= first + run.moment2.size());
      elements += static_cast<size_t>(table.tensor(id).size());
    }
  }
  size_t all = 0;
  for (const Tensor& t : table.tensors()) all += static_cast<size_t>(t.size());
  CHECK(elements == all);
  exchange_memory(table, here, there);
  CHECK(update_runs(table, 0, blocks).size() == runs);
  const BlockId attention = table.find_block(BlockKind::attention, 0);
  CHECK_FALSE(have_equal_memory(table, here, attention));
}
