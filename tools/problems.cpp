#include "tools/problems.h"

namespace hearth {
namespace {

constexpr size_t kMostTold = 100;

/// The first of them, and how many are left out.
std::vector<std::string> told(std::vector<std::string> problems) {
  if (problems.size() <= kMostTold) return problems;
  const size_t more = problems.size() - kMostTold;
  problems.resize(kMostTold);
  problems.push_back("and " + std::to_string(more) + " more");
  return problems;
}

std::string summary(const std::vector<std::string>& problems) {
  std::string text = std::to_string(problems.size()) + " problems: ";
  for (size_t i = 0; i < problems.size(); ++i) text += (i == 0 ? "" : "; ") + problems[i];
  return text;
}

}  // namespace

ConfigurationError::ConfigurationError(std::vector<std::string> problems)
    : Error(ExitCode::usage, summary(problems)), problems_(std::move(problems)) {
  for (std::string& problem : problems_) problem = usage_error(problem).what();
}

void Problems::raise() const {
  if (list_.size() == 1) throw usage_error(list_[0]);
  if (!list_.empty()) throw ConfigurationError(told(list_));
}

}  // namespace hearth
