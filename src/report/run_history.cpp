#include "report/run_history.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/file_ops.h"

namespace hearth {
namespace {

constexpr uint64_t kMostConfig = uint64_t{1} << 20, kMostPlan = uint64_t{16} << 20;
constexpr size_t kMostOptions = 1000, kMostPlaces = 64, kMostLines = 1000;

bool is_there(const std::string& path) { return file_info(path).kind != FileKind::none; }

void require_run(const std::string& directory) {
  const FileInfo info = file_info(directory);
  if (info.kind != FileKind::directory) {
    throw input_error(directory + ": expected a run directory, found " +
                      (info.kind == FileKind::none ? "nothing" : "a file"));
  }
  // The lock alone: a run that plans, or reads its weights.
  constexpr std::array kFiles{"metrics.jsonl", "journal.jsonl", "config.yaml", "plan.json",
                              ".lock"};
  const bool any = std::any_of(kFiles.begin(), kFiles.end(),
                               [&](const char* name) { return is_there(directory + "/" + name); });
  if (!any) {
    throw input_error(directory +
                      ": expected a run directory (metrics.jsonl, journal.jsonl, config.yaml); "
                      "found none of these files in it");
  }
}

/// Of the absolute path, so that `.` has a name.
std::string last_name(const std::string& directory) {
  const std::string path = real_path(directory);
  return path.substr(path.rfind('/') + 1);
}

/// Lines "name: value"; a torn or empty file shows what it has.
std::vector<std::pair<std::string, std::string>> read_config(const std::string& path) {
  std::vector<std::pair<std::string, std::string>> config;
  if (!is_there(path)) return config;
  const std::string text = read_file(path, kMostConfig);
  for (size_t at = 0; at < text.size() && config.size() < kMostOptions;) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const size_t colon = line.find(": ");
    if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
    config.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
  return config;
}

std::optional<double> number_at(const Json& json, const char* key) {
  const Json* value = json.is_object() ? json.find(key) : nullptr;
  if (!value || !value->is_number()) return std::nullopt;
  return value->as_double();
}

std::string text_at(const Json& json, const char* key) {
  const Json* value = json.is_object() ? json.find(key) : nullptr;
  return value && value->is_string() ? value->as_string() : "";
}

const JsonArray& list_at(const Json& json, const char* key) {
  static const JsonArray none;
  const Json* value = json.is_object() ? json.find(key) : nullptr;
  return value && value->is_array() ? value->as_array() : none;
}

std::vector<PlannedPlace> memory_of(const Json& plan) {
  std::vector<PlannedPlace> places;
  for (const Json& entry : list_at(plan, "memory")) {
    if (places.size() == kMostPlaces) break;
    PlannedPlace& place = places.emplace_back();
    place.place = text_at(entry, "place");
    place.peak_bytes = number_at(entry, "peak_bytes").value_or(0);
    place.budget_bytes = number_at(entry, "budget_bytes").value_or(0);
    place.measured_peak_bytes = number_at(entry, "measured_peak_bytes");
    for (const Json& line : list_at(entry, "lines")) {
      if (place.lines.size() == kMostLines) break;
      place.lines.push_back({text_at(line, "name"), text_at(line, "basis"),
                             number_at(line, "bytes").value_or(0), number_at(line, "measured")});
    }
  }
  return places;
}

}  // namespace

std::string RunHistory::option(const std::string& key) const {
  for (const auto& [option, value] : config) {
    if (option != key) continue;
    const bool in_quotes = value.size() >= 2 && value.front() == '"' && value.back() == '"';
    return value == "null" ? "" : in_quotes ? value.substr(1, value.size() - 2) : value;
  }
  return "";
}

/// Of ranks that are threads, what they took together.
double RunHistory::peak_bytes() const {
  double sum = 0;
  for (const PlannedPlace& place : memory) {
    const bool is_host = place.place == "host" || place.place.ends_with("/host");
    if (is_host) sum += place.measured_peak_bytes.value_or(0);
  }
  return sum > 0 ? sum : static_cast<double>(metrics.peak_rss_bytes);
}

std::optional<double> RunHistory::planned(const char* key) const { return number_at(plan, key); }

RunHistory read_run(const std::string& directory) {
  require_run(directory);
  RunHistory run;
  run.directory = directory;
  run.name = last_name(directory);
  run.journal = read_journal(directory + "/journal.jsonl");
  const auto& evaluations = run.journal.evaluations;
  run.metrics = evaluations.empty()
                    ? read_metrics(directory + "/metrics.jsonl", 0, -1)
                    : read_metrics(directory + "/metrics.jsonl", evaluations.begin()->first,
                                   evaluations.rbegin()->first);
  const std::string plan = directory + "/plan.json";
  if (is_there(plan)) {
    run.plan = parse_json(read_file(plan, kMostPlan), plan);
    if (!run.plan.is_object()) throw input_error(plan + ": expected an object");
    run.memory = memory_of(run.plan);
  }
  run.config = read_config(directory + "/config.yaml");
  for (const char* result : {"model", "adapter"}) {
    if (file_info(directory + "/" + result).kind == FileKind::directory) run.result = result;
  }
  return run;
}

}  // namespace hearth
