// Saving: everything under a temporary name, synced, then one rename (research: write a commit record
// last). Removing older states comes after the commit, and never before the new one is durable.
#include <algorithm>

#include "base/file_ops.h"
#include "base/log.h"
#include "model/safetensors.h"
#include "train/state_files.h"

namespace hearth {
namespace {

std::string state_root(const std::string& run_dir) { return run_dir + "/state"; }

std::vector<SafetensorsEntry> entries_of(const std::vector<StateView>& views) {
  std::vector<SafetensorsEntry> entries;
  for (const StateView& view : views) {
    entries.push_back({view.name, safetensors_name(view.dtype), view.shape, 0, 0});
  }
  return entries;
}

StateFile write_component(const std::string& directory, const std::string& name,
                          const std::vector<StateView>& views,
                          const std::vector<StateTensor>& tensors) {
  StateFile file;
  file.component = name;
  SafetensorsWriter writer(directory + "/" + file.name(), entries_of(views), {{"component", name}},
                           kStateChunk);
  for (size_t i = 0; i < views.size(); ++i) {
    Hasher written;
    for (size_t at = 0; at < views[i].bytes.size(); at += kStatePiece) {
      const auto piece =
          views[i].bytes.subspan(at, std::min(kStatePiece, views[i].bytes.size() - at));
      written.update(piece.data(), piece.size());
      writer.write(piece.data(), piece.size());
    }
    HEARTH_CHECK(written.digest() == tensors[i].digest,
                 "state: " + name + "/" + views[i].name + " changed while it was saved");
  }
  writer.close();
  file.bytes = writer.file_bytes();
  file.chunks = writer.take_chunks();
  return file;
}

// Gives a directory another name before removing it, so that a half removed one is never taken for
// a state. Best effort: what stays is removed at the next start.
void discard(const std::string& directory, const std::string& hidden) {
  try {
    if (directory != hidden) {
      remove_tree(hidden);
      rename_no_replace(directory, hidden);
    }
    remove_tree(hidden);
  } catch (const Error& error) {
    log_warning(error.what());
  }
}

std::vector<int64_t> steps_newest_first(const std::vector<std::string>& names,
                                        std::string_view prefix) {
  std::vector<int64_t> steps;
  for (const std::string& name : names) {
    if (!name.starts_with(prefix)) continue;
    if (const auto step = step_of_state_directory(name.substr(prefix.size()))) {
      steps.push_back(*step);
    }
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

void remove_old_states(const std::string& root, int keep) {
  const std::vector<std::string> names = list_directory(root);
  const std::vector<int64_t> steps = steps_newest_first(names, "");
  const auto remove = [&](const std::string& name, int64_t step) {
    discard(root + "/" + name, root + "/.trash-" + state_directory_name(step));
  };
  for (size_t i = static_cast<size_t>(keep); i < steps.size(); ++i) {
    remove(state_directory_name(steps[i]), steps[i]);
  }
  for (const int64_t bad : steps_newest_first(names, ".bad-")) {
    const auto newer =
        std::count_if(steps.begin(), steps.end(), [&](int64_t s) { return s >= bad; });
    if (newer >= 2) remove(".bad-" + state_directory_name(bad), bad);
  }
}

}  // namespace

SavedState save_state(const StateRegistry& registry, const std::string& run_dir, int64_t step,
                      int keep, const Json& extra) {
  HEARTH_CHECK(step >= 0 && keep >= 1, "state: impossible step or number of states to keep");
  const std::string root = state_root(run_dir);
  const std::string name = state_directory_name(step);
  const std::string target = root + "/" + name;
  const std::string hidden = root + "/.tmp-" + name;

  // Digests of the live memory come first: a view that is changed by the save itself shows.
  StateManifest manifest{step, {}, {}, extra};
  DigestBuilder digests;
  std::vector<std::vector<StateView>> views;
  std::vector<std::vector<StateTensor>> tensors;
  std::vector<Digest> component_digests;
  for (const StateComponent& component : registry.components()) {
    views.push_back(checked_views(component));
    tensors.push_back(digest_views(views.back()));
    component_digests.push_back(digests.add(component.name, tensors.back()));
  }
  SavedState saved{target, step, digests.take(), extra};
  manifest.root = saved.digest.root;

  make_directory(root);
  remove_tree(hidden);
  bool published = false;
  try {
    make_directory(hidden);
    for (size_t i = 0; i < views.size(); ++i) {
      manifest.files.push_back(
          write_component(hidden, registry.components()[i].name, views[i], tensors[i]));
      manifest.files.back().digest = component_digests[i];
    }
    const std::string text = manifest_text(manifest);
    OutputFile file(hidden + "/" + kManifestName);
    file.write(text.data(), text.size());
    file.close();
    sync_directory(hidden);
    rename_no_replace(hidden, target);
    published = true;
    sync_directory(root);
  } catch (...) {
    discard(published ? target : hidden, hidden);
    throw;
  }
  try {
    remove_old_states(root, keep);
  } catch (const Error& error) {
    log_warning(error.what());
  }
  return saved;
}

void set_aside(const std::vector<RejectedState>& rejected) {
  for (const RejectedState& state : rejected) {
    const size_t slash = state.directory.find_last_of('/') + 1;
    const std::string bad =
        state.directory.substr(0, slash) + ".bad-" + state.directory.substr(slash);
    remove_tree(bad);
    rename_no_replace(state.directory, bad);
  }
}

void remove_leftovers(const std::string& run_dir) {
  for (const std::string& directory : {run_dir, state_root(run_dir)}) {
    if (file_info(directory).kind != FileKind::directory) continue;
    for (const std::string& name : list_directory(directory)) {
      if (name.starts_with(".tmp-") || name.starts_with(".trash-")) {
        remove_tree(directory + "/" + name);
      }
    }
  }
}

}  // namespace hearth
