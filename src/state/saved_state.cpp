#include "state/saved_state.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "base/file_ops.h"
#include "base/planted.h"
#include "base/stop.h"
#include "state/state_manifest.h"
#include "state/state_reading.h"

namespace hearth {
namespace {

// What one pass over a file finds.
struct FileContent {
  std::vector<Digest> chunks;
  std::vector<StateTensor> tensors;  // where its header can be read
  std::string fault;                 // of a weight that is not finite
};

FileContent read_content(const InputFile& file, const SafetensorsHeader& header, bool weights) {
  FileContent content;
  ChunkHasher chunks(kStateChunk);
  std::vector<std::byte> piece(std::min<uint64_t>(kStatePiece, file.size()));
  Hasher tensor;
  size_t next = 0;  // entries follow each other without holes
  for (uint64_t at = 0; at < file.size();) {
    leave_if_stopped("saved state was checked");
    const uint64_t end = std::min<uint64_t>(at + piece.size(), file.size());
    file.read(piece.data(), end - at, at);
    chunks.update(piece.data(), end - at);
    for (; next < header.entries.size(); ++next) {
      const SafetensorsEntry& entry = header.entries[next];
      const uint64_t from = std::max(header.data_begin + entry.begin, at);
      const uint64_t to = std::min(header.data_begin + entry.end, end);
      const std::byte* data = piece.data() + (from - at);
      if (from < to) tensor.update(data, to - from);
      if (from < to && weights && entry.dtype == "F32" && content.fault.empty()) {
        content.fault =
            not_finite(entry.name, data, from - header.data_begin - entry.begin, to - from);
      }
      if (header.data_begin + entry.end > end) break;
      content.tensors.push_back({entry.name, entry.dtype, entry.shape, tensor.digest()});
      tensor = Hasher();
    }
    at = end;
  }
  content.chunks = chunks.finish();
  return content;
}

// Every byte against the chunk digests, then the content against its digest. Returns the tensors.
std::vector<StateTensor> verify_file(const std::string& path, const StateFile& expected) {
  const InputFile file(path);
  if (file.size() != expected.bytes) {
    throw input_error("has " + std::to_string(file.size()) + " bytes, manifest.json says " +
                      std::to_string(expected.bytes));
  }
  SafetensorsHeader header;
  std::string header_fault;
  try {
    header = SafetensorsFile(path).header();
  } catch (const Error& error) {
    header_fault = error.what();  // reported unless the chunk digests, which say more, differ
  }
  FileContent content = read_content(file, header, expected.component == kWeights);
  for (size_t i = 0; i < expected.chunks.size(); ++i) {
    if (content.chunks[i] == expected.chunks[i] || planted("unchecked-chunks")) continue;
    const uint64_t begin = i * kStateChunk;
    throw input_error("is damaged between bytes " + std::to_string(begin) + " and " +
                      std::to_string(std::min(begin + kStateChunk, expected.bytes)) +
                      ": the digest is " + content.chunks[i].hex() + ", manifest.json says " +
                      expected.chunks[i].hex());
  }
  if (!header_fault.empty()) throw input_error(header_fault);
  check_names(expected, header);
  if (component_digest(expected.component, content.tensors) != expected.digest) {
    throw input_error("content digest mismatch: the file does not match what was saved");
  }
  if (!content.fault.empty()) throw input_error(content.fault);
  return std::move(content.tensors);
}

std::vector<std::string> names_of(std::span<const StateFile> files, std::string_view component) {
  std::vector<std::string> names;
  for (const StateFile& file : files) {
    if (file.component == component) names.push_back(file.name());
  }
  return names;
}

/// The manifest, of the step that the directory's name says.
StateManifest checked_manifest(const std::string& directory) {
  StateManifest manifest = read_manifest(directory);
  const auto named = step_of_state_directory(directory);
  if (named && *named != manifest.step) {
    throw DamagedState(
        directory, kManifestName,
        "is of step " + std::to_string(manifest.step) + ", the directory's name says another");
  }
  return manifest;
}

}  // namespace

DamagedState::DamagedState(const std::string& directory, std::string bad_file, std::string why)
    : Error(ExitCode::storage, directory + (bad_file.empty() ? "" : "/" + bad_file) + ": " + why),
      file(std::move(bad_file)),
      reason(std::move(why)) {}

SavedState open_state(const std::string& directory) {
  StateManifest manifest = checked_manifest(directory);
  SavedState state{
      directory, manifest.step, {}, std::move(manifest.extra), names_of(manifest.files, kWeights)};
  state.digest.root = manifest.root;
  return state;
}

std::vector<SafetensorsFile> open_weights(const SavedState& state) {
  std::vector<SafetensorsFile> files;
  for (const std::string& name : state.weights) {
    reading(state.directory, name, [&](const std::string& path) { files.emplace_back(path); });
  }
  return files;
}

SavedState verify_state(const std::string& directory) {
  if (planted("trust-newest")) return open_state(directory);
  StateManifest manifest = checked_manifest(directory);
  DigestBuilder digests;
  for (const std::span<const StateFile> parts : by_component(manifest.files)) {
    std::vector<StateTensor> tensors;
    for (const StateFile& file : parts) {
      reading(directory, file.name(), [&](const std::string& path) {
        std::ranges::move(verify_file(path, file), std::back_inserter(tensors));
      });
    }
    digests.add(parts[0].component, std::move(tensors));
  }
  SavedState state{directory, manifest.step, digests.take(), std::move(manifest.extra),
                   names_of(manifest.files, kWeights)};
  check_root(directory, state.digest, manifest);
  return state;
}

}  // namespace hearth
