// The memory of a plan: a line for every use at every place, and after the run what was measured.
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
  program,      // and libraries
  data,         // rows that are held
  reading,      // buffers of reading files
  staging,      // pinned, for parameters of devices
  parameters,   // `of` is a CopyRole
  saving,       // names and digests of a save
  activations,  // `of` is a Pass
  scratch,      // of kernels
  schedules,    // tasks and their buffers
  reached,      // `of` is a Place whose memory is the host's, too
  allowance,    // for what has no line
};

/// What a line is for. Lines of activations share an id: together they are one arena.
struct LineId {
  MemoryUse use = MemoryUse::program;
  int of = 0;
  friend bool operator==(const LineId&, const LineId&) = default;
};
inline LineId parameters_of(CopyRole role) {
  return {MemoryUse::parameters, static_cast<int>(role)};
}
inline LineId activations_of(Pass pass) { return {MemoryUse::activations, static_cast<int>(pass)}; }

/// One use: an estimate, what it rests on, and after the run what was measured. A basis begins with
/// its kind: derived (arithmetic on known sizes), measured (in this process), data (from the lengths
/// of the rows), policy (an allowance).
struct MemoryLine {
  LineId id;
  std::string name;  // for people and JSON
  uint64_t bytes = 0;
  std::string basis;
  std::optional<uint64_t> measured = std::nullopt;
};

/// All lines of a place. All of them live at once.
struct PlaceLines {
  PlaceBudget budget;
  std::vector<MemoryLine> lines;
  uint64_t peak = 0;  // sum of the lines
  std::optional<uint64_t> measured_peak = std::nullopt;
  bool fits() const { return peak <= budget.bytes; }
};

/// What an arena took of the memory of a place.
struct MeasuredArena {
  LineId id;
  uint64_t bytes = 0;
  Place place = kHostPlace;
};

/// What the memory of a run was (Session::measured_memory).
struct MeasuredMemory {
  std::vector<MeasuredArena> arenas;
  uint64_t schedules = 0;     // executors and their schedules
  uint64_t read_buffers = 0;  // by how much reading weights raised the peak
  uint64_t saving = 0;        // by how much beginning a save raised it
  uint64_t peak = 0;          // of the process
};

}  // namespace hearth
