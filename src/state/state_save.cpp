// Everything is written under a temporary name and synced; then one rename commits it.
#include "state/state_save.h"

#include <exception>

#include "base/file_ops.h"
#include "base/heap_bytes.h"
#include "state/state_manifest.h"

namespace hearth {

namespace {

std::optional<int32_t> rank_of(const SaveRequest& request) {
  return request.others != nullptr ? std::optional(0) : std::nullopt;
}

}  // namespace

StateSave::StateSave(const StateRegistry& registry, SaveRequest request, const Pool* pool)
    : request_(std::move(request)), parts_(registry, request_.step, pool, rank_of(request_)) {
  HEARTH_CHECK(request_.step >= 0 && request_.keep.newest >= 1,
               "state: impossible step or number of states to keep");
}

/// After a failure here, too, it waits for the others: the directory goes when nobody writes into it.
void StateSave::write_files(const std::string& directory) {
  if (request_.others == nullptr) return parts_.write(directory);
  request_.others->begin(directory);
  std::exception_ptr failure;
  try {
    parts_.write(directory, [this] { request_.others->beat(); });
  } catch (...) {
    failure = std::current_exception();
    parts_.open_all();
  }
  try {
    request_.others->wait(parts_);
  } catch (...) {
    if (!failure) throw;
  }
  if (failure) std::rethrow_exception(failure);
}

SavedState StateSave::write() {
  const std::string folder = state_folder(request_.run_dir);
  const std::string name = state_directory_name(request_.step);
  const std::string target = folder + "/" + name;
  const std::string hidden = hidden_state_directory(request_.run_dir, request_.step);
  bool published = false;
  const auto end = [&] {
    if (request_.others != nullptr) request_.others->end();
  };
  try {
    make_directory(folder);
    remove_tree(hidden);
    make_directory(hidden);
    write_files(hidden);
    const StateManifest manifest{lowest_version(parts_.files()), request_.step, parts_.files(),
                                 digest().root, request_.extra};
    const std::string text = manifest_text(manifest);
    OutputFile file(hidden + "/" + kManifestName);
    file.write(text.data(), text.size());
    file.close();
    sync_directory(hidden);
    if (request_.before_publish) request_.before_publish();
    rename_no_replace(hidden, target);
    published = true;
    sync_directory(folder);
  } catch (...) {
    parts_.open_all();
    end();
    const bool is_quiet = request_.others == nullptr || request_.others->is_quiet();
    if (is_quiet) discard_state(published ? target : hidden, hidden);  // else the next start does
    throw;
  }
  end();
  remove_old_states(folder, request_.keep);
  SavedState saved{target, request_.step, digest(), request_.extra, {}};
  for (const StateFile& file : parts_.files()) {
    if (file.component == kWeights) saved.weights.push_back(file.name());
  }
  return saved;
}

/// Views and digests of all components are there until the end. Of one component at a time there are
/// two lists for digests: all, and those of a file.
uint64_t save_memory_bytes(size_t name_length, size_t components, bool elsewhere) {
  constexpr size_t kComponent = sizeof "moment1";  // and a slash
  constexpr size_t kShape = heap_bytes(2 * sizeof(int64_t));
  const size_t name = text_heap_bytes(name_length);
  const size_t item = sizeof(StateDigest::Item) + text_heap_bytes(kComponent + name_length);
  const size_t view = elsewhere ? sizeof(StateView) + sizeof(std::string) + name  // of its file
                                : sizeof(StateView) + sizeof(Digest) + name + kShape;
  return components * (view + item) + 2 * (sizeof(StateTensor) + name + kShape);
}

SavedState save_state(const StateRegistry& registry, const std::string& run_dir, int64_t step,
                      int newest, const Json& extra) {
  return StateSave(registry, {run_dir, step, {newest}, extra, {}}).write();
}

}  // namespace hearth
