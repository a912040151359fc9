// Libraries that are tried before our own kernels. Each kind of problem has an ordered list of
// libraries (product_libraries.h, grouped_libraries.h, attention_libraries.h). If no library takes
// a problem, our own kernels compute it. Each library has a folder here: <name>.cpp calls it, and
// its null twin no_<name>.cpp says why it is absent.
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

/// Parses the list of libraries in HEARTH_WITHOUT ("cuDNN,CUTLASS"), which are disabled from the
/// start. Usage error for any other name.
std::vector<std::string_view> left_out(const std::string& text);

/// Whether this process does not use this library.
bool is_refused(std::string_view name);
/// Disables this library, or enables it again if `refused` is false. The caller reports why. Call
/// only while no op runs.
void refuse_library(std::string_view name, bool refused = true);

/// The libraries of all lists that are present and not refused.
std::vector<OpLibrary> found_libraries();

/// A library that may be absent. Safe to call from several threads, each with its own stream.
class Library {
 public:
  virtual ~Library() = default;
  virtual std::string_view name() const = 0;
  /// The version; empty: the library is absent, and `declines` says why.
  virtual std::string version() const { return {}; }
  bool refused() const { return is_refused(name()); }
};

/// A library for one kind of problem. `Bounds` are the sizes that bound its scratch.
template <class Problem, class... Bounds>
class LibraryFor : public Library {
 public:
  /// Why the library does not take this problem; empty: it takes it. Depends only on shapes.
  virtual std::string declines(GpuStream&, const Problem&) const = 0;
  /// Enqueues a problem that `declines` did not decline. Memory comes from the stream's scratch.
  virtual void run(GpuStream&, const Problem&) const = 0;
  /// An upper bound of the scratch that a problem within these bounds takes.
  virtual size_t scratch_bytes(Bounds... bounds) const = 0;
};

/// An absent library: it declines everything.
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

/// The largest scratch bound in the list.
template <class Kind, class... Bounds>
size_t most_scratch_bytes(LibraryList<Kind> list, Bounds... bounds) {
  size_t bytes = 0;
  for (const Kind* library : list) bytes = std::max(bytes, library->scratch_bytes(bounds...));
  return bytes;
}

/// Enqueues the problem on the first library that takes it. Returns false if none does. The log
/// says why each library declined.
template <class Kind, class Problem>
bool run_by_library(LibraryList<Kind> list, GpuStream& stream, const Problem& problem) {
  const Kind* const library = choose(list, log_line, stream, problem);
  if (library == nullptr) return false;
  library->run(stream, problem);
  return true;
}

}  // namespace hearth::HEARTH_GPU
