// The run directory (--out): its lock, its layout, and the cleanup at a start.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file_ops.h"
#include "base/json.h"
#include "setup/config.h"

namespace hearth {

/// RAII: locks `.lock`, so one process owns the directory.
///
/// A refused run (a changed option, another run's state) must change nothing. So the constructor
/// only locks; `clean` and later functions write. If nothing was written, the destructor removes
/// the lock and the directories that the constructor made.
class RunDirectory {
 public:
  /// Makes the directory if it is missing. Usage errors: the path is not a directory; another
  /// process owns it. On an error, leaves nothing behind. `result`: the name of the result's
  /// directory.
  explicit RunDirectory(const std::string& path, const char* result = "model");
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string states() const { return path_ + "/state"; }  // directory of the saved states
  /// The fine-tuned checkpoint or adapter.
  std::string result() const { return path_ + "/" + result_; }
  std::string metrics() const { return path_ + "/metrics.jsonl"; }
  std::string journal() const { return path_ + "/journal.jsonl"; }

  /// Storage error if the path no longer leads to the locked directory. Writing there would begin
  /// another run directory, without lock and logs.
  void require_there() const;
  /// Removes leftovers of earlier processes (.tmp-* and .trash-*, here and in states()), and cuts
  /// torn last lines off the logs.
  void clean() const;
  /// Write config.yaml and plan.json; a rename replaces the old file.
  void write_config(const std::vector<TrainConfig::Recorded>& options) const;
  void write_plan(const Json& plan) const;

 private:
  void leave_no_trace() const;

  std::string path_, result_;
  std::vector<std::string> made_;  // by the constructor: .lock, then directories, innermost first
  std::unique_ptr<FileLock> lock_;
  uint64_t device_ = 0, inode_ = 0;  // of the locked directory
};

/// The text of config.yaml, which `hearth train` accepts as a configuration.
std::string config_yaml(const std::vector<TrainConfig::Recorded>& options);

}  // namespace hearth
