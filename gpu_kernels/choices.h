// Libraries whose kernels may take the place of those here, in ordered lists: what none of a list
// takes, the kernels here do. Each kind of problem has its own interface over `Choice`
// (product_choices.h, ...); each library has a folder, and a null twin that says why it is absent.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_kernels/gpu_stream.h"

namespace hearth::HEARTH_GPU {

/// A library that may be absent. Safe to call from several threads, each with its own stream.
class Choice {
 public:
  virtual ~Choice() = default;
  virtual std::string_view name() const = 0;
  /// Of the library that was found; empty: it is absent, and `declines` says why.
  virtual std::string version() const { return {}; }
};

using Say = std::function<void(const std::string&)>;

/// The names in a list such as HEARTH_WITHOUT ("cuDNN,CUTLASS"), which leaves these libraries out from
/// the start; usage error for one that is none of theirs.
std::vector<std::string_view> left_out(const std::string& text);

/// Whether the process does without this choice.
bool is_refused(std::string_view name);
/// From now on nobody takes this choice; who refuses it says why. False takes that back. Not while work
/// is under way.
void refuse_choice(std::string_view name, bool refused = true);

/// Says "<name> not used: <reason>", once in the process.
void say_declined(const Say& say, std::string_view name, const std::string& reason);

/// The first of a list that takes the problem, null where all decline. What a kind of choice has:
/// `std::string declines(GpuStream&, const Problem&) const`, the reason or nothing, by shape alone, so
/// that a run repeated makes the same choices.
template <class Kind, class Problem>
const Kind* choose(std::span<const Kind* const> choices, GpuStream& stream, const Problem& problem,
                   const Say& say) {
  for (const Kind* choice : choices) {
    if (is_refused(choice->name())) continue;
    const std::string reason = choice->declines(stream, problem);
    if (reason.empty()) return choice;
    say_declined(say, choice->name(), reason);
  }
  return nullptr;
}

}  // namespace hearth::HEARTH_GPU
