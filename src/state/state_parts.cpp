#include "state/state_parts.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>

#include "base/planted.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"

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

bool is_written_here(const StateView& view) { return view.writer == StateView::kThisRank; }

// Own memory first, then that of other ranks, then what others write.
int turn_of(const StateView& view) {
  return !is_written_here(view) ? 2 : view.digest != nullptr ? 1 : 0;
}

}  // namespace

struct StateParts::Part {
  size_t file = 0;  // of `files_`
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

  void write_view(size_t i, const std::string& component, SafetensorsWriter& writer,
                  std::vector<std::byte>& staging) const {
    Hasher written;
    const size_t bytes = views[i].bytes.size();
    for (size_t at = 0; at < bytes; at += kStatePiece) {
      const auto piece = views[i].read(at, std::min(kStatePiece, bytes - at), staging);
      written.update(piece.data(), piece.size());
      writer.write(piece.data(), piece.size());
    }
    HEARTH_CHECK(written.digest() == digests[i] || planted("save-takes-changed-memory"),
                 "state: " + component + "/" + views[i].name + " changed while it was saved");
  }
};

struct StateParts::Gate {
  static constexpr size_t kAll = std::numeric_limits<size_t>::max();
  std::atomic<size_t> safe{0};
  std::atomic<int64_t> waited_ns{0};
  std::mutex mutex;
  std::condition_variable moved;
};

StateParts::StateParts(const StateRegistry& registry, int64_t step, const Pool* pool,
                       std::optional<int32_t> rank)
    : gate_(std::make_unique<Gate>()) {
  DigestBuilder builder;
  for (const StateComponent& component : registry.components()) {
    Part part;
    part.views = checked_views(component);
    std::ranges::stable_sort(part.views, {}, turn_of);
    if (component.copied) part.copy_views();
    std::vector<StateTensor> tensors;
    if (component.name == kWeights) {
      std::vector<int64_t> not_finite;
      tensors = digest_views(part.views, pool, not_finite);
      require_finite(part.views, not_finite, step);
    } else {
      tensors = digest_views(part.views, pool);
    }
    const std::optional<size_t> file = add_files(component.name, rank, part.views, tensors);
    part.views.resize(static_cast<size_t>(std::ranges::count_if(part.views, is_written_here)));
    for (size_t i = 0; i < part.views.size(); ++i) part.digests.push_back(tensors[i].digest);
    builder.add(component.name, std::move(tensors));
    if (!file) continue;
    part.file = *file;
    parts_.push_back(std::move(part));
  }
  digest_ = builder.take();
}

StateParts::~StateParts() = default;

std::optional<size_t> StateParts::add_files(const std::string& component,
                                            std::optional<int32_t> rank,
                                            const std::vector<StateView>& views,
                                            const std::vector<StateTensor>& tensors) {
  if (rank.value_or(0) == 0 && std::ranges::all_of(views, is_written_here)) {
    files_.push_back({component, 0, {}, component_digest(component, tensors)});
    return files_.size() - 1;
  }
  std::optional<size_t> of_this;
  std::map<int32_t, std::vector<StateTensor>> by_rank;
  for (size_t i = 0; i < views.size(); ++i) {
    by_rank[is_written_here(views[i]) ? rank.value_or(0) : views[i].writer].push_back(tensors[i]);
  }
  for (auto& [of, own] : by_rank) {
    if (of == rank.value_or(0)) of_this = files_.size();
    StateFile file{component, 0, {}, {}, of, {}};
    for (const StateTensor& tensor : own) file.tensors.push_back(tensor.name);
    file.digest = component_digest(component, std::move(own));
    files_.push_back(std::move(file));
  }
  return of_this;
}

std::vector<StateParts::OwnView> StateParts::own_views() const {
  std::vector<OwnView> own;
  for (const Part& part : parts_) {
    for (size_t i = 0; i < part.views.size(); ++i) {
      own.push_back({part.views[i], part.digests[i], i});
    }
  }
  return own;
}

void StateParts::set_written(const std::string& component, int32_t rank, uint64_t bytes,
                             std::vector<Digest> chunks) {
  const auto file = std::ranges::find_if(
      files_, [&](const StateFile& f) { return f.component == component && f.rank == rank; });
  HEARTH_CHECK(file != files_.end(), "state: a file that nobody was to write");
  file->bytes = bytes;
  file->chunks = std::move(chunks);
}

void StateParts::write(const std::string& directory, const std::function<void()>& alive) {
  std::vector<std::unique_ptr<SafetensorsWriter>> writers;
  size_t rounds = 0;
  for (const Part& part : parts_) {
    const StateFile& file = files_[part.file];
    writers.push_back(std::make_unique<SafetensorsWriter>(
        directory + "/" + file.name(), entries_of(part.views),
        std::vector<std::pair<std::string, std::string>>{{"component", file.component}},
        kStateChunk));
    rounds = std::max(rounds, part.views.size());
  }
  std::vector<std::byte> staging;  // of views that the host does not reach
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (round >= parts_[i].views.size()) continue;
      if (alive) alive();
      parts_[i].write_view(round, files_[parts_[i].file].component, *writers[i], staging);
    }
    open(round + 1);
  }
  open_all();
  for (size_t i = 0; i < parts_.size(); ++i) {
    writers[i]->close();
    StateFile& file = files_[parts_[i].file];
    file.bytes = writers[i]->file_bytes();
    file.chunks = writers[i]->take_chunks();
  }
}

void StateParts::open(size_t views) {
  {
    const std::lock_guard lock(gate_->mutex);
    if (gate_->safe.load() >= views) return;
    gate_->safe.store(views, std::memory_order_release);
  }
  gate_->moved.notify_all();
}

void StateParts::open_all() { open(Gate::kAll); }

void StateParts::wait_until_safe(size_t views) {
  if (gate_->safe.load(std::memory_order_acquire) >= views) return;
  if (planted("update-does-not-wait")) return;
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(gate_->mutex);
  gate_->moved.wait(lock, [&] { return gate_->safe.load() >= views; });
  const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - begin;
  gate_->waited_ns += waited.count();
}

double StateParts::waited_s() const { return 1e-9 * static_cast<double>(gate_->waited_ns.load()); }

}  // namespace hearth
