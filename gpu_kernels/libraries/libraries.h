// Libraries whose kernels may compute a problem before the kernels of this room do. Each kind of problem
// has an ordered list of libraries (product_libraries.h, grouped_libraries.h, attention_libraries.h);
// what no library of the list takes, the own kernels compute. Each library has a folder here: <name>.cpp
// calls it, and its null twin no_<name>.cpp says why it is absent.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu_kernels/gpu_stream.h"
#include "ops/implementations.h"
#include "ops/op_set.h"

namespace hearth::HEARTH_GPU {

/// The names in a list such as HEARTH_WITHOUT ("cuDNN,CUTLASS"), which leaves these libraries out from
/// the start. Usage error for any other name.
std::vector<std::string_view> left_out(const std::string& text);

/// Whether the process does without this library.
bool is_refused(std::string_view name);
/// From now on nobody calls this library; the caller says why. False takes that back. Call it only
/// while no op runs.
void refuse_library(std::string_view name, bool refused = true);

/// The libraries of all lists that are there and not refused.
std::vector<OpLibrary> found_libraries();

/// A library that may be absent. Safe to call from several threads, each with its own stream.
class Library {
 public:
  virtual ~Library() = default;
  virtual std::string_view name() const = 0;
  /// The version that was found; empty: the library is absent, and `declines` says why.
  virtual std::string version() const { return {}; }
  bool refused() const { return is_refused(name()); }
};

/// A library for one kind of problem. `Bounds` are the sizes that bound its scratch.
template <class Problem, class... Bounds>
class LibraryFor : public Library {
 public:
  /// Why the library does not take this problem; empty: it takes it. By shape alone.
  virtual std::string declines(GpuStream&, const Problem&) const = 0;
  /// Enqueues a problem that `declines` did not decline. Memory comes from the stream's scratch.
  virtual void run(GpuStream&, const Problem&) const = 0;
  /// An upper bound of the scratch that a problem within these bounds takes.
  virtual size_t scratch_bytes(Bounds... bounds) const = 0;
};

/// A library that is not there: it declines everything.
template <class Kind>
class Absent;
template <class Problem, class... Bounds>
class Absent<LibraryFor<Problem, Bounds...>> final : public LibraryFor<Problem, Bounds...> {
 public:
  Absent(std::string_view name, std::string reason) : name_(name), reason_(std::move(reason)) {}
  std::string_view name() const override { return name_; }
  std::string declines(GpuStream&, const Problem&) const override { return reason_; }
  void run(GpuStream&, const Problem&) const override {
    HEARTH_CHECK(false, std::string(name_) + ": " + reason_);
  }
  size_t scratch_bytes(Bounds...) const override { return 0; }

 private:
  std::string_view name_;
  std::string reason_;
};

/// An ordered list: the first library that takes a problem computes it.
template <class Kind>
using LibraryList = std::span<const Kind* const>;

/// The largest need of the list.
template <class Kind, class... Bounds>
size_t most_scratch_bytes(LibraryList<Kind> list, Bounds... bounds) {
  size_t bytes = 0;
  for (const Kind* library : list) bytes = std::max(bytes, library->scratch_bytes(bounds...));
  return bytes;
}

/// Enqueues the problem if a library of the list takes it. False: none does, and nothing was enqueued.
/// The log says why each library declined.
template <class Kind, class Problem>
bool run_by_library(LibraryList<Kind> list, GpuStream& stream, const Problem& problem) {
  const Kind* const library = choose(list, log_line, stream, problem);
  if (library == nullptr) return false;
  library->run(stream, problem);
  return true;
}

}  // namespace hearth::HEARTH_GPU
