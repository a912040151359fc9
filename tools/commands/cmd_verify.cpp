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

void verify_saved_state(const std::string& directory) {
  const SavedState state = verify_state(directory);
  print(directory + ": saved state of step " + std::to_string(state.step) + ", whole, digest " +
        state.digest.root.hex() + "\n");
}

void verify_checkpoint(const std::string& directory, bool follow_links) {
  const Checkpoint checkpoint(directory, follow_links);
  checkpoint.check_finite();
  const ContentDigest digest = digest_checkpoint(checkpoint);  // reads every byte of every tensor
  print(directory + ": checkpoint of " + counted(std::ssize(digest.tensors), "tensor") +
        ", whole, digest " + digest.root.hex() + "\n");
}

void verify_adapter(const std::string& directory, bool follow_links) {
  const ContentDigest digest = check_adapter(directory, follow_links);
  print(directory + ": adapter of " + counted(std::ssize(digest.tensors), "tensor") +
        ", whole, digest " + digest.root.hex() + "\n");
}

void verify_run(const std::string& directory, bool follow_links) {
  int64_t verified = 0;
  const std::string states = directory + "/state";
  if (file_info(states).kind == FileKind::directory) {
    for (const std::string& name : list_directory(states)) {
      if (!step_of_state_directory(name)) continue;
      verify_saved_state(states + "/" + name);
      ++verified;
    }
  }
  const std::string model = directory + "/model";
  if (file_info(model).kind == FileKind::directory) {
    verify_checkpoint(model, follow_links);
    ++verified;
  }
  const std::string adapter = directory + "/adapter";
  if (file_info(adapter).kind == FileKind::directory) {
    verify_adapter(adapter, follow_links);
    ++verified;
  }
  if (verified == 0)
    throw input_error(directory + ": the run directory has neither saved state nor a result");
}

}  // namespace

ExitCode run_verify(const Options& options) {
  const std::string& directory = options.operand;
  switch (directory_kind(directory)) {
    case DirectoryKind::saved_state: verify_saved_state(directory); break;
    case DirectoryKind::checkpoint: verify_checkpoint(directory, options.follow_links); break;
    case DirectoryKind::adapter: verify_adapter(directory, options.follow_links); break;
    case DirectoryKind::run: verify_run(directory, options.follow_links); break;
  }
  return ExitCode::done;
}

}  // namespace hearth
