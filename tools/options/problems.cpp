#include "options/problems.h"

namespace hearth {
namespace {

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

std::vector<std::string> Problems::told() const {
  if (list_.size() <= kMostTold) return list_;
  std::vector<std::string> first(list_.begin(), list_.begin() + kMostTold);
  first.push_back("and " + std::to_string(list_.size() - kMostTold) + " more");
  return first;
}

void Problems::raise() const {
  if (list_.size() == 1) throw usage_error(list_[0]);
  if (!list_.empty()) throw ConfigurationError(told());
}

}  // namespace hearth
