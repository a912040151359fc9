#include "checkpoint/companion_files.h"

#include "checkpoint/checkpoint.h"
#include "checkpoint/new_directory.h"

namespace hearth {

void write_companions(const Checkpoint& base, const FileChanges& changes,
                      const NewDirectory& result) {
  for (const std::string& name : base.companion_files()) {
    if (!changes.contains(name)) result.copy(base.directory() + "/" + name, name);
  }
  for (const auto& [name, content] : changes) {
    if (content) result.write(name, *content);
  }
}

}  // namespace hearth
