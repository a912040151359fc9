// The splits of an earlier run, by step, layer and group of micro-batches, for a run that repeats them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "plan/decisions/split_problem.h"

namespace hearth {

struct RecordedSplit {
  int64_t line = 0;                  // of the file that has it
  std::vector<int32_t> tokens;       // by expert
  std::vector<uint8_t> on_device;    // by expert; else the host has it, if it has tokens
  std::vector<SplitReason> reasons;  // by expert; `none` of those without tokens alone
  DividedExpert divided = {};        // of the host's
};

class RecordedSplits {
 public:
  /// `file`: for messages.
  explicit RecordedSplits(std::string file) : file_(std::move(file)) {}

  /// The next of a layer in a step.
  void add(int64_t step, int32_t layer, RecordedSplit split);
  /// The run that was recorded went on from there: later steps come again.
  void forget_after(int64_t step);
  /// How many lines the file has.
  void set_lines(int64_t lines) { lines_ = lines; }

  /// Input error that names a line, unless each layer has as many splits as it has `groups` in every
  /// step from `first` to `last`.
  void require(int64_t first, int64_t last, const std::map<int32_t, int64_t>& groups) const;
  /// Tokens by expert of the group of this number of a layer; empty: there is no such group.
  std::vector<double> tokens(int64_t step, int32_t layer, int64_t group) const;
  /// That of the group of this number of a layer, with these tokens by expert, as the rule would have
  /// answered. Input error, naming the line, if there is none or it had other tokens.
  ExpertSplit split(int64_t step, int32_t layer, int64_t group,
                    std::span<const double> tokens) const;

 private:
  using Key = std::pair<int64_t, int32_t>;  // step, layer
  std::string at_line(int64_t line) const;
  Error missing(int64_t step, int32_t layer, int64_t found) const;

  std::string file_;
  int64_t lines_ = 0;
  std::map<Key, std::vector<RecordedSplit>> splits_;
};

}  // namespace hearth
