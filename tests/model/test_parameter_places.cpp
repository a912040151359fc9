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
  const std::vector<UpdateRun> runs = update_runs(placed.table, 0, blocks);
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
