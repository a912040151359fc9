// Any text is refused with an input error that names the file, or read to a table that keeps its rules:
// times are finite for small tasks and never fall, and each entry is the one that fits itself.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "setup/cost_table_file.h"
#include "support/bounded.h"
#include "support/json_mutator.h"

namespace {

using namespace hearth;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_curve(const CostEntry& e) {
  double before = 0;
  for (size_t i = 0; i < e.units.size(); ++i) {
    const auto units = static_cast<double>(e.units[i]);
    const double here = e.at(units);
    require(std::isfinite(here) && here >= before);
    before = here;
    const double inside = e.at(units - 0.5);
    require(inside >= e.seconds.front() && inside <= here);
  }
  require(e.at(2 * static_cast<double>(e.units.back())) >= before);
}

void check_fit(const CostTable& table, const CostEntry& e) {
  const CostShape shape = e.shape.value_or(CostShape{1, 1});
  const CostEntry* found = table.find(e.kind, e.phase, e.dtype, e.cores.value_or(1), shape);
  require(found != nullptr && found->kind == e.kind && found->phase == e.phase);
  if (e.cores && e.shape) require(found == &e);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return test::mutate_input(data, size, most, seed, test::mutate_json);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    CostTable table;
    {
      const test::Bounded bound(size, {.times = 64});
      table = parse_cost_table(text, "fuzz");
    }
    for (const CostEntry& e : table.entries()) {
      check_curve(e);
      check_fit(table, e);
    }
    require(CostTable(table.entries(), table.links()).digest() == table.digest());
  } catch (const Error& error) {
    require(error.code() == ExitCode::input &&
            std::string_view(error.what()).starts_with("fuzz: "));
  }
  return 0;
}
