// Everything is written under a temporary name and synced; then one rename commits it.
#include "state/state_save.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>

#include "base/file_ops.h"
#include "base/planted.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"
#include "state/state_manifest.h"

namespace hearth {
namespace {

std::vector<SafetensorsEntry> entries_of(const std::vector<StateView>& views) {
  std::vector<SafetensorsEntry> entries;
  for (const StateView& view : views) {
    entries.push_back({view.name, safetensors_name(view.dtype), view.shape, 0, 0});
  }
  return entries;
}

// An update may overflow even if the loss and the gradient of its step are finite. Such weights must
// not replace states that a run can continue from.
void require_finite(const std::vector<StateView>& views, const std::vector<int64_t>& bad,
                    int64_t step) {
  for (size_t i = 0; i < views.size(); ++i) {
    if (static_cast<size_t>(bad[i]) * size_of(views[i].dtype) == views[i].bytes.size()) continue;
    throw numeric_error(
        "after step " + std::to_string(step) + " tensor " + quoted(views[i].name) + ": element " +
        std::to_string(bad[i]) +
        " is not finite (NaN or infinity): the update overflowed; the step is not "
        "saved, the older states are whole; a lower learning rate or weight decay may help");
  }
}

}  // namespace

struct StateSave::Part {
  StateFile file;
  std::vector<StateView> views;
  std::vector<Digest> digests;    // of the views
  std::vector<std::byte> copies;  // of views that may change before they are written

  void copy_views() {
    size_t bytes = 0;
    for (const StateView& view : views) bytes += view.bytes.size();
    copies.resize(bytes);
    std::byte* to = copies.data();
    for (StateView& view : views) {
      view.memory->read(view.place, view.bytes.data(), {to, view.bytes.size()});
      view.bytes = {to, view.bytes.size()};
      view.place = kHostPlace;
      view.memory = &host_memory();
      to += view.bytes.size();
    }
  }

  void write_view(size_t i, SafetensorsWriter& writer, std::vector<std::byte>& staging) const {
    Hasher written;
    const size_t bytes = views[i].bytes.size();
    for (size_t at = 0; at < bytes; at += kStatePiece) {
      const auto piece = views[i].read(at, std::min(kStatePiece, bytes - at), staging);
      written.update(piece.data(), piece.size());
      writer.write(piece.data(), piece.size());
    }
    HEARTH_CHECK(written.digest() == digests[i] || planted("save-takes-changed-memory"),
                 "state: " + file.component + "/" + views[i].name + " changed while it was saved");
  }
};

struct StateSave::Gate {
  static constexpr size_t kAll = std::numeric_limits<size_t>::max();
  std::atomic<size_t> safe{0};
  std::atomic<int64_t> waited_ns{0};
  std::mutex mutex;
  std::condition_variable moved;

  void open(size_t views) {
    {
      const std::lock_guard lock(mutex);
      safe.store(views, std::memory_order_release);
    }
    moved.notify_all();
  }
};

StateSave::StateSave(const StateRegistry& registry, SaveRequest request, const Pool* pool)
    : request_(std::move(request)), gate_(std::make_unique<Gate>()) {
  HEARTH_CHECK(request_.step >= 0 && request_.keep.newest >= 1,
               "state: impossible step or number of states to keep");
  DigestBuilder builder;
  for (const StateComponent& component : registry.components()) {
    Part part;
    part.file.component = component.name;
    part.views = checked_views(component);
    if (component.copied) part.copy_views();
    std::vector<StateTensor> tensors;
    if (component.name == kWeights) {
      std::vector<int64_t> not_finite;
      tensors = digest_views(part.views, pool, not_finite);
      require_finite(part.views, not_finite, request_.step);
    } else {
      tensors = digest_views(part.views, pool);
    }
    for (const StateTensor& tensor : tensors) part.digests.push_back(tensor.digest);
    part.file.digest = builder.add(component.name, std::move(tensors));
    parts_.push_back(std::move(part));
  }
  digest_ = builder.take();
}

StateSave::~StateSave() = default;

void StateSave::write_components(const std::string& directory) {
  std::vector<std::unique_ptr<SafetensorsWriter>> writers;
  size_t rounds = 0;
  for (const Part& part : parts_) {
    writers.push_back(std::make_unique<SafetensorsWriter>(
        directory + "/" + part.file.name(), entries_of(part.views),
        std::vector<std::pair<std::string, std::string>>{{"component", part.file.component}},
        kStateChunk));
    rounds = std::max(rounds, part.views.size());
  }
  std::vector<std::byte> staging;  // of views that the host does not reach
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (round < parts_[i].views.size()) parts_[i].write_view(round, *writers[i], staging);
    }
    gate_->open(round + 1);
  }
  gate_->open(Gate::kAll);
  for (size_t i = 0; i < parts_.size(); ++i) {
    writers[i]->close();
    parts_[i].file.bytes = writers[i]->file_bytes();
    parts_[i].file.chunks = writers[i]->take_chunks();
  }
}

SavedState StateSave::write() {
  const std::string folder = state_folder(request_.run_dir);
  const std::string name = state_directory_name(request_.step);
  const std::string target = folder + "/" + name, hidden = folder + "/.tmp-" + name;
  bool published = false;
  try {
    make_directory(folder);
    remove_tree(hidden);
    make_directory(hidden);
    write_components(hidden);
    StateManifest manifest{kStateVersion, request_.step, {}, digest_.root, request_.extra};
    for (const Part& part : parts_) manifest.files.push_back(part.file);
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
    gate_->open(Gate::kAll);
    discard_state(published ? target : hidden, hidden);
    throw;
  }
  remove_old_states(folder, request_.keep);
  return {target, request_.step, digest_, request_.extra};
}

void StateSave::wait_until_safe(size_t views) {
  if (gate_->safe.load(std::memory_order_acquire) >= views) return;
  if (planted("update-does-not-wait")) return;
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(gate_->mutex);
  gate_->moved.wait(lock, [&] { return gate_->safe.load() >= views; });
  const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - begin;
  gate_->waited_ns += waited.count();
}

double StateSave::waited_s() const { return 1e-9 * static_cast<double>(gate_->waited_ns.load()); }

uint64_t save_memory_bytes(size_t views, size_t name_bytes) { return views * 640 + name_bytes * 6; }

SavedState save_state(const StateRegistry& registry, const std::string& run_dir, int64_t step,
                      int newest, const Json& extra) {
  return StateSave(registry, {run_dir, step, {newest}, extra, {}}).write();
}

}  // namespace hearth
