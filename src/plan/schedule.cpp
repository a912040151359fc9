#include "plan/schedule.h"

#include <algorithm>
#include <map>

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
  if (task.layer >= 0) text += " layer " + std::to_string(task.layer);
  if (task.micro_batch >= 0) text += " micro-batch " + std::to_string(task.micro_batch);
  return text;
}

void validate(const Schedule& s) {
  std::vector<bool> written(s.buffers.size());
  for (size_t i = 0; i < s.buffers.size(); ++i) {
    const Buffer& b = s.buffers[i];
    written[i] = b.use == BufferClass::given || b.use == BufferClass::cache;
    HEARTH_CHECK(b.address + b.bytes <= s.arena_bytes, "schedule: buffer outside its arena");
  }
  for (const Task& task : s.tasks) {
    HEARTH_CHECK(task.stream >= 0 && static_cast<size_t>(task.stream) < s.streams.size(),
                 "schedule: unknown stream");
    for (const BufferUse& use : task.uses) {
      const auto id = static_cast<size_t>(use.buffer);
      const Access access = use.port.access;
      if (access == Access::read || access == Access::update) {
        HEARTH_CHECK(written[id], "schedule: read before written: " + describe(task) + ", " +
                                      std::string(info_of(use.port.value).name));
      } else {
        written[id] = true;
      }
    }
  }
  HEARTH_CHECK(!live_buffers_overlap(s.buffers), "schedule: live buffers overlap");
}

namespace {

/// Who last wrote a piece of memory, and who has read it since.
struct Accesses {
  TaskId writer = -1;
  std::vector<TaskId> readers;

  void read(TaskId task, std::vector<TaskId>& after) {
    if (writer >= 0) after.push_back(writer);
    readers.push_back(task);
  }
  void write(TaskId task, std::vector<TaskId>& after) {
    if (writer >= 0) after.push_back(writer);
    after.insert(after.end(), readers.begin(), readers.end());
    readers.clear();
    writer = task;
  }
};

/// The arena as pieces [key, next key), split where a buffer begins or ends.
class AddressMap {
 public:
  explicit AddressMap(const Schedule& s) {
    pieces_[0];
    for (const Buffer& b : s.buffers) {
      pieces_[b.address];
      pieces_[b.address + b.bytes];
    }
  }
  void access(const Buffer& b, bool writes, TaskId task, std::vector<TaskId>& after) {
    for (auto it = pieces_.find(b.address); it->first < b.address + b.bytes; ++it) {
      if (writes) {
        it->second.write(task, after);
      } else {
        it->second.read(task, after);
      }
    }
  }

 private:
  std::map<size_t, Accesses> pieces_;
};

}  // namespace

std::vector<std::vector<TaskId>> dependencies(const Schedule& s) {
  std::vector<std::vector<TaskId>> result(s.tasks.size());
  AddressMap memory(s);
  BlockId blocks = 0;
  for (const Task& task : s.tasks) {
    for (const BlockUse& use : task.blocks) blocks = std::max(blocks, use.end);
  }
  std::vector<Accesses> weights(static_cast<size_t>(blocks)),
      gradients(static_cast<size_t>(blocks));
  for (size_t i = 0; i < s.tasks.size(); ++i) {
    const auto task = static_cast<TaskId>(i);
    std::vector<TaskId>& after = result[i];
    for (const BufferUse& use : s.tasks[i].uses) {
      memory.access(s.buffers[static_cast<size_t>(use.buffer)], use.port.access != Access::read,
                    task, after);
    }
    for (const BlockUse& use : s.tasks[i].blocks) {
      for (auto b = static_cast<size_t>(use.begin); b < static_cast<size_t>(use.end); ++b) {
        switch (use.access) {
          case BlockAccess::read_weights: weights[b].read(task, after); break;
          case BlockAccess::add_gradient: gradients[b].write(task, after); break;
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
