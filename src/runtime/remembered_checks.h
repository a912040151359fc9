// Checks that passed on this machine, kept in a directory of the user's cache.
#pragma once

#include <string>

namespace hearth {

/// A check is known by its subject: a text with everything that its result depends on. Only passed
/// checks are kept. Nothing here raises: a check that cannot be kept, or whose file is damaged or
/// belongs to another user, is made again.
class RememberedChecks {
 public:
  /// The directory is made when it is needed; empty: nothing is kept.
  explicit RememberedChecks(std::string directory);

  bool has_passed(const std::string& subject) const;
  /// Replaces the file as a whole, so processes may remember side by side. Keeps at most kMost
  /// checks: one more removes all others.
  void remember(const std::string& subject) const;
  static constexpr int kMost = 64;

 private:
  std::string path_of(const std::string& subject) const;

  std::string directory_;
};

/// The program that runs: its version, and the size and time of its file, which every build changes.
std::string identity_of_program();

}  // namespace hearth
