#include "commands/run_model.h"

#include "base/error_format.h"
#include "base/file_ops.h"
#include "base/json.h"
#include "checkpoint/hub_cache.h"
#include "checkpoint/model_files.h"

namespace hearth {
namespace {

bool holds(const std::string& directory, const char* name) {
  return file_info(directory + "/" + name).kind != FileKind::none;
}

/// A run writes its journal before anything else. A checkpoint of another program may hold folders of
/// these names, but no journal.
bool is_run(const std::string& path) {
  return file_info(path).kind == FileKind::directory && !holds(path, "config.json") &&
         holds(path, "journal.jsonl");
}

bool is_adapter(const std::string& path) {
  return file_info(path).kind == FileKind::directory && !holds(path, "config.json") &&
         holds(path, "adapter_config.json");
}

/// Makes the base that adapter_config.json names the model.
void take_base(const std::string& adapter, Options& options) {
  const std::string path = adapter + "/adapter_config.json";
  const Json config = read_json_file(path, uint64_t{64} << 20);
  const Json* name = config.is_object() ? config.find("base_model_name_or_path") : nullptr;
  const Json* revision = config.is_object() ? config.find("revision") : nullptr;
  if (name == nullptr || !name->is_string() || name->as_string().empty()) {
    throw input_error("{}: names no base; give --model BASE --adapter {}", path, quoted(adapter));
  }
  const bool pinned = revision != nullptr && revision->is_string();
  options.model_name = name->as_string() + (pinned ? "@" + revision->as_string() : "");
  options.model = find_model(options.model_name);
  if (file_info(options.model).kind != FileKind::directory) {
    throw input_error("{}: its base {} is not there; give --model BASE --adapter {}", adapter,
                      quoted(name->as_string()), quoted(adapter));
  }
}

}  // namespace

void take_run(Options& options) {
  if (!options.adapter.empty() && is_run(options.adapter) && holds(options.adapter, "adapter")) {
    options.adapter += "/adapter";
  }
  const std::string run = options.model;
  if (run.empty() && !options.adapter.empty()) {
    take_base(options.adapter, options);
  } else if (options.adapter.empty() && is_adapter(run)) {
    options.adapter = run;
    take_base(run, options);
  }
  if (!is_run(run)) return;
  if (holds(run, "model")) {
    options.model = run + "/model";
  } else if (holds(run, "adapter")) {
    if (!options.adapter.empty()) {
      throw usage_error(
          "--model {}: this run has an adapter of its own, so --adapter has no base; "
          "give the base as --model",
          quoted(run));
    }
    options.adapter = run + "/adapter";
    take_base(options.adapter, options);
  } else {
    throw input_error(
        "{}: this run has no result yet; 'hearth export --from-state' makes one of its "
        "newest state",
        run);
  }
}

}  // namespace hearth
