// The files of a result besides its weights: copies of the base's files, and files that the run
// changed.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace hearth {

class Checkpoint;
class NewDirectory;

/// Files of a result that differ from the base's, by name: the new content, or nullopt to leave the
/// file out.
using FileChanges = std::map<std::string, std::optional<std::string>>;

/// Copies the base's companion files into the result, with these changes.
void write_companions(const Checkpoint& base, const FileChanges& changes,
                      const NewDirectory& result);

}  // namespace hearth
