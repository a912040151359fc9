#include "commands/step_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace hearth {

namespace {

/// The row of mobius at the same point; null if there is none.
const StudyRow* mobius_of(const StudyRow& row, const StudyResult& result) {
  const auto found = std::ranges::find_if(result.rows, [&](const StudyRow& other) {
    return other.policy == "mobius" && other.shape == row.shape && other.gpus == row.gpus &&
           other.cores_per_gpu == row.cores_per_gpu && other.batch == row.batch &&
           other.skew == row.skew;
  });
  return found == result.rows.end() ? nullptr : &*found;
}

}  // namespace

Json study_json(const StudyResult& result, double seconds) {
  JsonArray rows;
  for (const StudyRow& row : result.rows) {
    JsonObject bytes;
    for (const auto& [link, of_link] : row.bytes) bytes.emplace_back(link, of_link);
    Json json = JsonObject{
        {"shape", row.shape},       {"gpus", row.gpus},       {"cores_per_gpu", row.cores_per_gpu},
        {"batch", row.batch},       {"skew", row.skew},       {"policy", row.policy},
        {"step_s", row.step_s},     {"bound_s", row.bound_s}, {"tokens_per_s", row.tokens_per_s},
        {"bytes", std::move(bytes)}};
    if (!row.became.empty()) json["became"] = row.became;
    rows.push_back(std::move(json));
  }
  return JsonObject{{"simulated", true},
                    {"rows", std::move(rows)},
                    {"tasks", result.tasks},
                    {"seconds", seconds}};
}

std::string study_text(const StudyResult& result, double seconds) {
  std::string text =
      fmt::format("simulated, not run: {} tasks in {:.1f} s\n\n", result.tasks, seconds);
  text += fmt::format("{:<6} {:>4} {:>9} {:>6} {:>6}  {:<22} {:>9} {:>9} {:>9} {:>10}\n", "shape",
                      "GPUs", "cores/GPU", "batch", "G", "policy", "step s", "bound s", "tokens/s",
                      "mobius/it");
  for (const StudyRow& row : result.rows) {
    const StudyRow* const mobius = mobius_of(row, result);
    text +=
        fmt::format("{:<6} {:>4} {:>9} {:>6} {:>6}  {:<22} {:>9.4g} {:>9.4g} {:>9.0f} {:>10}\n",
                    row.shape, row.gpus, row.cores_per_gpu, row.batch, row.skew,
                    row.became.empty() ? row.policy : row.policy + " (" + row.became + ")",
                    row.step_s, row.bound_s, row.tokens_per_s,
                    mobius == nullptr ? "" : fmt::format("{:.3f}", mobius->step_s / row.step_s));
  }
  return text;
}

}  // namespace hearth
