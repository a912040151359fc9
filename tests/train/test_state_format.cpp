// A saved state is what docs/checkpoint-format.md says: scripts/read_state, written from the page
// alone, finds the same digests.
#include <memory>

#include "train/state_fixture.h"

namespace hearth::test {
namespace {

TEST_CASE("a state can be read by the page that describes it") {
  if (!has_python()) SKIP("no python3 on this machine");
  const TemporaryDirectory out;
  SavedRun run;
  // Every length that a short digest may have, and longer ones.
  std::vector<std::vector<uint8_t>> blobs;
  for (int n = 0; n <= 260; ++n) blobs.emplace_back(static_cast<size_t>(n), 0);
  for (const size_t n : {1023, 1024, 1025, 1088, 2047, 2049, 20000}) blobs.emplace_back(n, 0);
  for (std::vector<uint8_t>& blob : blobs) {
    for (size_t i = 0; i < blob.size(); ++i) blob[i] = static_cast<uint8_t>(i * 37 + blob.size());
  }
  StateComponent more;
  more.name = "blobs";
  more.views = [&] {
    std::vector<StateView> views;
    for (std::vector<uint8_t>& blob : blobs) {
      const auto bytes = static_cast<int64_t>(blob.size());
      views.push_back(
          SavedRun::view("of \"" + std::to_string(bytes) + "\" \u00e9", DType::u8, {bytes}, blob));
    }
    return views;
  };
  run.registry.add(more);
  const SavedState saved = save_state(run.registry, out.path(), 12, 2, kExtra);

  std::string expected = "0\n";
  const StateDigest digest = state_digest(run.registry);
  for (const auto& [component, own] : digest.components) {
    for (const auto& [tensor, of_tensor] : digest.tensors) {
      if (tensor.starts_with(component + "/")) expected += of_tensor.hex() + "  " + tensor + "\n";
    }
    expected += own.hex() + "  " + component + "\n";
  }
  expected += digest.root.hex() + "  (all)\n";
  CHECK(read_by_the_page(saved.directory) == expected);

  // It looks at the bytes.
  const std::string file = saved.directory + "/weights.safetensors";
  std::string content = read_file(file);
  content[content.size() - 3] ^= 4;
  overwrite(file, content);
  CHECK_FALSE(read_by_the_page(saved.directory).starts_with("0\n"));
}

}  // namespace
}  // namespace hearth::test
