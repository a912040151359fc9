#include "runtime/task_lists.h"

#include "base/pool.h"

namespace hearth {

TaskLists::TaskLists(size_t bytes)
    : memory_("lists of tasks", bytes), taken_(memory_.data(), memory_.size()) {
  memory_.touch(Pool(1));
}

}  // namespace hearth
