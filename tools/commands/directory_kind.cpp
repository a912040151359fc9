#include "commands/directory_kind.h"

#include "base/error.h"
#include "base/file_ops.h"
#include "state/saved_state.h"

namespace hearth {

DirectoryKind directory_kind(const std::string& path) {
  const FileInfo info = file_info(path);
  if (info.kind != FileKind::directory) {
    throw input_error(path + ": expected a directory, found " +
                      (info.kind == FileKind::none ? "nothing" : "a file"));
  }
  const auto holds = [&](const char* name) {
    return file_info(path + "/" + name).kind != FileKind::none;
  };
  // By its name, too: a damaged state may have lost its manifest.
  if (holds("manifest.json") || step_of_state_directory(path)) {
    return DirectoryKind::saved_state;
  }
  // Some trainers copy the model's config.json beside an adapter.
  const bool has_weights = holds("model.safetensors") || holds("model.safetensors.index.json");
  const bool has_adapter = holds("adapter_config.json") || holds("adapter_model.safetensors");
  if (has_adapter && !has_weights) return DirectoryKind::adapter;
  if (holds("config.json")) return DirectoryKind::checkpoint;
  if (holds("state") || holds("model") || holds("adapter") || holds(".lock")) {
    return DirectoryKind::run;
  }
  throw input_error(path +
                    ": expected a checkpoint (config.json), an adapter (adapter_config.json), a "
                    "saved state (manifest.json) or a run directory (state, model, adapter); found "
                    "none of these files in it");
}

}  // namespace hearth
