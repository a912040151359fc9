#include "state/saved_state.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <span>

#include "base/file_ops.h"
#include "base/planted.h"
#include "base/stop.h"
#include "checkpoint/safetensors.h"
#include "model/weight_copy.h"
#include "state/state_manifest.h"

namespace hearth {
namespace {

// A state that cannot be used: the bad file and why.
using Damage = DamagedState;

// Runs a reader of one file of a state: whatever it refuses is damage of that file.
template <class Action>
auto reading(const std::string& directory, const std::string& file, const Action& action) {
  try {
    return action(directory + "/" + file);
  } catch (const Damage&) {
    throw;
  } catch (const NewerState&) {
    throw;
  } catch (const Error& error) {
    if (error.code() == ExitCode::stopped) throw;
    std::string reason = error.what();
    const std::string path = directory + "/" + file + ": ";
    if (reason.starts_with(path)) reason.erase(0, path.size());
    throw Damage(directory, file, reason);
  }
}

StateManifest read_manifest(const std::string& directory) {
  return reading(directory, kManifestName, [&](const std::string& path) {
    if (file_info(directory).kind != FileKind::directory) {
      throw Damage(directory, "", "not a directory of saved state");
    }
    return parse_manifest(read_file(path, kMaxManifest), path);
  });
}

// What is wrong with a piece of an f32 tensor, `offset` bytes into it, a multiple of 4 where nothing
// was wrong before; empty if all is finite.
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

// The names of a part stand in the manifest, too.
void check_names(const StateFile& expected, const SafetensorsHeader& header) {
  if (!expected.rank) return;
  if (!std::ranges::equal(expected.tensors, header.entries, {}, {}, &SafetensorsEntry::name)) {
    throw input_error("its tensors are not those of manifest.json");
  }
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

// The files of each component, which stand together.
std::vector<std::span<const StateFile>> by_component(const std::vector<StateFile>& files) {
  std::vector<std::span<const StateFile>> components;
  for (size_t at = 0; at < files.size();) {
    size_t end = at + 1;
    while (end < files.size() && files[end].component == files[at].component) ++end;
    components.emplace_back(files.data() + at, end - at);
    at = end;
  }
  return components;
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
    throw Damage(
        directory, kManifestName,
        "is of step " + std::to_string(manifest.step) + ", the directory's name says another");
  }
  return manifest;
}

void check_root(const std::string& directory, const StateDigest& digest,
                const StateManifest& manifest) {
  if (digest.root == manifest.root) return;
  throw Damage(directory, kManifestName,
               "root digest mismatch: its components do not match what was saved");
}

// The views of a component, after it has made room for what the file holds.
std::vector<StateView> prepared_views(const StateComponent& component,
                                      const std::vector<SafetensorsEntry>& entries) {
  if (component.prepare) {
    for (const SafetensorsEntry& entry : entries) {
      component.prepare(entry.name, entry.end - entry.begin);
    }
  }
  std::vector<StateView> views = checked_views(component);
  std::map<std::string_view, const SafetensorsEntry*> by_name;
  for (const SafetensorsEntry& entry : entries) by_name[entry.name] = &entry;
  for (const StateView& view : views) {
    const auto found = by_name.find(view.name);
    if (found == by_name.end()) throw input_error("tensor " + quoted(view.name) + " is missing");
    const SafetensorsEntry& entry = *found->second;
    if (entry.dtype != safetensors_name(view.dtype) || entry.shape != view.shape) {
      throw input_error("tensor " + quoted(view.name) + " is " + entry.dtype + " " +
                        shape_text(entry.shape) + ", this run expects " +
                        safetensors_name(view.dtype) + " " + shape_text(view.shape));
    }
    by_name.erase(found);
  }
  if (!by_name.empty()) {
    throw input_error("tensor " + quoted(by_name.begin()->second->name) +
                      " is unknown to this run");
  }
  return views;
}

// The digests of tensors do not cover the rest of a header; the digests of its chunks do.
void check_header(const std::string& path, const StateFile& expected, uint64_t header_bytes) {
  const InputFile file(path);
  const uint64_t end =
      std::min<uint64_t>((header_bytes + kStateChunk - 1) / kStateChunk * kStateChunk, file.size());
  ChunkHasher hasher(kStateChunk);
  std::vector<std::byte> piece(std::min<uint64_t>(kStatePiece, end));
  for (uint64_t at = 0; at < end; at += piece.size()) {
    const uint64_t bytes = std::min<uint64_t>(piece.size(), end - at);
    file.read(piece.data(), bytes, at);
    hasher.update(piece.data(), bytes);
  }
  const std::vector<Digest> chunks = hasher.finish();
  if (file.size() != expected.bytes ||
      !std::equal(chunks.begin(), chunks.end(), expected.chunks.begin())) {
    throw input_error("chunk digest mismatch: the header does not match manifest.json");
  }
}

// Fills a view from the file's tensor; an f32 weight that is not finite is an input error. Returns
// the digest of what was read, if that went in pieces.
std::optional<Digest> load_view(const SafetensorsFile& file, const SafetensorsEntry& entry,
                                const StateView& view, bool weights,
                                std::vector<std::byte>& staging) {
  const auto check = [&](std::span<const std::byte> piece, size_t at) {
    if (!weights || view.dtype != DType::f32) return;
    const std::string fault = not_finite(entry.name, piece.data(), at, piece.size());
    if (!fault.empty()) throw input_error(fault);
  };
  const size_t bytes = view.bytes.size();
  if (view.direct()) {
    file.read(entry, view.bytes.data(), bytes, 0);
    check(view.bytes, 0);
    return std::nullopt;
  }
  Hasher read;
  for (size_t at = 0; at < bytes; at += kStatePiece) {
    staging.resize(std::min(kStatePiece, bytes - at));
    file.read(entry, staging.data(), staging.size(), at);
    check(staging, at);
    read.update(staging.data(), staging.size());
    view.write(at, staging);
  }
  return read.digest();
}

// The views that a file fills, then their digests. Of a view in memory of another rank that is the
// digest of what was read: only its owner can look at what has arrived.
std::vector<StateTensor> load_file(const SafetensorsFile& file, const StateFile& expected,
                                   const std::map<std::string_view, const StateView*>& by_name) {
  std::vector<StateView> views;
  std::vector<Digest> read(file.header().entries.size());
  std::vector<std::byte> staging;
  for (const SafetensorsEntry& entry : file.header().entries) {
    leave_if_stopped("saved state was read");
    StateView& view = views.emplace_back(*by_name.at(entry.name));
    const bool is_far = view.digest != nullptr;
    view.digest = nullptr;
    const auto digest = load_view(file, entry, view, expected.component == kWeights, staging);
    if (!is_far || !digest) continue;
    read[views.size() - 1] = *digest;
    view.digest = &read[views.size() - 1];
  }
  std::vector<StateTensor> tensors = digest_views(views);
  if (component_digest(expected.component, tensors) != expected.digest) {
    throw input_error("changed after it was checked");
  }
  return tensors;
}

void load_component(const std::string& directory, const StateComponent& component,
                    std::span<const StateFile> parts, DigestBuilder& digests) {
  const auto each = [&](const auto& action) {
    for (const StateFile& part : parts) {
      reading(directory, part.name(), [&](const std::string& path) { action(path, part); });
    }
  };
  std::vector<SafetensorsFile> files;
  std::vector<SafetensorsEntry> entries;
  each([&](const std::string& path, const StateFile& part) {
    const SafetensorsFile& file = files.emplace_back(path);
    check_header(path, part, file.header().data_begin);
    check_names(part, file.header());
    entries.insert(entries.end(), file.header().entries.begin(), file.header().entries.end());
  });
  std::vector<StateView> views;
  std::map<std::string_view, const StateView*> by_name;
  reading(directory, parts[0].name(),
          [&](const std::string&) { views = prepared_views(component, entries); });
  for (const StateView& view : views) by_name[view.name] = &view;
  std::vector<StateTensor> tensors;
  each([&](const std::string&, const StateFile& part) {
    const auto at = static_cast<size_t>(&part - parts.data());
    std::ranges::move(load_file(files[at], part, by_name), std::back_inserter(tensors));
  });
  digests.add(component.name, std::move(tensors));
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

void load_state(const StateRegistry& registry, const SavedState& state) {
  const StateManifest manifest = read_manifest(state.directory);
  if (manifest.root != state.digest.root) {
    throw Damage(state.directory, kManifestName, "changed after it was checked");
  }
  for (const StateFile& file : manifest.files) {
    const auto& known = registry.components();
    if (is_of_runtime(file.component)) continue;
    if (std::none_of(known.begin(), known.end(),
                     [&](const StateComponent& c) { return c.name == file.component; })) {
      throw Damage(state.directory, file.name(), "unknown component for this run");
    }
  }
  DigestBuilder digests;
  const auto components = by_component(manifest.files);
  std::vector<const StateComponent*> loaded;
  for (const StateComponent& component : registry.components()) {
    const auto parts = std::ranges::find_if(
        components, [&](const auto& files) { return files[0].component == component.name; });
    if (parts == components.end() && component.since > manifest.version) continue;
    if (parts == components.end() && is_of_runtime(component.name)) continue;
    if (parts == components.end()) {
      throw Damage(state.directory, kManifestName,
                   "component " + quoted(component.name) + " is missing");
    }
    load_component(state.directory, component, *parts, digests);
    loaded.push_back(&component);
  }
  check_root(state.directory, digests.take(), manifest);
  for (const StateComponent* component : loaded) {
    if (!component->restored) continue;
    try {
      component->restored();
    } catch (const Error& error) {  // any other code: the content does not fit this run
      if (error.code() != ExitCode::storage) throw;
      throw Damage(state.directory, component->name + ".safetensors", error.what());
    }
  }
}

void load_weights(const StateRegistry& registry, const SavedState& state) {
  const StateManifest manifest = read_manifest(state.directory);
  if (manifest.root != state.digest.root) {
    throw Damage(state.directory, kManifestName, "changed after it was checked");
  }
  const auto weights =
      std::find_if(registry.components().begin(), registry.components().end(),
                   [](const StateComponent& component) { return component.name == kWeights; });
  const auto components = by_component(manifest.files);
  const auto parts = std::ranges::find_if(
      components, [](const auto& files) { return files[0].component == kWeights; });
  HEARTH_CHECK(weights != registry.components().end(), "state: a registry without weights");
  if (parts == components.end()) {
    throw Damage(state.directory, kManifestName, "component " + quoted(kWeights) + " is missing");
  }
  DigestBuilder digest;
  load_component(state.directory, *weights, *parts, digest);
  if (weights->restored) weights->restored();
}

}  // namespace hearth
