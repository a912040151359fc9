#include "data/samples/data_files.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/file_ops.h"

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

// What looks like several files given at once.
bool looks_like_several(const std::string& path) {
  return path.find_first_of(",*?[") != std::string::npos;
}

}  // namespace

void check_data_files(const std::vector<DataFile>& files, const std::string& option) {
  for (const DataFile& file : files) {
    if (file.path == "-") continue;
    const FileKind kind = file_info(file.path).kind;
    const bool several = kind == FileKind::none && looks_like_several(file.path);
    if (kind != FileKind::directory && !several) continue;
    throw input_error(option + " " + quoted(file.path) + ": is " +
                      (several ? "no file" : "a directory, not a file") + "; repeat " + option +
                      " for each file (" + option + " a.jsonl " + option + " b.jsonl)");
  }
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
