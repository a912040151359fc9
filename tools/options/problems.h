// Collects the errors of a configuration, to report them together.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace hearth {

/// Several problems of one configuration: a usage error that `main` prints as one line per problem.
class ConfigurationError : public Error {
 public:
  explicit ConfigurationError(std::vector<std::string> problems);
  /// Each is safe to print.
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::vector<std::string> problems_;
};

class Problems {
 public:
  void add(const std::string& problem) { list_.push_back(problem); }
  bool empty() const { return list_.empty(); }
  /// Whether further problems will only be counted, not shown.
  bool many() const { return list_.size() >= kMostTold; }
  /// Raises a usage error for one problem, a ConfigurationError for more.
  void raise() const;

 private:
  static constexpr size_t kMostTold = 100;
  /// The first kMostTold problems, and the number of omitted ones.
  std::vector<std::string> told() const;

  std::vector<std::string> list_;
};

}  // namespace hearth
