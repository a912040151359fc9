#include "train/run_directory.h"

#include "base/error.h"
#include "train/saved_state.h"

namespace hearth {
namespace {

std::string made_directory(const std::string& path) {
  if (path.empty()) throw usage_error("--out: expected a directory, found an empty name");
  const FileInfo info = file_info(path);
  if (info.kind != FileKind::none && info.kind != FileKind::directory) {
    throw usage_error("--out " + quoted(path) + ": exists and is no directory; choose another one");
  }
  // A run beside a model's own files would leave its state and result in an input.
  for (const char* name : {"/config.json", "/model.safetensors", "/model.safetensors.index.json"}) {
    if (file_info(path + name).kind == FileKind::none) continue;
    throw usage_error("--out " + quoted(path) + ": holds a checkpoint (" + (name + 1) +
                      "); choose another directory");
  }
  make_directory(path);
  return path;
}

}  // namespace

RunDirectory::RunDirectory(const std::string& path)
    : path_(made_directory(path)),
      lock_(std::make_unique<FileLock>(path_ + "/.lock", "this run directory")) {}

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
  std::string text =
      "# The options of this run, as resolved. null: by the rule that --help tells.\n";
  for (const TrainConfig::Recorded& option : options) {
    text += option.name + ": " + option.value + "\n";
  }
  return text;
}

}  // namespace hearth
