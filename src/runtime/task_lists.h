// The memory of the lists that the tasks of a stream make: views of experts, tensors to update.
#pragma once

#include <cstddef>
#include <memory_resource>

#include "base/arena.h"

namespace hearth {

/// For one task at a time. A task that takes more than `bytes` gets the rest from the heap.
class TaskLists {
 public:
  explicit TaskLists(size_t bytes);
  TaskLists(const TaskLists&) = delete;
  TaskLists& operator=(const TaskLists&) = delete;

  /// Takes back what the task before has taken.
  std::pmr::memory_resource* of_next_task() {
    taken_.release();
    return &taken_;
  }

 private:
  Arena memory_;
  std::pmr::monotonic_buffer_resource taken_;
};

}  // namespace hearth
