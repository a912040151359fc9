// An op set: the ops of one back end, and facts about the back end.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op_table.h"

namespace hearth {

/// A library found on this machine.
struct OpLibrary {
  std::string name, version;
};

/// A back end derives from this class. Its constructor adds its implementations to the table.
class OpSet : public OpTable {
 public:
  virtual ~OpSet() = default;
  virtual std::string_view name() const = 0;
  /// The instruction set chosen on this machine, if results may depend on it; else empty.
  virtual std::string instructions() const { return {}; }
  /// The libraries that ops call before their own kernels. The last bits of results depend on them.
  virtual std::vector<OpLibrary> libraries() const { return {}; }
  /// Enables or disables calls to a library in this process. Libraries are enabled at the start, if
  /// present. Call this only while no op runs.
  virtual void call_library(const std::string& name, bool called) const {
    static_cast<void>(name), static_cast<void>(called);
  }
  /// Whether this type of activations and this compute type are supported together.
  virtual bool supports(DType activations, Compute compute) const = 0;
  /// Whether the hardware supports products of this type (`--compute-dtype auto`). Emulation does
  /// not count.
  virtual bool has_in_hardware(Compute compute) const { return compute == Compute::f32; }
  /// Answers `has_in_hardware` as on a machine with or without products of bf16, for its plans;
  /// nullopt: as on this one. Of the whole process; no op may run meanwhile.
  virtual void assume_bf16(std::optional<bool> there) const { static_cast<void>(there); }
};

}  // namespace hearth
