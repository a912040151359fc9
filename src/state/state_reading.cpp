#include "state/state_reading.h"

#include <algorithm>

#include "base/file_ops.h"
#include "model/weight_copy.h"

namespace hearth {

StateManifest read_manifest(const std::string& directory) {
  return reading(directory, kManifestName, [&](const std::string& path) {
    if (file_info(directory).kind != FileKind::directory) {
      throw DamagedState(directory, "", "not a directory of saved state");
    }
    return parse_manifest(read_file(path, kMaxManifest), path);
  });
}

std::string not_finite(const std::string& tensor, const std::byte* data, uint64_t offset,
                       uint64_t bytes) {
  const auto n = static_cast<int64_t>(bytes / sizeof(float));
  const bool whole = bytes % sizeof(float) == 0;
  const int64_t bad = whole ? find_not_finite(DType::f32, data, n) : 0;
  if (whole && bad == n) return "";
  const std::string element = std::to_string(offset / sizeof(float) + static_cast<uint64_t>(bad));
  return "tensor " + quoted(tensor) +
         (whole ? ": element " + element + " is not finite (NaN or infinity)"
                : ": its elements do not begin at a multiple of 4 bytes");
}

void check_names(const StateFile& expected, const SafetensorsHeader& header) {
  if (!expected.rank) return;
  if (!std::ranges::equal(expected.tensors, header.entries, {}, {}, &SafetensorsEntry::name)) {
    throw input_error("its tensors are not those of manifest.json");
  }
}

std::vector<std::span<const StateFile>> by_component(std::span<const StateFile> files) {
  std::vector<std::span<const StateFile>> components;
  for (size_t at = 0; at < files.size();) {
    size_t end = at + 1;
    while (end < files.size() && files[end].component == files[at].component) ++end;
    components.push_back(files.subspan(at, end - at));
    at = end;
  }
  return components;
}

void check_root(const std::string& directory, const StateDigest& digest,
                const StateManifest& manifest) {
  if (digest.root == manifest.root) return;
  throw DamagedState(directory, kManifestName,
                     "root digest mismatch: its components do not match what was saved");
}

}  // namespace hearth
