// A training that takes a tenth of a second, made by the real program, and what must hold of its run
// directory: after any disturbance, and at the end.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "durable/process.h"
#include "support/temporary_directory.h"

namespace hearth::test {

/// What an uninterrupted run left.
struct Outcome {
  std::string root;                          // of the last state
  std::map<std::string, std::string> model;  // or adapter: file name to content
  std::map<int64_t, std::string> metrics;    // step to its line, without time and memory
  std::map<std::string, std::string> evals;  // "step when" to loss
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// Model and data in a directory of their own, and starts of the program on them: ten steps of two
/// micro-batches, packed, shuffled, over two epochs and a bit, evaluated at every third step.
class TinyRun {
 public:
  TemporaryDirectory d;

  TinyRun();

  /// `train` into d/OUT. A later `more` may repeat no option that is given here already.
  Start train(const std::string& out, std::vector<std::string> more = {}) const;
  /// The program with other arguments, in the same surroundings.
  Start command(std::vector<std::string> words) const;
  Ended run(const Start& start) const;
  /// Runs until code 0 and says how it failed if it does not: "" if all is well.
  std::string finish(const Start& start) const;

  Outcome outcome(const std::string& out) const;
  /// What is wrong with the directory of a run that did not end, "" if nothing: states that are not
  /// whole or too few or many, a state without its line of metrics.
  std::string wrong_between(const std::string& out, int keep) const;
  /// The same for one that ended: another outcome, names that do not belong there. `all_kept`: it
  /// has saved at least `keep` states.
  std::string wrong_at_end(const std::string& out, int keep, const Outcome& expected,
                           bool all_kept = true) const;
};

/// The steps of the published states, ascending.
std::vector<int64_t> steps_of_states(const std::string& run_directory);
/// Whole lines of metrics.jsonl.
std::vector<std::string> metrics_lines(const std::string& run_directory);
/// All files of a directory with their content, and its folders with "/".
std::map<std::string, std::string> content_below(const std::string& directory);

/// A generator whose seed is `HEARTH_SEED` or random, and printed where a test fails: INFO it.
struct Seeded {
  uint64_t seed;
  std::mt19937_64 generator;
  explicit Seeded(uint64_t otherwise);
  int64_t whole(int64_t from, int64_t to);
  double real(double from, double to);
  bool chance(double p) { return real(0, 1) < p; }
};

/// Whether `result` is that of a program that refused or failed: this code and one line on stderr,
/// which has all of the parts.
std::string wrong_refusal(const Ended& result, int code, const std::vector<std::string>& parts);

}  // namespace hearth::test
