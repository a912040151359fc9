// What is wrong with a configuration: gathered, and told at once.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace hearth {

/// Several problems of one configuration: a usage error that `main` prints a line a problem.
class ConfigurationError : public Error {
 public:
  explicit ConfigurationError(std::vector<std::string> problems);
  /// Each fit to be shown.
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::vector<std::string> problems_;
};

class Problems {
 public:
  void add(const std::string& problem) { list_.push_back(problem); }
  /// Whether there are so many that a further one is counted, not told.
  bool many() const { return list_.size() >= kMostTold; }
  /// Raises a usage error for one problem, a ConfigurationError for more.
  void raise() const;

 private:
  static constexpr size_t kMostTold = 100;
  /// The first of them, and how many are left out.
  std::vector<std::string> told() const;

  std::vector<std::string> list_;
};

}  // namespace hearth
