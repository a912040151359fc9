#include "train/spelling.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file_ops.h"
#include "data/samples/data_files.h"

namespace hearth {
namespace {

std::optional<std::pair<uint64_t, uint64_t>> file_number(const std::string& path) {
  struct stat status {};
  if (file_calls().status(path.c_str(), true, status) < 0) return std::nullopt;
  return std::pair<uint64_t, uint64_t>(status.st_dev, status.st_ino);
}

/// The names of a path, without those that only lead there: ".", a leading "..".
std::vector<std::string> names_of(const std::string& path) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    const bool leads = name.empty() || name == "." || (name == ".." && names.empty());
    if (!leads) names.push_back(name);
    begin = end + 1;
  }
  return names;
}

/// Whether the longer path ends with the shorter one.
bool same_end(const std::string& was, const std::string& is) {
  const std::vector<std::string> a = names_of(was), b = names_of(is);
  const size_t n = std::min(a.size(), b.size());
  return n > 0 && std::equal(a.end() - static_cast<ptrdiff_t>(n), a.end(),
                             b.end() - static_cast<ptrdiff_t>(n));
}

/// Whether both paths lead to one file. A path that leads nowhere from here was relative to another
/// directory: then it must end as the current one does, as it is spelled or behind its links.
bool same_file(const std::string& was, const std::string& is) {
  if (was == is) return true;
  const auto before = file_number(was), now = file_number(is);
  if (before || !now) return before && before == now;
  std::string real;
  const bool found = file_calls().real_path(is.c_str(), real) >= 0;
  return same_end(was, is) || (found && same_end(was, real));
}

/// The texts of a recorded value: one, or those of a list. nullopt for anything else.
std::optional<std::vector<std::string>> texts_of(const std::string& recorded) {
  std::vector<std::string> texts;
  try {
    const Json value = parse_json(recorded, "a recorded option");
    if (value.is_string()) return std::vector{value.as_string()};
    if (!value.is_array()) return std::nullopt;
    for (const Json& item : value.as_array()) {
      if (!item.is_string()) return std::nullopt;
      texts.push_back(item.as_string());
    }
  } catch (const Error&) {  // written by another program: compared as it stands
    return std::nullopt;
  }
  return texts;
}

bool same_files(const std::string& option, const std::string& was, const std::string& is) {
  const auto before = texts_of(was), now = texts_of(is);
  if (!before || !now || before->size() != now->size()) return false;
  try {
    const bool weights = option == "data";
    const std::vector<DataFile> old = parse_data_files(*before, "--" + option, weights);
    const std::vector<DataFile> given = parse_data_files(*now, "--" + option, weights);
    return std::equal(old.begin(), old.end(), given.begin(),
                      [](const DataFile& a, const DataFile& b) {
                        return a.passes == b.passes && same_file(a.path, b.path);
                      });
  } catch (const Error&) {
    return false;
  }
}

/// Gives files that the user named their current names. Files in a directory keep their own.
void rename_files(IdentityField<FileDigests>& saved, const IdentityField<FileDigests>& now) {
  if (!saved.value || !now.value) return;
  for (size_t i = 0; i < std::min(saved.value->size(), now.value->size()); ++i) {
    (*saved.value)[i].file = (*now.value)[i].file;
  }
}

}  // namespace

RunIdentity in_current_spelling(RunIdentity saved, const RunIdentity& now) {
  if (!saved.options.value) return saved;
  for (IdentityOption& option : *saved.options.value) {
    const std::string& name = option.name;
    const bool in_directory = name == "model" || name == "adapter";
    const bool named = name == "data" || name == "eval-data" || name == "chat-template";
    const std::optional<std::string> current = now.option(name);
    if (!(in_directory || named) || !current || option.value == *current) continue;
    if (!same_files(name, option.value, *current)) continue;
    option.value = *current;
    if (name == "data") rename_files(saved.data, now.data);
    if (name == "eval-data") rename_files(saved.eval_data, now.eval_data);
    if (name == "chat-template") rename_files(saved.chat_template, now.chat_template);
  }
  return saved;
}

}  // namespace hearth
