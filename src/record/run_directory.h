// The run directory (--out): who owns it, what lies where, what is cleaned at a start.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file_ops.h"
#include "base/json.h"
#include "setup/config.h"

namespace hearth {

/// Owned by one process: holds a lock on `.lock` for its life.
///
/// A start has two halves, because a run that is refused (a changed option, another run's state) must
/// change nothing. The constructor takes the lock; `clean` and everything after it write. If nothing
/// was written, the destructor removes the lock and the directories that the constructor made.
class RunDirectory {
 public:
  /// Makes the directory if it is missing. Usage errors: the path is not a directory; another
  /// process owns it (nothing is touched). If the lock cannot be made, nothing is left behind.
  /// `result`: the name of the directory with the result.
  explicit RunDirectory(const std::string& path, const char* result = "model");
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string states() const { return path_ + "/state"; }  // of the saved states
  /// The fine-tuned checkpoint or adapter.
  std::string result() const { return path_ + "/" + result_; }
  std::string metrics() const { return path_ + "/metrics.jsonl"; }
  std::string journal() const { return path_ + "/journal.jsonl"; }

  /// Storage error where the path no longer leads to the directory that was locked: what is written
  /// would begin another run directory there, without lock and logs.
  void require_there() const;
  /// Removes what an earlier process left unfinished (.tmp-*, .trash-*, here and among the states)
  /// and cuts torn last lines off the logs.
  void clean() const;
  /// config.yaml and plan.json, replaced by rename.
  void write_config(const std::vector<TrainConfig::Recorded>& options) const;
  void write_plan(const Json& plan) const;

 private:
  void leave_no_trace() const;

  std::string path_, result_;
  std::vector<std::string> made_;  // by the constructor: .lock, then directories, innermost first
  std::unique_ptr<FileLock> lock_;
  uint64_t device_ = 0, inode_ = 0;  // of the directory
};

/// The text of config.yaml: `hearth train` reads it as a configuration.
std::string config_yaml(const std::vector<TrainConfig::Recorded>& options);

}  // namespace hearth
