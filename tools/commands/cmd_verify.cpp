// hearth verify: checksums of saved state (exit 4 when damaged), a checkpoint against its index and
// its config.json, an adapter against its settings (exit 3).
#include <iterator>

#include "base/counted.h"
#include "base/file_ops.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/inspect.h"
#include "commands/commands.h"
#include "commands/directory_kind.h"
#include "commands/output.h"
#include "peft/check.h"
#include "state/saved_state.h"

namespace hearth {
namespace {

/// A line on what is whole; a document of all comes at the end instead.
void print_whole(const Options& options, const std::string& line) {
  if (!options.json) print(line + "\n");
}

void verify_saved_state(const std::string& directory, const Options& options) {
  const SavedState state = verify_state(directory);
  print_whole(options, directory + ": saved state of step " + std::to_string(state.step) +
                           ", whole, digest " + state.digest.root.hex());
}

void verify_checkpoint(const std::string& directory, const Options& options) {
  const Checkpoint checkpoint(directory, options.follow_links);
  checkpoint.check_finite();
  const ContentDigest digest = digest_checkpoint(checkpoint);  // reads every byte of every tensor
  print_whole(options, directory + ": checkpoint of " +
                           counted(std::ssize(digest.tensors), "tensor") + ", whole, digest " +
                           digest.root.hex());
}

void verify_adapter(const std::string& directory, const Options& options) {
  const ContentDigest digest = check_adapter(directory, options.follow_links);
  print_whole(options, directory + ": adapter of " + counted(std::ssize(digest.tensors), "tensor") +
                           ", whole, digest " + digest.root.hex());
}

void verify_run(const std::string& directory, const Options& options) {
  int64_t verified = 0;
  const std::string states = directory + "/state";
  if (file_info(states).kind == FileKind::directory) {
    for (const std::string& name : list_directory(states)) {
      if (!step_of_state_directory(name)) continue;
      verify_saved_state(states + "/" + name, options);
      ++verified;
    }
  }
  const std::string model = directory + "/model";
  if (file_info(model).kind == FileKind::directory) {
    verify_checkpoint(model, options);
    ++verified;
  }
  const std::string adapter = directory + "/adapter";
  if (file_info(adapter).kind == FileKind::directory) {
    verify_adapter(adapter, options);
    ++verified;
  }
  if (verified == 0)
    throw input_error(directory + ": the run directory has neither saved state nor a result");
}

void verify(const Options& options) {
  const std::string& directory = options.operand;
  switch (directory_kind(directory)) {
    case DirectoryKind::saved_state: return verify_saved_state(directory, options);
    case DirectoryKind::checkpoint: return verify_checkpoint(directory, options);
    case DirectoryKind::adapter: return verify_adapter(directory, options);
    case DirectoryKind::run: return verify_run(directory, options);
  }
}

void print_verdict(const Options& options, bool ok) {
  if (options.json) print_json(JsonObject{{"ok", ok}});
}

}  // namespace

ExitCode run_verify(const Options& options) {
  try {
    verify(options);
  } catch (const Error&) {
    print_verdict(options, false);
    throw;
  }
  print_verdict(options, true);
  return ExitCode::done;
}

}  // namespace hearth
