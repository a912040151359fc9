// One op: its signature, the check of its shapes, and an ordered list of implementations.
//
// A back end adds its implementations to an op table (op_table.h). A call runs the first
// implementation that does not decline. Each reason to decline is logged once per process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/stream.h"
#include "ops/implementations.h"

namespace hearth {

class AnyOp {
 public:
  AnyOp() = default;
  AnyOp(const AnyOp&) = delete;
  AnyOp& operator=(const AnyOp&) = delete;
  virtual ~AnyOp() = default;
  std::string_view name() const { return name_; }
  /// Whether there is an implementation. An entry added by `lacks` does not count.
  virtual bool is_there() const = 0;

 protected:
  void set_name(std::string_view name) { name_ = name; }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::string_view name_;
};

template <class Signature>
class Op;

/// An op that runs on a stream. A call checks the shapes, then runs the first implementation that
/// takes the arguments.
template <class... P>
class Op<void(Stream&, P...)> final : public AnyOp {
 public:
  using Function = void(Stream&, P...);
  /// Whether the shapes of the arguments fit each other.
  using Shapes = bool(P...);
  /// Why an implementation does not take these arguments; empty: it takes them. It decides by
  /// shapes and types alone, so a repeated run uses the same implementations.
  using Declines = std::string(P...);

  void declare(std::string_view name, Shapes* fit) {
    set_name(name);
    fit_ = fit;
  }
  /// Adds an implementation to the end of the list.
  void add(std::string_view back_end, Function* run, Declines* declines = nullptr) {
    list_.push_back({back_end, run, declines, {}});
  }
  /// Records why the back end does not have this op. The next implementation in the list runs
  /// instead.
  void lacks(std::string_view back_end, std::string reason) {
    list_.push_back({back_end, nullptr, nullptr, std::move(reason)});
  }

  bool is_there() const override {
    for (const Entry& one : list_) {
      if (one.run != nullptr) return true;
    }
    return false;
  }

  void operator()(Stream& stream, P... arguments) const {
    if (fit_ != nullptr && !fit_(arguments...)) fail("shapes");
    for (const Entry& one : list_) {
      if (one.run != nullptr && one.declines == nullptr) return one.run(stream, arguments...);
      const std::string reason = one.declines != nullptr ? one.declines(arguments...) : one.reason;
      if (reason.empty()) return one.run(stream, arguments...);
      say_declined(log_line, std::string(one.back_end) + " for " + std::string(name()), reason);
    }
    fail("no implementation takes it");
  }

 private:
  struct Entry {
    std::string_view back_end;
    Function* run;  // null: the back end lacks the op
    Declines* declines;
    std::string reason;  // if it lacks it
  };
  Shapes* fit_ = nullptr;
  std::vector<Entry> list_;
};

/// A bound of the scratch that an op takes. A call returns the largest need of all implementations.
template <class Need, class... P>
class Op<Need(P...)> final : public AnyOp {
 public:
  using Function = Need(P...);

  void declare(std::string_view name) { set_name(name); }
  void add(Function* bound) { list_.push_back(bound); }
  bool is_there() const override { return !list_.empty(); }

  Need operator()(P... arguments) const {
    if (list_.empty()) fail("no implementation");
    Need need;
    for (Function* bound : list_) need = max_of(need, bound(arguments...));
    return need;
  }

 private:
  std::vector<Function*> list_;
};

}  // namespace hearth
