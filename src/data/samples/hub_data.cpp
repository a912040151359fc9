#include "data/samples/hub_data.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>

#include "base/error_format.h"
#include "base/file_ops.h"
#include "checkpoint/hub_cache.h"
#include "data/samples/row_names.h"

namespace hearth {
namespace {

constexpr int kMostFolders = 4;  // below the snapshot
constexpr size_t kMostFiles = 100'000;

constexpr std::array<std::pair<std::string_view, const char*>, 10> kWords{{
    {"train", "train"},
    {"training", "train"},
    {"validation", "validation"},
    {"valid", "validation"},
    {"val", "validation"},
    {"dev", "validation"},
    {"test", "test"},
    {"testing", "test"},
    {"eval", "test"},
    {"evaluation", "test"},
}};

std::string split_of_words(std::string_view text) {
  std::string word;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    for (const auto& [known, split] : kWords) {
      if (word == known) return split;
    }
    word.clear();
  }
  return "";
}

/// SPLIT of SPLIT-00000-of-00001...; empty for other names.
std::string split_of_shard(std::string_view name) {
  const size_t of = name.find("-of-");
  if (of == name.npos || of == 0 || name.size() < of + 5) return "";
  const size_t dash = name.rfind('-', of - 1);
  if (dash == name.npos || dash + 1 == of) return "";
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::string_view number = name.substr(dash + 1, of - dash - 1);
  if (!std::all_of(number.begin(), number.end(), is_digit) || !is_digit(name[of + 4])) return "";
  return std::string(name.substr(0, dash));
}

void list_rows(const std::string& snapshot, const std::string& folder, int depth,
               std::vector<std::string>& files) {
  for (const std::string& name : list_directory(snapshot + "/" + folder)) {
    if (name.starts_with('.') || files.size() == kMostFiles) continue;
    const FileKind kind = file_info(snapshot + "/" + folder + name).kind;
    if (kind == FileKind::regular && names_rows(name)) files.push_back(folder + name);
    if (kind == FileKind::directory && depth < kMostFolders) {
      list_rows(snapshot, folder + name + "/", depth + 1, files);
    }
  }
}

std::string joined_names(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + quoted(name);
  return text;
}

}  // namespace

std::string split_of_file(std::string_view path) {
  const size_t slash = path.rfind('/');
  const std::string_view name = slash == path.npos ? path : path.substr(slash + 1);
  std::string split = split_of_shard(name);
  if (split.empty()) split = split_of_words(name.substr(0, name.find('.')));
  if (split.empty() && slash != path.npos) split = split_of_words(path.substr(0, slash));
  return split;
}

std::optional<std::vector<std::string>> find_hub_data(const std::string& name,
                                                      const std::string& option) {
  if (names_rows(name.substr(name.rfind('/') + 1))) return std::nullopt;
  const size_t colon = std::min(name.rfind(':'), name.size());
  const auto snapshot = find_cached_data_set(name.substr(0, colon));
  if (!snapshot) return std::nullopt;
  std::vector<std::string> files;
  list_rows(*snapshot, "", 0, files);
  std::map<std::string, std::vector<std::string>> by_split;
  for (const std::string& file : files) by_split[split_of_file(file)].push_back(file);
  if (by_split.size() == 1 && by_split.contains("")) by_split = {{"train", by_split[""]}};

  std::vector<std::string> wanted{"train"};
  if (colon < name.size()) {
    wanted = {name.substr(colon + 1)};
  } else if (option.find("eval") != std::string::npos) {
    wanted = {"validation", "test"};
  }
  for (const std::string& split : wanted) {
    const auto found = by_split.find(split);
    if (found == by_split.end()) continue;
    std::set<std::string> folders;
    for (const std::string& file : found->second) {
      folders.insert(file.substr(0, file.find('/') == file.npos ? 0 : file.rfind('/')));
    }
    if (folders.size() > 1) {
      throw input_error(
          "{} {}: a data set of several subsets ({}); name the files in one of these "
          "folders of {}",
          option, quoted(name), joined_names(folders), *snapshot);
    }
    std::vector<std::string> paths;
    for (const std::string& file : found->second) paths.push_back(*snapshot + "/" + file);
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  std::set<std::string> splits;
  for (const auto& [split, of] : by_split) {
    if (!split.empty()) splits.insert(split);
  }
  if (splits.empty()) {
    throw input_error("{} {}: no data files in {} ({})", option, quoted(name), *snapshot,
                      kRowEndings);
  }
  throw input_error("{} {}: no split {} in {}; it has {}, so name one ({} {}:{})", option,
                    quoted(name), quoted(wanted[0]), *snapshot, joined_names(splits), option,
                    name.substr(0, colon), *splits.begin());
}

}  // namespace hearth
