// The cost table of a place: how long its tasks take, by size and cores, and how fast its links
// are. Predictions, pacing and decisions read it. Pure: no clock and no file
// (setup/cost_table_file.h reads files).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "layers/body.h"
#include "plan/kind_costs.h"

namespace hearth {

/// The matrices of a task. `hidden`: the model's hidden size. `width`: of experts and mlp, their
/// inner width; of other kinds see docs/cost-tables.md.
struct CostShape {
  int64_t hidden = 0;
  int64_t width = 0;
  friend bool operator==(const CostShape&, const CostShape&) = default;
};

/// A curve of times. `cores` and `shape` say what it was measured with; an entry without them fits
/// any.
struct CostEntry {
  TaskKind kind = TaskKind::attention;  // has_costs
  Phase phase = Phase::forward;
  Compute dtype = Compute::f32;  // f32 or bf16
  std::optional<int64_t> cores;
  std::optional<CostShape> shape;
  /// Sizes of the points: tokens; of experts the tokens of one expert; of norm and update
  /// parameters. At least 1, rising.
  std::vector<int64_t> units;
  std::vector<int64_t> pairs;   // of attention: pairs of query and key at each point, or empty
  std::vector<double> seconds;  // at each point; never falling

  /// Seconds of a task of this size. Linear between points. Below the first point its value, above
  /// the last point in proportion. With `pairs`, the curve is also read at the task's pairs (above
  /// 0), and the longer of the two times counts.
  double at(double task_units, double task_pairs = 0) const;
};

/// One direction of a link.
struct CostLink {
  std::string link;  // "FROM->TO"
  double bytes_per_s = 0;
  double latency_s = 0;
  double together = 0;  // bytes per second while the other links are busy
};

class CostTable {
 public:
  CostTable() = default;
  /// Input error that starts with `source` and names the entry, if a value breaks the rules above,
  /// or if two entries agree in kind, phase, dtype, cores and shape, or two links in name.
  CostTable(std::vector<CostEntry> entries, std::vector<CostLink> links,
            const std::string& source = "cost table");

  /// The entry that fits best; null if there is none of this kind, phase and dtype. A recompute
  /// falls back to forward. An entry that states the task's cores and shape comes first, then an
  /// entry that leaves them open, then the nearest by the ratios of cores, hidden and width.
  const CostEntry* find(TaskKind kind, Phase phase, Compute dtype, int64_t cores,
                        const CostShape& shape) const;
  /// Seconds of a task by the entry that `find` finds. `units` are above 0. An experts task is the
  /// sum of its calls, one for each expert that has tokens.
  std::optional<double> seconds(TaskKind kind, Phase phase, Compute dtype, int64_t cores,
                                const CostShape& shape, double units, double pairs = 0) const;
  /// The link from the host to a place, by the name of the place. If the table has no such link, the
  /// only link from the host in the table: tables are also used for places with other names. Null if
  /// there is none.
  const CostLink* link_to(const std::string& place) const;
  /// The same for the link to the host.
  const CostLink* link_from(const std::string& place) const;

  /// Sorted, so that tables of equal content are equal in any order of entries.
  const std::vector<CostEntry>& entries() const { return entries_; }
  const std::vector<CostLink>& links() const { return links_; }
  /// Of entries and links: tables of equal digests give equal times.
  Digest digest() const;

 private:
  std::vector<CostEntry> entries_;
  std::vector<CostLink> links_;
};

}  // namespace hearth
