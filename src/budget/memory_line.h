// The memory of a plan: one line per use and place, with measurements after the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/parameter_memory.h"
#include "plan/schedule.h"
#include "setup/place_budget.h"

namespace hearth {

enum class MemoryUse : uint8_t {
  program,      // the program and its libraries
  data,         // rows held in memory
  reading,      // buffers for reading files
  staging,      // pinned buffers, for parameters on devices
  parameters,   // `of` is a CopyRole
  saving,       // names and digests during a save
  result,       // what writing and checking the result takes
  tables,       // of tensors, in the sessions of the run
  activations,  // `of` is a Pass
  scratch,      // scratch memory of kernels
  sums,         // gradients put aside while logical shards are added, and on their way from ranks
  ranks,        // the other ranks of this process
  predictor,    // what foretells the tokens of experts
  slots,        // copies of weights and gradients that live on the host
  schedules,    // tasks and their buffers
  reached,      // `of` is a Place that shares the host's memory
  allowance,    // reserve for uses without a line
  opening,      // what the process took before the run, if that is more than all other lines
};

/// The use of a line. All activation lines of a pass share an id, because one arena holds them.
struct LineId {
  MemoryUse use = MemoryUse::program;
  int of = 0;
  friend bool operator==(const LineId&, const LineId&) = default;
};
inline LineId parameters_of(CopyRole role) {
  return {MemoryUse::parameters, static_cast<int>(role)};
}
inline LineId activations_of(Pass pass) { return {MemoryUse::activations, static_cast<int>(pass)}; }

/// One use: the estimate, its basis, and after the run the measurement. A basis begins with its
/// kind: derived (arithmetic on known sizes), measured (in this process), data (from row lengths),
/// policy (an allowance).
struct MemoryLine {
  LineId id;
  std::string name;  // for people and JSON
  uint64_t bytes = 0;
  std::string basis;
  std::optional<uint64_t> measured = std::nullopt;
};

/// All lines of a place. Their memory is in use at the same time.
struct PlaceLines {
  PlaceBudget budget;
  std::vector<MemoryLine> lines;
  uint64_t peak = 0;  // sum of the lines
  std::optional<uint64_t> measured_peak = std::nullopt;
  bool fits() const { return peak <= budget.bytes; }
};

/// The memory that an arena took at a place.
struct MeasuredArena {
  LineId id;
  uint64_t bytes = 0;
  Place place = kHostPlace;
};

/// The measured memory of a run (Session::measured_memory).
struct MeasuredMemory {
  std::vector<MeasuredArena> arenas;
  uint64_t schedules = 0;  // executors and their schedules
  /// From reading weights; none: the process had more before, so nobody knows.
  std::optional<uint64_t> read_buffers = {};
  uint64_t ranks = 0;   // what the other ranks of this process took
  uint64_t saving = 0;  // increase from beginning a save
  uint64_t peak = 0;    // of the process
};

}  // namespace hearth
