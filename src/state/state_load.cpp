#include "state/state_load.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "base/file_ops.h"
#include "base/stop.h"
#include "checkpoint/safetensors.h"
#include "state/state_manifest.h"
#include "state/state_reading.h"

namespace hearth {
namespace {

// A state that cannot be used: the bad file and why.
using Damage = DamagedState;
using ViewsByName = std::map<std::string_view, const StateView*>;

/// A file of a component, and the views that have its tensors.
struct LoadedFile {
  const StateFile* part = nullptr;
  std::optional<SafetensorsFile> file = {};  // none: other processes read all of it
  std::vector<StateView> views = {};         // in the order of the file
  std::vector<Digest> read = {};             // by view, if this process has read it
};

bool is_read_here(const StateView& view, const OtherReaders* others) {
  return others == nullptr || view.writer == StateView::kThisRank;
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

SafetensorsFile opened(const std::string& directory, const StateFile& part) {
  return reading(directory, part.name(), [&](const std::string& path) {
    SafetensorsFile file(path);
    check_header(path, part, file.header().data_begin);
    check_names(part, file.header());
    return file;
  });
}

void require_fit(const SafetensorsEntry& entry, const StateView& view) {
  if (entry.dtype == safetensors_name(view.dtype) && entry.shape == view.shape) return;
  throw input_error("tensor " + quoted(view.name) + " is " + entry.dtype + " " +
                    shape_text(entry.shape) + ", this run expects " + safetensors_name(view.dtype) +
                    " " + shape_text(view.shape));
}

std::vector<std::string_view> names_in(const LoadedFile& loaded) {
  if (!loaded.file) return {loaded.part->tensors.begin(), loaded.part->tensors.end()};
  std::vector<std::string_view> names;
  for (const SafetensorsEntry& entry : loaded.file->header().entries) names.push_back(entry.name);
  return names;
}

void find_views(LoadedFile& loaded, const ViewsByName& by_name) {
  for (const std::string_view name : names_in(loaded)) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      throw input_error("tensor " + quoted(std::string(name)) + " is unknown to this run");
    }
    if (loaded.file) {
      require_fit(loaded.file->header().entries[loaded.views.size()], *found->second);
    }
    loaded.views.push_back(*found->second);
  }
}

// The first tensor without a file.
std::string_view missing_tensor(const std::vector<StateView>& views,
                                const std::vector<LoadedFile>& files) {
  std::vector<std::string_view> names;
  for (const LoadedFile& loaded : files) {
    const std::vector<std::string_view> more = names_in(loaded);
    names.insert(names.end(), more.begin(), more.end());
  }
  std::ranges::sort(names);
  for (const StateView& view : views) {
    if (!std::ranges::binary_search(names, std::string_view(view.name))) return view.name;
  }
  return {};
}

// Opens the files of a component that have something for this process, and makes room for it.
std::vector<LoadedFile> open_files(const std::string& directory, const StateComponent& component,
                                   std::span<const StateFile> parts, const OtherReaders* others) {
  std::set<std::string> elsewhere;
  for (const StateView& view : others == nullptr ? std::vector<StateView>() : component.views()) {
    if (!is_read_here(view, others)) elsewhere.insert(view.name);
  }
  const auto is_elsewhere = [&](const std::string& name) { return elsewhere.contains(name); };
  std::vector<LoadedFile> files;
  for (const StateFile& part : parts) {
    LoadedFile& loaded = files.emplace_back();
    loaded.part = &part;
    if (part.rank && std::ranges::all_of(part.tensors, is_elsewhere)) continue;
    loaded.file.emplace(opened(directory, part));
    if (!component.prepare) continue;
    reading(directory, part.name(), [&](const std::string&) {
      for (const SafetensorsEntry& entry : loaded.file->header().entries) {
        component.prepare(entry.name, entry.end - entry.begin);
      }
    });
  }
  return files;
}

// The same, with the views that its files fill. Nothing is read yet.
std::vector<LoadedFile> open_component(const std::string& directory,
                                       const StateComponent& component,
                                       std::span<const StateFile> parts,
                                       const OtherReaders* others) {
  std::vector<LoadedFile> files = open_files(directory, component, parts, others);
  std::vector<StateView> views;
  ViewsByName by_name;
  reading(directory, parts[0].name(), [&](const std::string&) {
    views = checked_views(component);
    const std::string_view missing = missing_tensor(views, files);
    if (missing.empty()) return;
    throw input_error("tensor " + quoted(std::string(missing)) + " is missing");
  });
  for (const StateView& view : views) by_name[view.name] = &view;
  for (LoadedFile& loaded : files) {
    reading(directory, loaded.part->name(),
            [&](const std::string&) { find_views(loaded, by_name); });
  }
  return files;
}

// Fills a view from the file's tensor; an f32 weight that is not finite is an input error. Returns the
// digest of the memory. Of memory of another rank that is the digest of what was read: only its owner
// can look at what has arrived.
Digest load_view(const SafetensorsFile& file, const SafetensorsEntry& entry, const StateView& view,
                 bool weights, std::vector<std::byte>& staging) {
  const auto check = [&](std::span<const std::byte> piece, size_t at) {
    if (!weights || view.dtype != DType::f32) return;
    const std::string fault = not_finite(entry.name, piece.data(), at, piece.size());
    if (!fault.empty()) throw input_error(fault);
  };
  const size_t bytes = view.bytes.size();
  if (view.direct()) {
    file.read(entry, view.bytes.data(), bytes, 0);
    check(view.bytes, 0);
    return digest_of(view.bytes.data(), bytes);
  }
  Hasher read;
  for (size_t at = 0; at < bytes; at += kStatePiece) {
    staging.resize(std::min(kStatePiece, bytes - at));
    file.read(entry, staging.data(), staging.size(), at);
    check(staging, at);
    read.update(staging.data(), staging.size());
    view.write(at, staging);
  }
  return view.digest != nullptr ? read.digest() : digest_views({view}).front().digest;
}

// Fills the views that this process reads.
void fill_views(LoadedFile& loaded, const OtherReaders* others) {
  loaded.read.resize(loaded.views.size());
  std::vector<std::byte> staging;
  for (size_t i = 0; i < loaded.views.size(); ++i) {
    if (!is_read_here(loaded.views[i], others)) continue;
    leave_if_stopped("saved state was read");
    loaded.read[i] = load_view(*loaded.file, loaded.file->header().entries[i], loaded.views[i],
                               loaded.part->component == kWeights, staging);
  }
}

// Whoever has read it.
std::vector<StateTensor> checked_tensors(LoadedFile& loaded, const OtherReaders* others) {
  for (size_t i = 0; i < loaded.views.size(); ++i) {
    if (is_read_here(loaded.views[i], others)) loaded.views[i].digest = &loaded.read[i];
  }
  std::vector<StateTensor> tensors = digest_views(loaded.views);
  if (component_digest(loaded.part->component, tensors) != loaded.part->digest) {
    throw input_error("changed after it was checked");
  }
  return tensors;
}

/// The files of one component on their way in.
class ComponentLoad {
 public:
  ComponentLoad(const std::string& directory, const StateComponent& component,
                std::span<const StateFile> parts, OtherReaders* others)
      : directory_(directory),
        component_(component),
        others_(others),
        files_(open_component(directory, component, parts, others)) {}

  /// Then closes the files, which frees their lists of tensors before the check makes lists as long.
  void fill() {
    each([&](LoadedFile& loaded) {
      if (loaded.file) fill_views(loaded, others_);
      loaded.file.reset();
    });
  }
  /// When the others have read, too.
  void check(DigestBuilder& digests) {
    std::vector<StateTensor> tensors;
    each([&](LoadedFile& loaded) {
      std::ranges::move(checked_tensors(loaded, others_), std::back_inserter(tensors));
    });
    digests.add(component_.name, std::move(tensors));
  }
  void restored() const {
    if (!component_.restored) return;
    try {
      component_.restored();
    } catch (const Error& error) {  // any other code: the content does not fit this run
      if (error.code() != ExitCode::storage) throw;
      throw Damage(directory_, component_.name + ".safetensors", error.what());
    }
  }

 private:
  template <class Action>
  void each(const Action& action) {
    for (LoadedFile& loaded : files_) {
      reading(directory_, loaded.part->name(), [&](const std::string&) { action(loaded); });
    }
  }

  const std::string& directory_;
  const StateComponent& component_;
  OtherReaders* const others_;
  std::vector<LoadedFile> files_;
};

// The manifest, as it was when the state was opened.
StateManifest same_manifest(const SavedState& state) {
  StateManifest manifest = read_manifest(state.directory);
  if (manifest.root != state.digest.root) {
    throw Damage(state.directory, kManifestName, "changed after it was checked");
  }
  return manifest;
}

// Empty: there are none.
std::span<const StateFile> parts_of(const StateManifest& manifest, std::string_view component) {
  const auto components = by_component(manifest.files);
  const auto found = std::ranges::find_if(
      components, [&](const auto& files) { return files[0].component == component; });
  return found == components.end() ? std::span<const StateFile>() : *found;
}

Damage missing_component(const SavedState& state, std::string_view component) {
  return {state.directory, kManifestName,
          "component " + quoted(std::string(component)) + " is missing"};
}

}  // namespace

void load_state(const StateRegistry& registry, const SavedState& state, OtherReaders* others) {
  const StateManifest manifest = same_manifest(state);
  const std::vector<StateComponent>& components = registry.components();
  for (const StateFile& file : manifest.files) {
    if (is_of_runtime(file.component)) continue;
    if (std::ranges::find(components, file.component, &StateComponent::name) == components.end()) {
      throw Damage(state.directory, file.name(), "unknown component for this run");
    }
  }
  if (others != nullptr) others->begin_reading(state);
  std::vector<ComponentLoad> loads;
  for (const StateComponent& component : components) {
    const std::span<const StateFile> parts = parts_of(manifest, component.name);
    if (parts.empty()) {
      if (component.since > manifest.version || is_of_runtime(component.name)) continue;
      throw missing_component(state, component.name);
    }
    loads.emplace_back(state.directory, component, parts, others).fill();
  }
  if (others != nullptr) others->end_reading();
  DigestBuilder digests;
  for (ComponentLoad& load : loads) load.check(digests);
  check_root(state.directory, digests.take(), manifest);
  for (const ComponentLoad& load : loads) load.restored();
}

void load_weights(const StateRegistry& registry, const SavedState& state) {
  const StateManifest manifest = same_manifest(state);
  const std::vector<StateComponent>& components = registry.components();
  const auto weights = std::ranges::find(components, kWeights, &StateComponent::name);
  HEARTH_CHECK(weights != components.end(), "state: a registry without weights");
  const std::span<const StateFile> parts = parts_of(manifest, kWeights);
  if (parts.empty()) throw missing_component(state, kWeights);
  ComponentLoad load(state.directory, *weights, parts, nullptr);
  load.fill();
  DigestBuilder digest;
  load.check(digest);
  if (weights->restored) weights->restored();
}

std::vector<Digest> load_part(const StateRegistry& registry, const SavedState& state,
                              const std::function<void()>& alive) {
  const StateManifest manifest = same_manifest(state);
  std::vector<Digest> digests;
  std::vector<std::byte> staging;
  for (const StateComponent& component : registry.components()) {
    const std::vector<StateView> views = checked_views(component);
    const size_t first = digests.size();
    digests.resize(first + views.size());
    std::map<std::string_view, size_t> left;  // by name: the view
    for (size_t i = 0; i < views.size(); ++i) left[views[i].name] = i;
    for (const StateFile& part : parts_of(manifest, component.name)) {
      const auto is_left = [&](const std::string& tensor) { return left.contains(tensor); };
      if (part.rank && std::ranges::none_of(part.tensors, is_left)) continue;
      const SafetensorsFile file = opened(state.directory, part);
      for (const SafetensorsEntry& entry : file.header().entries) {
        const auto found = left.find(entry.name);
        if (found == left.end()) continue;
        alive();
        digests[first + found->second] =
            reading(state.directory, part.name(), [&](const std::string&) {
              const StateView& view = views[found->second];
              require_fit(entry, view);
              return load_view(file, entry, view, component.name == kWeights, staging);
            });
        left.erase(found);
      }
    }
    if (left.empty()) continue;
    throw Damage(state.directory, kManifestName,
                 "tensor " + quoted(std::string(left.begin()->first)) + " is missing");
  }
  return digests;
}

}  // namespace hearth
