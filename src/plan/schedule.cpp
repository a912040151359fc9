#include "plan/schedule.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "plan/addresses.h"

namespace hearth {

std::string_view name_of(BufferClass c) {
  switch (c) {
    case BufferClass::given: return "inputs";
    case BufferClass::cache: return "key-value cache";
    case BufferClass::saved: return "saved for backward";
    case BufferClass::flow: return "between tasks";
    case BufferClass::temporary: return "within a task";
  }
  return "?";
}

std::string describe(const Task& task) {
  std::string text = std::string(name_of(task.kind)) + " " + std::string(name_of(task.phase));
  if (task.kind == TaskKind::copy) {
    text += " of " + std::string(info_of(task.uses.front().port.value).name);
  }
  const bool of_step = task.kind == TaskKind::norm || task.kind == TaskKind::clip ||
                       task.kind == TaskKind::gather || task.kind == TaskKind::shard;
  if (task.layer >= 0 && !of_step) text += " layer " + std::to_string(task.layer);
  if (task.kind == TaskKind::shard) text += " " + std::to_string(task.layer);
  if (task.rows.count() > 1) {
    text += " micro-batches " + std::to_string(task.rows.begin) + " to " +
            std::to_string(task.rows.end - 1);
  } else if (!task.rows.none()) {
    text += " micro-batch " + std::to_string(task.rows.begin);
  }
  if (task.part.away()) {
    text += " of rows that other ranks compute";
  } else if (task.part.guests) {
    text += " of expert rank " + std::to_string(task.part.place);
  } else if (!task.part.all()) {
    text += " part of place " + std::to_string(task.part.place);
  }
  if (task.place != kHostPlace) text += " at place " + std::to_string(task.place);
  return text;
}

std::vector<SchedulePlace> places_of_rank(size_t places, int32_t nodes, int32_t host_lanes) {
  std::vector<SchedulePlace> all(places);
  for (Place place = 0; place < std::ssize(all); ++place) {
    SchedulePlace& of = all[static_cast<size_t>(place)];
    of.device = place >= nodes;
    if (of.device) {
      of.lane = host_lanes > 1 ? place - nodes : 0;
    } else {
      of.lanes = host_lanes;
    }
  }
  return all;
}

std::vector<Value> sizes_of_copy(Value value, const ExpertPart& part) {
  if (info_of(value).of_columns) return {Value::divided};
  if (part.all()) return {};
  if (part.away()) return {Value::route_offsets};
  if (part.guests) return {Value::guest_offsets};
  return {Value::route_offsets, Value::split};
}

namespace {

bool has_place(const Schedule& s, Place place) {
  return place >= 0 && place < std::ssize(s.places);
}

/// A copy reads one buffer and writes that value's other one; any other task finds what it touches
/// at its place.
void validate_places(const Schedule& s, const Task& task) {
  HEARTH_CHECK(has_place(s, task.place), "schedule: unknown place");
  HEARTH_CHECK(task.stream >= 0 && static_cast<size_t>(task.stream) < s.streams.size(),
               "schedule: unknown stream");
  HEARTH_CHECK(s.streams[static_cast<size_t>(task.stream)].place == task.place,
               "schedule: a task on a stream of another place");
  const auto buffer = [&](size_t use) -> const Buffer& {
    return s.buffers[static_cast<size_t>(task.uses[use].buffer)];
  };
  if (task.kind == TaskKind::copy) {
    std::vector<Value> offsets = sizes_of_copy(task.uses.front().port.value, task.part);
    if (task.part.all() && s.may_be_idle(task)) offsets.push_back(Value::split);
    bool on_host = task.uses.size() == 2 + offsets.size();
    for (size_t i = 0; on_host && i < offsets.size(); ++i) {
      on_host =
          buffer(2 + i).place == s.host_of(task.place) && buffer(2 + i).port.value == offsets[i];
    }
    HEARTH_CHECK(on_host && task.uses[0].port.access == Access::read &&
                     task.uses[1].port.access == Access::write &&
                     task.uses[0].port.value == task.uses[1].port.value &&
                     buffer(0).bytes == buffer(1).bytes && buffer(0).place != buffer(1).place &&
                     (buffer(0).place == task.place || buffer(1).place == task.place),
                 "schedule: a copy joins two places");
    return;
  }
  for (size_t use = 0; use < task.uses.size(); ++use) {
    const Value value = task.uses[use].port.value;
    const Place place = info_of(value).host ? s.host_of(task.place) : task.place;
    HEARTH_CHECK(buffer(use).place == place, "schedule: at another place: " + describe(task) +
                                                 ", " + std::string(info_of(value).name));
  }
}

/// A task of several micro-batches has a use for each, port by port, at equal distances.
void validate_rows(const Schedule& s, const Task& task) {
  if (task.rows.count() <= 1) return;
  size_t count = 0;
  for (size_t first = 0; first < task.uses.size(); first += count) {
    const Value value = task.uses[first].port.value;
    count = task.uses_of(value);
    HEARTH_CHECK(first + count <= task.uses.size(),
                 "schedule: a value of some micro-batches alone");
    const auto buffer = [&](size_t segment) -> const Buffer& {
      return s.buffers[static_cast<size_t>(task.uses[first + segment].buffer)];
    };
    for (size_t segment = 0; count > 1 && segment < count; ++segment) {
      const auto micro_batch = task.rows.begin + static_cast<int32_t>(segment);
      HEARTH_CHECK(task.uses[first + segment].port.value == value &&
                       buffer(segment).micro_batch == micro_batch &&
                       buffer(segment).address - buffer(0).address ==
                           segment * (buffer(1).address - buffer(0).address),
                   "schedule: micro-batches at unequal distances: " + describe(task) + ", " +
                       std::string(info_of(value).name));
    }
  }
}

}  // namespace

/// Which parts of the buffers were written; of a buffer that is written whole, none.
class WrittenParts {
 public:
  explicit WrittenParts(const Schedule& s) : parts_(s.buffers.size()) {
    for (const Task& task : s.tasks) {
      if (task.kind == TaskKind::experts && !task.part.guests) {
        places_[task.layer].insert(task.part.place);
      }
    }
    for (const Buffer& buffer : s.buffers) layers_.push_back(buffer.layer);
  }
  void write(const BufferUse& use) {
    std::vector<Place>& parts = parts_[static_cast<size_t>(use.buffer)];
    if (use.part.all()) {
      parts.clear();
    } else {
      parts.push_back(use.part.place);
    }
  }
  /// Whether everything that the use reads was written, each part of it once.
  bool has(const BufferUse& use) const {
    const auto buffer = static_cast<size_t>(use.buffer);
    const std::vector<Place>& parts = parts_[buffer];
    if (parts.empty()) return true;
    if (!use.part.all()) return std::count(parts.begin(), parts.end(), use.part.place) == 1;
    const auto all = places_.find(layers_[buffer]);
    return all != places_.end() && parts.size() == all->second.size() &&
           std::ranges::all_of(all->second, [&](Place place) {
             return std::ranges::find(parts, place) != parts.end();
           });
  }

 private:
  std::map<int32_t, std::set<Place>> places_;  // that compute experts of a layer
  std::vector<int32_t> layers_;                // of the buffers
  std::vector<std::vector<Place>> parts_;
};

void validate(const Schedule& s) {
  std::vector<bool> written(s.buffers.size());
  WrittenParts parts(s);
  HEARTH_CHECK(s.arena_bytes.size() == s.places.size(), "schedule: an arena for each place");
  for (const SchedulePlace& place : s.places) {
    HEARTH_CHECK(has_place(s, place.host) && s.is_host(place.host), "schedule: no such host");
  }
  for (size_t i = 0; i < s.buffers.size(); ++i) {
    const Buffer& b = s.buffers[i];
    written[i] = b.use == BufferClass::given || b.use == BufferClass::cache;
    HEARTH_CHECK(
        has_place(s, b.place) && b.address + b.bytes <= s.arena_bytes[static_cast<size_t>(b.place)],
        "schedule: buffer outside its arena");
  }
  for (const Task& task : s.tasks) {
    validate_places(s, task);
    validate_rows(s, task);
    for (const BufferUse& use : task.uses) {
      const auto id = static_cast<size_t>(use.buffer);
      const Access access = use.port.access;
      if (access == Access::read || access == Access::update) {
        HEARTH_CHECK(written[id] && parts.has(use),
                     "schedule: read before written: " + describe(task) + ", " +
                         std::string(info_of(use.port.value).name));
      } else {
        written[id] = true;
        parts.write(use);
      }
    }
  }
  HEARTH_CHECK(!live_buffers_overlap(s.buffers), "schedule: live buffers overlap");
}

namespace {

/// Who last wrote a piece of memory, and who has read it since. Writers of different parts of one
/// buffer follow what came before all of them, but not each other.
class Accesses {
 public:
  void read(TaskId task, std::vector<TaskId>& after, const BufferUse* use = nullptr) {
    for (const Writer& w : writers_) {
      if (use == nullptr || use->part.all() || w.part.all() || w.part == use->part) {
        add(w.task, after);
      }
    }
    readers_.push_back(task);
  }
  /// Whether a write of a part follows neither the readers nor the other writers of now.
  bool joins(const BufferUse& use) const {
    if (use.part.all() || writers_.empty() || !readers_.empty()) return false;
    return std::all_of(writers_.begin(), writers_.end(), [&](const Writer& w) {
      return w.buffer == use.buffer && !w.part.all() && w.part != use.part;
    });
  }
  void write(TaskId task, std::vector<TaskId>& after, const BufferUse* use = nullptr) {
    if (use == nullptr || !joins(*use)) {
      before_.swap(readers_);  // keeps the memory of both
      for (const Writer& w : writers_) before_.push_back(w.task);
      readers_.clear();
      writers_.clear();
    }
    for (const TaskId before : before_) add(before, after);
    writers_.push_back({task, use == nullptr ? BufferId{-1} : use->buffer,
                        use == nullptr ? ExpertPart{} : use->part});
  }
  /// A write that comes next also follows what accessed another piece.
  void follow(const Accesses& other) {
    readers_.insert(readers_.end(), other.readers_.begin(), other.readers_.end());
    for (const Writer& w : other.writers_) readers_.push_back(w.task);
  }

 private:
  struct Writer {
    TaskId task;
    BufferId buffer;
    ExpertPart part;
  };
  /// The pieces of a buffer mostly have the same tasks.
  static void add(TaskId before, std::vector<TaskId>& after) {
    if (after.empty() || after.back() != before) after.push_back(before);
  }
  std::vector<Writer> writers_;
  std::vector<TaskId> before_, readers_;  // `before_`: what the writers follow
};

/// The arenas as pieces whose bytes have had the same accesses. A write makes one piece of a buffer,
/// so a buffer has several only while others lie over a part of it.
class AddressMap {
 public:
  explicit AddressMap(const Schedule& s) : arenas_(s.arena_bytes.size()) {
    for (Pieces& pieces : arenas_) pieces.try_emplace(0);
  }
  void access(const Buffer& b, const BufferUse& use, TaskId task, std::vector<TaskId>& after) {
    if (b.bytes == 0) return;
    Pieces& pieces = arenas_[static_cast<size_t>(b.place)];
    const auto first = cut(pieces, b.address), end = cut(pieces, b.address + b.bytes);
    if (use.port.access == Access::read) {
      for (auto at = first; at != end; ++at) at->second.read(task, after, &use);
      return;
    }
    const bool joins =
        std::any_of(first, end, [&](const auto& piece) { return piece.second.joins(use); });
    if (!joins) {
      for (auto at = std::next(first); at != end; at = pieces.erase(at)) {
        first->second.follow(at->second);
      }
    }
    for (auto at = first; at != end; ++at) at->second.write(task, after, &use);
  }

 private:
  using Pieces = std::map<size_t, Accesses>;  // by their first address, up to the next

  /// The piece that begins at an address.
  static Pieces::iterator cut(Pieces& pieces, size_t address) {
    const auto behind = pieces.lower_bound(address);
    if (behind != pieces.end() && behind->first == address) return behind;
    return pieces.emplace_hint(behind, address, std::prev(behind)->second);
  }

  std::vector<Pieces> arenas_;  // by place
};

/// Neighbouring blocks that every task accesses together: what holds of one holds of all.
class BlockRuns {
 public:
  explicit BlockRuns(const Schedule& s) {
    for (const Task& task : s.tasks) {
      for (const BlockUse& use : task.blocks) {
        cuts_.push_back(use.begin);
        cuts_.push_back(use.end);
      }
    }
    std::sort(cuts_.begin(), cuts_.end());
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
  }
  size_t count() const { return cuts_.size(); }
  /// The first run of a block that a use begins with; of the end of a use, the run behind it.
  size_t at(BlockId block) const {
    return static_cast<size_t>(std::lower_bound(cuts_.begin(), cuts_.end(), block) - cuts_.begin());
  }

 private:
  std::vector<BlockId> cuts_;
};

}  // namespace

std::vector<std::vector<TaskId>> dependencies(const Schedule& s) {
  std::vector<std::vector<TaskId>> result(s.tasks.size());
  AddressMap memory(s);
  const BlockRuns runs(s);
  std::vector<Accesses> weights(runs.count()), gradients(runs.count());
  for (size_t i = 0; i < s.tasks.size(); ++i) {
    const auto task = static_cast<TaskId>(i);
    std::vector<TaskId>& after = result[i];
    for (const BufferUse& use : s.tasks[i].uses) {
      memory.access(s.buffers[static_cast<size_t>(use.buffer)], use, task, after);
    }
    // Of experts that a split gives to one place or the other, each is computed once a group.
    const BufferUse group{s.tasks[i].rows.begin, {}, s.tasks[i].part};
    const BufferUse* const part = s.is_decided(s.tasks[i]) ? &group : nullptr;
    for (const BlockUse& use : s.tasks[i].blocks) {
      const size_t end = runs.at(use.end);
      for (size_t b = runs.at(use.begin); b < end; ++b) {
        switch (use.access) {
          case BlockAccess::read_weights: weights[b].read(task, after); break;
          case BlockAccess::add_gradient: gradients[b].write(task, after, part); break;
          case BlockAccess::read_gradient: gradients[b].read(task, after); break;
          case BlockAccess::update:
            weights[b].write(task, after);
            gradients[b].write(task, after);
            break;
        }
      }
    }
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    if (!after.empty() && after.back() == task) after.pop_back();  // a task follows itself anyway
  }
  return result;
}

}  // namespace hearth
