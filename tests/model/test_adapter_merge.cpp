// Merged checkpoints: one rounding of W + scale B A, nothing else changed, whole or nothing.
#include <filesystem>

#include "adapter_fixture.h"
#include "layout_fixture.h"
#include "peft/write.h"
#include "support/failing_calls.h"
#include "support/layered_calls.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

AdapterOptions some() {
  AdapterOptions options;
  options.rank = 3;
  options.expert_rank = 2;
  options.targets = {"attention", "*layers.0.*experts*", "head"};
  return options;
}

std::map<std::string, StoredTensor> by_name(const std::string& directory) {
  std::map<std::string, StoredTensor> out;
  for (const std::string& name : list_directory(directory)) {
    if (!name.ends_with(".safetensors")) continue;
    for (StoredTensor& tensor : load(directory + "/" + name)) out[tensor.entry.name] = tensor;
  }
  return out;
}

double value_of(const StoredTensor& tensor, size_t i) {
  const DType type = *safetensors_dtype(tensor.entry.dtype);
  float value = 0;
  convert(type, tensor.data.data() + i * size_of(type), DType::f32, &value, 1);
  return static_cast<double>(value);
}

/// Of one result: adapted tensors are the sum, rounded; all others the base's bytes.
void check_merged(const std::string& base, const std::string& result,
                  const ParameterTable& adapters, double precision) {
  const auto before = by_name(base), after = by_name(result);
  const auto added = deltas(adapters);
  REQUIRE(before.size() == after.size());
  size_t changed = 0;
  for (const auto& [name, tensor] : before) {
    INFO(name);
    const StoredTensor& merged = after.at(name);
    CHECK(merged.entry.dtype == tensor.entry.dtype);
    CHECK(merged.entry.shape == tensor.entry.shape);
    const auto delta = added.find(name);
    if (delta == added.end()) {
      const bool same = merged.data == tensor.data;
      CHECK(same);
      continue;
    }
    ++changed;
    const bool moved = merged.data != tensor.data;
    CHECK(moved);
    for (size_t i = 0; i < delta->second.size(); ++i) {
      const double sum = value_of(tensor, i) + delta->second[i];
      const double size = std::abs(value_of(tensor, i)) + std::abs(delta->second[i]);
      REQUIRE(std::abs(value_of(merged, i) - sum) <= precision * std::abs(sum) + 1e-6 * size);
    }
  }
  CHECK(changed == added.size());
}

}  // namespace

TEST_CASE("merge: sums are rounded once, everything else has the base's bytes", "[adapter]") {
  const TemporaryDirectory directory;
  const std::map<std::string, double> precisions = {
      {"float32", 1e-7}, {"bfloat16", 1.0 / 256}, {"float16", 1.0 / 2048}};
  for (const auto& [type, precision] : precisions) {
    for (const bool sharded : {false, true}) {
      INFO(type << (sharded ? " sharded" : ""));
      const std::string base = directory / (type + (sharded ? "-shards" : ""));
      make_checkpoint(changed(small_config(), "torch_dtype", type), base);
      write_text(base + "/tokenizer.json", "{}");
      if (sharded) shard(base, 7);
      const Checkpoint checkpoint(base);
      const AdapterTable adapters = make_adapters(checkpoint, some());
      write_merged(adapters.table, checkpoint, Pool(2), base + "-merged");
      check_merged(base, base + "-merged", adapters.table, precision);
      CHECK(list_directory(base + "-merged") == list_directory(base));
      write_merged(adapters.table, checkpoint, Pool(1), base + "-one");
      for (const std::string& name : list_directory(base)) {
        const bool same = read_text(base + "-merged/" + name) == read_text(base + "-one/" + name);
        CHECK(same);
      }
    }
  }
}

TEST_CASE("merge: a fused base gets what its twin gets", "[adapter]") {
  const TemporaryDirectory directory;
  const std::string plain = directory / "base";
  const std::string fused = make_twins(small_config(), plain);
  const Checkpoint checkpoint(plain), twin(fused);
  const AdapterTable adapters = make_adapters(checkpoint, some());
  write_adapter(adapters.table, checkpoint, {}, directory / "adapter");
  AdapterReadOptions other;
  other.accept_other_base = true;  // the digest is of what is stored
  const LoadedAdapter ours_read = read_adapter(directory / "adapter", checkpoint);
  const LoadedAdapter twins_read = read_adapter(directory / "adapter", twin, other);
  write_merged(ours_read.table, checkpoint, Pool(2), plain + "-merged");
  write_merged(twins_read.table, twin, Pool(2), fused + "-merged");
  edit(plain + "-merged", [](auto& tensors) { fuse(tensors); });
  const auto ours = by_name(fused + "-merged"), theirs = by_name(plain + "-merged");
  REQUIRE(ours.size() == theirs.size());
  for (const auto& [name, tensor] : theirs) {
    INFO(name);
    REQUIRE(ours.contains(name));
    const bool same = ours.at(name).data == tensor.data;
    CHECK(same);
  }
}

TEST_CASE("merge: a weight that overflows the stored type is a numeric error", "[adapter]") {
  const TemporaryDirectory directory;
  make_checkpoint(changed(small_config(), "torch_dtype", "float16"), directory / "base");
  const Checkpoint base(directory / "base");
  AdapterTable adapters = make_adapters(base, some());
  for (float& value : adapters.memory) value *= 1000;
  CHECK_THAT(error_of([&] { write_merged(adapters.table, base, Pool(1), directory / "out"); },
                      ExitCode::numeric),
             ContainsSubstring("is not finite with the adapter, as F16"));
  CHECK_FALSE(fs::exists(directory / "out"));
  CHECK_FALSE(fs::exists(directory / ".tmp-out"));
}

namespace {

/// Flips a bit in the write number `at` of those with 40 bytes or more.
class FlippedWrite : public LayeredCalls {
 public:
  using LayeredCalls::LayeredCalls;
  int at = 0;
  bool flipped = false;
  int64_t pwrite(int fd, const void* buffer, size_t bytes, uint64_t offset) override {
    if (bytes < 40 || --at != 0) return below_.pwrite(fd, buffer, bytes, offset);
    std::string copy(static_cast<const char*>(buffer), bytes);
    copy[bytes / 2] = static_cast<char>(copy[bytes / 2] ^ 1);
    flipped = true;
    return below_.pwrite(fd, copy.data(), bytes, offset);
  }
};

}  // namespace

TEST_CASE("merge: what reads back differently does not appear", "[adapter]") {
  const TemporaryDirectory directory;
  make_checkpoint(small_config(), directory / "base");
  const Checkpoint base(directory / "base");
  const AdapterTable adapters = make_adapters(base, some());
  for (const int at : {1, 2, 9, -1, -2, -9}) {  // the first is the header
    const bool whole = at > 0;
    FlippedWrite calls;
    calls.at = std::abs(at);
    const FileCallsOverride guard(calls);
    const auto write = [&] {
      if (whole) {
        write_merged(adapters.table, base, Pool(1), directory / "out");
      } else {
        write_adapter(adapters.table, base, {}, directory / "out");
      }
    };
    CHECK_THAT(error_of(write, ExitCode::storage), ContainsSubstring("reads back differently"));
    CHECK(calls.flipped);
    CHECK_FALSE(fs::exists(directory / "out"));
  }
}

TEST_CASE("merge, adapter files: whatever call fails, the result is whole or absent", "[adapter]") {
  const TemporaryDirectory directory;
  make_checkpoint(small_config(), directory / "base");
  const Checkpoint base(directory / "base");
  const AdapterTable adapters = make_adapters(base, some());
  for (const bool merged : {true, false}) {
    int failures = 0;
    for (int n = 1;; n += 7) {
      FailingCalls calls;
      calls.fail_at = n;
      calls.error = n % 2 == 0 ? ENOSPC : EIO;
      bool done = false;
      try {
        const FileCallsOverride guard(calls);
        if (merged) {
          write_merged(adapters.table, base, Pool(1), directory / "out");
        } else {
          write_adapter(adapters.table, base, {}, directory / "out");
        }
        done = true;
      } catch (const Error& error) {
        CHECK(error.code() == ExitCode::storage);
        ++failures;
      }
      if (done && !calls.failed()) break;
      if (fs::exists(directory / "out")) {  // what failed was the last sync, at most
        const std::string out = directory / "out";
        const bool opens = error_of([&] {
                             if (merged) {
                               Checkpoint written(out);
                             } else {
                               AdapterFile written(out, base);
                             }
                           }).empty();
        CHECK(opens);
      }
      fs::remove_all(directory / "out");
    }
    CHECK(failures > 5);
    fs::remove_all(directory / "out");
  }
}
