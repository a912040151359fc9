// The manifest of a saved state (docs/checkpoint-format.md, "manifest.json" and "Versions").
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"

namespace hearth {

inline constexpr char kManifestName[] = "manifest.json";
/// The component of the f32 masters. Its values must be finite.
inline constexpr std::string_view kWeights = "weights";
inline constexpr uint64_t kStateChunk = uint64_t{64} << 20;   // bytes of a file per hash
inline constexpr uint64_t kMaxManifest = uint64_t{32} << 20;  // enough for a state of 45 TB

/// The newest format version. The program reads all versions up to it, and writes the lowest that can
/// say what a state holds.
inline constexpr int64_t kStateVersion = 2;

/// Storage error for a state of a newer format version; names both versions. A search for states
/// does not skip such a state.
class NewerState : public Error {
 public:
  explicit NewerState(const std::string& what) : Error(ExitCode::storage, what) {}
};

/// A member of the manifest.
struct ManifestMember {
  std::string_view name;
  int64_t since = 1;               // the format version that added it
  std::string_view if_older = {};  // its value in older versions, as JSON
};
/// Gives the manifest of an older version the members that later versions added.
void add_newer_members(Json& manifest, int64_t version, std::span<const ManifestMember> members);

/// A file of a component: of all of it, or since version 2 of the tensors that one rank owns.
struct StateFile {
  std::string component;
  uint64_t bytes = 0;
  std::vector<Digest> chunks;             // of the file
  Digest digest;                          // of the content (component_digest)
  std::optional<int32_t> rank = {};       // that wrote its part; none: the file of all
  std::vector<std::string> tensors = {};  // of a part, in the order of the file
  std::string name() const {
    return component + (rank ? ".rank-" + std::to_string(*rank) : "") + ".safetensors";
  }
};

struct StateManifest {
  int64_t version = kStateVersion;
  int64_t step = 0;
  std::vector<StateFile> files;  // components in the order of registration, parts by rank
  Digest root;
  Json extra;
};

/// The lowest version that can list these files. A manifest has no other.
int64_t lowest_version(std::span<const StateFile> files);

std::string manifest_text(const StateManifest& manifest);
/// Input error, naming `source`, if no version of `manifest_text` could have written the text.
/// NewerState for a newer version.
StateManifest parse_manifest(std::string_view text, const std::string& source);

}  // namespace hearth
