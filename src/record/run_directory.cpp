#include "record/run_directory.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/error_format.h"
#include "base/setting.h"
#include "state/state_directory.h"

namespace hearth {
namespace {

void refuse_unfit(const std::string& path) {
  if (path.empty())
    throw usage_error("{}: expected a directory, found an empty name", spelled(Setting::out));
  const FileInfo info = file_info(path);
  if (info.kind != FileKind::none && info.kind != FileKind::directory) {
    throw usage_error("{}: not a directory; choose another name",
                      spelled(Setting::out, quoted(path)));
  }
  // A run beside a model's own files would leave its state and result in an input.
  for (const char* name : {"/config.json", "/model.safetensors", "/model.safetensors.index.json"}) {
    if (file_info(path + name).kind == FileKind::none) continue;
    throw usage_error("{}: holds a checkpoint ({}); choose another directory",
                      spelled(Setting::out, quoted(path)), name + 1);
  }
}

/// What a run in `path` will make: its lock and the directories that are missing.
std::vector<std::string> missing_parts(const std::string& path) {
  std::vector<std::string> missing;
  if (file_info(path + "/.lock").kind == FileKind::none) missing.push_back(path + "/.lock");
  for (std::string at = path; file_info(at).kind == FileKind::none;) {
    if (!at.ends_with('/')) missing.push_back(at);
    const size_t slash = at.rfind('/');
    if (slash == std::string::npos || slash == 0) break;
    at.resize(slash);
  }
  return missing;
}

}  // namespace

RunDirectory::RunDirectory(const std::string& path, const char* result)
    : path_(path), result_(result) {
  refuse_unfit(path);
  made_ = missing_parts(path);
  try {
    make_directory(path);
    lock_ = std::make_unique<FileLock>(path_ + "/.lock", "this run directory");
  } catch (const Error& error) {
    if (error.code() == ExitCode::usage) made_.clear();  // another process has it
    leave_no_trace();
    throw;
  }
  struct stat status {};
  if (file_calls().status(path_.c_str(), true, status) >= 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
}

RunDirectory::~RunDirectory() { leave_no_trace(); }

void RunDirectory::leave_no_trace() const {
  try {
    for (const std::string& path : made_) {
      const FileInfo info = file_info(path);
      if (info.kind == FileKind::none) continue;  // it could not be made
      const bool is_lock = info.kind != FileKind::directory;
      const std::vector<std::string> there = list_directory(is_lock ? path_ : path);
      if (there != (is_lock ? std::vector<std::string>{".lock"} : std::vector<std::string>{})) {
        return;
      }
      remove_tree(path);
    }
  } catch (const Error&) {  // what made the run fail, if anything, is told already
  }
}

void RunDirectory::require_there() const {
  struct stat status {};
  const int result = file_calls().status(path_.c_str(), true, status);
  const bool another = result >= 0 && (status.st_dev != device_ || status.st_ino != inode_);
  if (another || result == -ENOENT || result == -ENOTDIR) {
    throw storage_error(
        "{}: was moved or removed while the run wrote to it; to resume from its newest state, give "
        "its "
        "new place with {}",
        path_, spelled(Setting::out));
  }
}

void RunDirectory::clean() const {
  remove_leftovers(path_);
  cut_torn_line(metrics());
  cut_torn_line(journal());
}

void RunDirectory::write_config(const std::vector<TrainConfig::Recorded>& options) const {
  write_file_atomically(path_ + "/config.yaml", config_yaml(options));
}

void RunDirectory::write_plan(const Json& plan) const {
  write_file_atomically(path_ + "/plan.json", plan.dump(2) + "\n");
}

std::string config_yaml(const std::vector<TrainConfig::Recorded>& options) {
  std::string text = "# The options of this run, resolved. null: by the rule in --help.\n";
  for (const TrainConfig::Recorded& option : options) {
    if (!option.one_start) text += option.name + ": " + option.value + "\n";
  }
  return text;
}

}  // namespace hearth
