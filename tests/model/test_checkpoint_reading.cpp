// Reading weights: what is not finite, memory, a disk that fails, files that shrink.
#include <filesystem>

#include "checkpoint_fixture.h"
#include "support/counted_memory.h"
#include "support/failing_calls.h"
#include "support/shrinking_file.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

TEST_CASE("checkpoint: weights that are not finite are named by index", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  // The first and the last weight of every tensor of q's file and of the last shard's.
  struct Type {
    std::string name;
    std::string infinity, nan;
  };
  const std::vector<Type> types = {
      {"float32", std::string("\0\0\x80\x7f", 4), std::string("\x01\0\x80\xff", 4)},
      {"bfloat16", "\x80\xff", "\xc0\x7f"},
      {"float16", std::string("\0\x7c", 2), "\x01\xfc"}};
  for (const Type& type : types) {
    for (const bool sharded : {false, true}) {
      fs::remove_all(model);
      make_checkpoint(changed(small_config(), "torch_dtype", type.name), model);
      if (sharded) shard(model, 5);
      for (const auto& file : fs::directory_iterator(model)) {
        const std::string path = file.path();
        if (file.path().extension() != ".safetensors") continue;
        const std::vector<StoredTensor> whole = load(path);
        for (const size_t which : {size_t{0}, whole.size() - 1}) {
          const size_t width = type.nan.size();
          const size_t last = whole[which].data.size() / width - 1;
          for (const size_t element : {size_t{0}, last}) {
            std::vector<StoredTensor> bad = whole;
            bad[which].data.replace(element * width, width,
                                    element == 0 ? type.nan : type.infinity);
            store(path, bad);
            const std::string message = read_error(model);
            INFO(type.name << " " << path);
            CHECK_THAT(message, ContainsSubstring(file.path().filename().string()));
            CHECK_THAT(message, ContainsSubstring(whole[which].entry.name));
            CHECK_THAT(message,
                       ContainsSubstring("element " + std::to_string(element) + " is not finite"));
          }
        }
        store(path, whole);
      }
      CHECK(read_error(model).empty());
    }
  }
  // The largest finite number.
  make_checkpoint(changed(small_config(), "torch_dtype", "bfloat16"), directory / "large");
  edit(directory / "large",
       [](auto& tensors) { named(tensors, kQ).data.replace(6, 2, "\x7f\x7f"); });
  CHECK(read_error(directory / "large").empty());
}

TEST_CASE("checkpoint: reading weights takes no second copy", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  make_checkpoint(changed(small_config(), "vocab_size", 600'000), model);
  const Checkpoint checkpoint(model);
  OwnedTable owned(checkpoint, false);
  start_counting();
  checkpoint.read_weights(owned.table, Pool(1));
  CHECK(counted_peak() < 17 << 20);  // two weights of 14 MB each, pieces of 4 MiB
}

TEST_CASE("checkpoint: the disk fails or hands out small pieces", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  make_checkpoint(small_config(), model);
  OwnedTable expected(Checkpoint(model), false);
  Checkpoint(model).read_weights(expected.table, Pool(1));
  {
    FailingCalls calls;
    calls.piece = 3;
    calls.interrupts = true;
    const FileCallsOverride guard(calls);
    const Checkpoint checkpoint(model);
    OwnedTable owned(checkpoint, false);
    checkpoint.read_weights(owned.table, Pool(1));
    CHECK(owned.arenas == expected.arenas);
  }
  int failures = 0;
  for (int n = 1;; ++n) {
    FailingCalls calls;
    calls.fail_at = n;
    const FileCallsOverride guard(calls);
    try {
      const Checkpoint checkpoint(model);
      OwnedTable owned(checkpoint, false);
      checkpoint.read_weights(owned.table, Pool(1));
      if (!calls.failed()) break;
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::storage);
      ++failures;
    }
  }
  CHECK(failures > 10);
}

TEST_CASE("checkpoint: files that shrink while they are read", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  int refused = 0;
  for (int n = 1;; ++n) {
    fs::remove_all(model);
    make_checkpoint(small_config(), model);
    shard(model, 8);
    ShrinkingFile calls(n);
    const FileCallsOverride guard(calls);
    std::string message;
    try {
      const Checkpoint checkpoint(model);
      OwnedTable owned(checkpoint, false);
      checkpoint.read_weights(owned.table, Pool(2));
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::input);
      message = error.what();
    }
    if (calls.path().empty()) break;
    // What was cut off had been read already, or the file is named.
    INFO("read " << n << " of " << calls.path() << ": " << message);
    if (message.empty()) continue;
    CHECK_THAT(message, ContainsSubstring(fs::path(calls.path()).filename().string()));
    ++refused;
  }
  CHECK(refused > 20);
}
