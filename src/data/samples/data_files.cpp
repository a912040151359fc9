#include "data/samples/data_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/error_format.h"
#include "base/file_ops.h"
#include "data/samples/hub_data.h"
#include "data/samples/row_names.h"

namespace hearth {
namespace {

constexpr double kMostPasses = 1000;

std::optional<double> parse_number(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

bool exists(const std::string& path) {
  return path == "-" || file_info(path).kind != FileKind::none;
}

DataFile parse_data_file(const std::string& given, const std::string& option,
                         bool weights_allowed) {
  const size_t colon = given.rfind(':');
  if (exists(given) || colon == std::string::npos) return {given};
  const std::string path = given.substr(0, colon);
  const std::optional<double> passes = parse_number(given.substr(colon + 1));
  if (!passes) return {given};
  if (!weights_allowed) {
    throw usage_error(option + " " + quoted(given) +
                      ": evaluation data has no weight; give the file alone");
  }
  if (!(*passes > 0 && *passes <= kMostPasses)) {
    throw usage_error(option + " " + quoted(given) +
                      ": expected a weight above 0 and at most 1000, the passes over the file per "
                      "epoch");
  }
  return {path, *passes};
}

bool is_glob(const std::string& path) { return path.find_first_of("*?") != std::string::npos; }

std::vector<std::string> files_of_directory(const std::string& path, const std::string& option) {
  std::vector<std::string> files;
  const std::string folder = path.ends_with('/') ? path : path + "/";
  for (const std::string& name : list_directory(path)) {
    if (names_rows(name) && file_info(folder + name).kind == FileKind::regular) {
      files.push_back(folder + name);
    }
  }
  if (files.empty()) {
    throw input_error("{} {}: no data files in this directory ({}); directories in it are not read",
                      option, quoted(path), kRowEndings);
  }
  return files;
}

/// Whether a name has the form of a part of a glob.
bool fits(std::string_view glob, std::string_view name) {
  size_t g = 0, n = 0, star = glob.npos, retry = 0;  // the last *, and where its match may grow
  while (n < name.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      retry = n;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == name[n])) {
      ++g;
      ++n;
    } else if (star != glob.npos) {
      g = star + 1;
      n = ++retry;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == glob.npos;
}

/// The files that match, directory by directory.
void match(const std::string& folder, std::string_view glob, std::vector<std::string>& files) {
  const size_t slash = glob.find('/');
  const std::string part(glob.substr(0, slash));
  const std::string_view rest = slash == glob.npos ? "" : glob.substr(slash + 1);
  if (slash != glob.npos && !is_glob(part)) return match(folder + part + "/", rest, files);
  const std::string listed = folder.empty() ? "." : folder;
  if (file_info(listed).kind != FileKind::directory) return;
  for (const std::string& name : list_directory(listed)) {
    if (name.starts_with('.') != part.starts_with('.') || !fits(part, name)) continue;
    const FileKind kind = file_info(folder + name).kind;
    if (slash == glob.npos && kind == FileKind::regular) files.push_back(folder + name);
    if (slash != glob.npos && kind == FileKind::directory) match(folder + name + "/", rest, files);
  }
}

}  // namespace

std::vector<DataFile> expand_data_files(const std::vector<DataFile>& given,
                                        const std::string& option) {
  std::vector<DataFile> files;
  for (const DataFile& file : given) {
    const FileKind kind = file.path == "-" ? FileKind::regular : file_info(file.path).kind;
    std::vector<std::string> found{file.path};
    if (kind == FileKind::directory) {
      found = files_of_directory(file.path, option);
    } else if (kind == FileKind::none && is_glob(file.path)) {
      found.clear();
      match("", file.path, found);
      if (found.empty()) throw usage_error("{} {}: matches no file", option, quoted(file.path));
    } else if (auto files_of_set =
                   kind == FileKind::none ? find_hub_data(file.path, option) : std::nullopt) {
      found = *std::move(files_of_set);
    } else if (kind == FileKind::none && file.path.find(',') != std::string::npos) {
      throw input_error(
          "{} {}: is no file; name several files one after the other ({} a.jsonl "
          "b.jsonl)",
          option, quoted(file.path), option);
    }
    for (std::string& path : found) files.push_back({std::move(path), file.passes});
  }
  return files;
}

std::vector<DataFile> find_data_files(const std::vector<std::string>& given,
                                      const std::string& option, bool weights_allowed) {
  return expand_data_files(parse_data_files(given, option, weights_allowed), option);
}

std::vector<std::string> paths_of(const std::vector<DataFile>& files) {
  std::vector<std::string> paths;
  for (const DataFile& file : files) paths.push_back(file.path);
  return paths;
}

std::vector<DataFile> parse_data_files(const std::vector<std::string>& given,
                                       const std::string& option, bool weights_allowed) {
  std::vector<DataFile> files;
  for (const std::string& name : given) {
    files.push_back(parse_data_file(name, option, weights_allowed));
  }
  if (std::count_if(files.begin(), files.end(),
                    [](const DataFile& file) { return file.path == "-"; }) > 1) {
    throw usage_error(option + ": standard input (-) can be read only once");
  }
  return files;
}

}  // namespace hearth
