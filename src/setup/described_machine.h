// Another machine, as its own `hearth doctor --json` and `hearth profile` describe it: what
// `hearth plan --machine` plans for, without asking this machine anything.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op_set.h"
#include "plan/cost_table.h"
#include "topology/topology.h"

namespace hearth {

inline constexpr uint64_t kMaxMachineBytes = uint64_t{16} << 20;

struct DescribedMachine {
  Topology topology;
  bool bf16 = false;                    // whether its processor has products of bf16
  bool assumed_rates = false;           // what has no table has round rates; else no times
  std::map<std::string, double> links;  // measured alone: bytes per second by "FROM->TO"
  std::map<std::string, std::shared_ptr<const CostTable>> tables;  // by place

  /// The table of a place, or of the place that it stands for: "virtual:0", then "cuda:1". NUMA nodes
  /// of the host without a table of their own have the host's. Null: there is none.
  std::shared_ptr<const CostTable> table_of(const std::string& place,
                                            const std::string& stands_for = {}) const;
  /// The measured rate of a link; 0: unknown.
  double link_rate(const std::string& from, const std::string& to) const;
};

/// Puts a machine together from a topology or the JSON of doctor (one of them, once), and from the JSON
/// of profile and cost tables (each place once), in any order.
class MachineDescription {
 public:
  void take(Topology topology);
  /// Messages start with `source`. Input error for anything else, and for what is there twice.
  void add(std::string_view text, const std::string& source);
  bool has_machine() const { return has_machine_; }
  /// Usage error if the machine is missing.
  DescribedMachine machine() const;

 private:
  void add_table(const std::string& place, CostTable table, const std::string& where);

  bool has_machine_ = false;
  std::optional<bool> bf16_;  // by the instruction set
  bool bf16_tables_ = false;  // by the entries of tables
  DescribedMachine machine_;
};

/// Reads regular files of at most 16 MiB each. `topology`: hwloc's XML of the machine, instead of the
/// JSON of doctor; empty: none.
DescribedMachine read_described_machine(const std::vector<std::string>& files,
                                        const std::string& topology);

}  // namespace hearth
