// The files of a result besides its weights: the base's, copied, and those that the run changed.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace hearth {

class Checkpoint;
class NewDirectory;

/// Files of a result that differ from the base's, by name: the new content, or nullopt for a file
/// that is left out.
using FileChanges = std::map<std::string, std::optional<std::string>>;

/// Copies the companion files of the base into the result, with these changes.
void write_companions(const Checkpoint& base, const FileChanges& changes,
                      const NewDirectory& result);

}  // namespace hearth
