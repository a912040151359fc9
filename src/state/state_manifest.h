// The manifest of a saved state (docs/checkpoint-format.md, "manifest.json" and "Versions").
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"

namespace hearth {

inline constexpr char kManifestName[] = "manifest.json";
/// The component of f32 masters. A model may not have weights that are not finite.
inline constexpr std::string_view kWeights = "weights";
inline constexpr uint64_t kStateChunk = uint64_t{64} << 20;   // bytes of a file under one hash
inline constexpr uint64_t kMaxManifest = uint64_t{32} << 20;  // enough for a state of 45 TB

/// The format version that this program writes. It reads all versions up to it.
inline constexpr int64_t kStateVersion = 1;

/// A state of a version that this program does not read yet: a storage error that names both
/// versions. A search for states does not pass it over.
class NewerState : public Error {
 public:
  explicit NewerState(const std::string& what) : Error(ExitCode::storage, what) {}
};

/// A member of the manifest.
struct ManifestMember {
  std::string_view name;
  int64_t since = 1;               // the format version that added it
  std::string_view if_older = {};  // what an older version means without it, as JSON
};
/// Gives the manifest of an older version the members that later versions added.
void add_newer_members(Json& manifest, int64_t version, std::span<const ManifestMember> members);

/// The file of a component.
struct StateFile {
  std::string component;
  uint64_t bytes = 0;
  std::vector<Digest> chunks;  // of the file
  Digest digest;               // of the component's content
  std::string name() const { return component + ".safetensors"; }
};

struct StateManifest {
  int64_t version = kStateVersion;
  int64_t step = 0;
  std::vector<StateFile> files;  // in the order of registration
  Digest root;
  Json extra;
};

std::string manifest_text(const StateManifest& manifest);
/// Input error naming `source` for a text that no version of `manifest_text` wrote. NewerState for a
/// version that this program does not read.
StateManifest parse_manifest(std::string_view text, const std::string& source);

}  // namespace hearth
