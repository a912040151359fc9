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

/// Whether both paths lead to one file. A path that leads nowhere from here was relative to another
/// directory: then one must end with the other.
bool same_file(const std::string& was, const std::string& is) {
  if (was == is) return true;
  const auto before = file_number(was), now = file_number(is);
  if (before || !now) return before && before == now;
  const std::vector<std::string> a = names_of(was), b = names_of(is);
  const size_t n = std::min(a.size(), b.size());
  return n > 0 && std::equal(a.end() - static_cast<ptrdiff_t>(n), a.end(),
                             b.end() - static_cast<ptrdiff_t>(n));
}

/// The texts of a recorded value: one, or those of a list. nullopt for anything else.
std::optional<std::vector<std::string>> texts_of(const Json* recorded) {
  if (recorded == nullptr || !recorded->is_string()) return std::nullopt;
  std::vector<std::string> texts;
  try {
    const Json value = parse_json(recorded->as_string(), "a recorded option");
    if (value.is_string()) return std::vector{value.as_string()};
    if (!value.is_array()) return std::nullopt;
    for (const Json& item : value.as_array()) {
      if (!item.is_string()) return std::nullopt;
      texts.push_back(item.as_string());
    }
  } catch (const Error&) {  // not as we record it: compared as it stands
    return std::nullopt;
  }
  return texts;
}

bool same_files(const std::string& option, const Json* was, const Json* is) {
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

/// Lists of files by the names that the user gave them get those of now; the files of a directory
/// keep their own.
void rename_files(Json& saved, const Json& current, const char* key) {
  const Json* is = current.find(key);
  if (saved.find(key) == nullptr || is == nullptr || !is->is_array()) return;
  Json& was = saved[key];
  if (!was.is_array()) return;
  const size_t n = std::min(was.as_array().size(), is->as_array().size());
  for (size_t i = 0; i < n; ++i) {
    Json& file = was.as_array()[i];
    const Json* name = is->as_array()[i].find("file");
    if (file.is_object() && name != nullptr) file["file"] = *name;
  }
}

}  // namespace

Json in_current_spelling(const Json& saved, const Json& current) {
  Json spelled = saved;
  const Json *was = saved.find("options"), *is = current.find("options");
  if (was == nullptr || !was->is_object() || is == nullptr) return spelled;
  for (const char* option : {"model", "adapter", "data", "eval-data", "chat-template"}) {
    const Json *before = was->find(option), *now = is->find(option);
    if (before == nullptr || now == nullptr || before->dump() == now->dump()) continue;
    if (!same_files(option, before, now)) continue;
    spelled["options"][option] = *now;
    const std::string name = option;
    if (name != "model" && name != "adapter") rename_files(spelled, current, option);
  }
  return spelled;
}

}  // namespace hearth
