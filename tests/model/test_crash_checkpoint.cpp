// What a power loss may leave of a published checkpoint: nothing under its name, or all of it.
#include "checkpoint/checkpoint_write.h"
#include "model_fixtures.h"
#include "support/crash_states.h"
#include "support/faulty_calls.h"
#include "support/planted.h"
#include "support/temporary_directory.h"

using namespace hearth;
using namespace hearth::test;

namespace {

const std::string kResult = "/memory-disk/run/model";

CrashReport crash_of_publishing() {
  const TemporaryDirectory directory;
  const std::string base = directory / "base";
  make_checkpoint(small_config(), base);
  write_text(base + "/tokenizer.json", "{}");
  const Checkpoint checkpoint(base);
  OwnedTable owned(checkpoint, true);
  checkpoint.read_weights(owned.table, Pool(1));

  MemoryDisk disk("/memory-disk");
  FaultyCalls calls(disk);
  const FileCallsOverride guard(calls);
  make_directory("/memory-disk/run");
  disk.settle();
  write_checkpoint(owned.table, checkpoint, kResult);
  disk.promise(1);
  return crash_states(disk, {200, 20}, [&](MemoryDisk& crashed, int promised) {
    const FileCallsOverride inner(crashed);
    if (file_info(kResult).kind == FileKind::none) {
      if (promised > 0) return std::string("a published result is gone");
      return std::string();
    }
    for (const char* name : {"model.safetensors", "config.json", "tokenizer.json"}) {
      const std::string path = kResult + "/" + name;
      if (file_info(path).kind == FileKind::none) return path + " is missing";
      if (read_file(path) != read_file(base + "/" + name)) return path + " is not whole";
    }
    return std::string();
  });
}

}  // namespace

TEST_CASE("crash states of a published checkpoint: nothing, or all of it") {
  const CrashReport report = crash_of_publishing();
  CHECK(report.fault == "");
  CHECK(report.states > 300);
}

TEST_CASE("crash states show a checkpoint that is published too early") {
  for (const char* fault : {"skip-sync-component", "skip-sync-temporary-result"}) {
    INFO(fault);
    const PlantedFault guard(fault);
    CHECK(crash_of_publishing().fault != "");
  }
}
