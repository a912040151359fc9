// The plan for people and as JSON, and the refusal of what does not fit.
#include <algorithm>
#include <cstdio>

#include "train/run_plan.h"

namespace hearth {

namespace {

std::string megabytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%10.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

std::string fixed(double x, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

void append_list(std::string& text, const Schedule& list) {
  size_t number = 0;
  for (const Task& task : list.tasks) {
    char line[96];
    std::snprintf(line, sizeof line, "  %4zu  %-44s", number++, describe(task).c_str());
    text += line;
    std::string reads, writes;
    for (const BufferUse& use : task.uses) {
      if (use.port.access == Access::temporary) continue;
      std::string& side = use.port.access == Access::read ? reads : writes;
      side += side.empty() ? "" : " ";
      side += info_of(use.port.value).name;
    }
    text += reads + " -> " + writes + "\n";
  }
}

}  // namespace

std::string refusal(const RunPlan& plan, const RunConfig& config) {
  if (plan.fits()) return "";
  uint64_t activations = 0;
  for (const MemoryLine& line : plan.memory) {
    if (line.name.starts_with("activations") || line.name.starts_with("scratch")) {
      activations += line.bytes;
    }
  }
  const uint64_t fixed_part = plan.peak - activations;
  std::string change;
  if (fixed_part < plan.budget && config.seq_len > 1) {
    // Activations grow with the tokens of a micro-batch, near enough in proportion.
    const double share = static_cast<double>(plan.budget - fixed_part) /
                         static_cast<double>(std::max<uint64_t>(activations, 1));
    const auto tokens = static_cast<int64_t>(
        share * 0.95 * static_cast<double>(config.seq_len * config.micro_batch));
    change = config.micro_batch > 1 && tokens >= config.seq_len
                 ? "--micro-batch " + std::to_string(tokens / config.seq_len)
                 : "--micro-batch 1 --seq-len " + std::to_string(std::max<int64_t>(tokens, 1));
  } else {
    change = "--cpu-memory " + std::to_string((plan.peak >> 20) + 1) +
             "Mi on a machine that has it, or --freeze of more tensors";
  }
  const auto rounded = [](uint64_t bytes) { return std::to_string((bytes >> 20) + 1) + " MiB"; };
  return "the plan needs " + rounded(plan.peak) + " of host memory and " + rounded(plan.budget) +
         " may be used; " + change + " would fit";
}

void require_fit(const RunPlan& plan, const RunConfig& config) {
  if (!plan.fits()) throw usage_error(refusal(plan, config));
}

Json plan_json(const RunPlan& plan, const RunSetup& setup, const StepBound& bound) {
  Json json;
  json["fits"] = plan.fits();
  json["time_s"] = bound.total_s();
  json["bound_s"] = bound.total_s();
  json["limit"] = bound.limit();
  Json host;
  host["place"] = "host";
  host["peak_bytes"] = plan.peak;
  host["budget_bytes"] = plan.budget;
  JsonArray lines;
  for (const MemoryLine& line : plan.memory) {
    Json entry;
    entry["name"] = line.name;
    entry["bytes"] = line.bytes;
    entry["basis"] = line.basis;
    if (line.measured) entry["measured"] = *line.measured;
    lines.push_back(std::move(entry));
  }
  host["lines"] = std::move(lines);
  json["memory"] = JsonArray{std::move(host)};
  json["parallel"] = "single";
  json["devices"] = JsonArray{Json("host")};
  json["workers"] = static_cast<int64_t>(setup.workers);
  json["compute_dtype"] = setup.settings.compute == Compute::bf16 ? "bf16" : "f32";
  if (plan.train) {
    json["group"] = plan.train->group;
    json["recompute"] = plan.train->recompute ? "blocks" : "none";
    json["micro_batches"] = plan.train->schedule.micro_batches;
    json["tokens_per_micro_batch"] = plan.train->schedule.tokens;
    json["tasks"] = static_cast<int64_t>(plan.train->schedule.tasks.size());
  }
  return json;
}

std::string plan_text(const RunPlan& plan, const RunSetup& setup, const StepBound& bound) {
  std::string text = "memory of the process (host)\n";
  for (const MemoryLine& line : plan.memory) {
    char row[200];
    std::snprintf(row, sizeof row, "  %-36s %s   %s\n", line.name.c_str(),
                  megabytes(line.bytes).c_str(), line.basis.c_str());
    text += row;
  }
  char total[200];
  std::snprintf(total, sizeof total, "  %-36s %s   of %s: %s\n", "peak",
                megabytes(plan.peak).c_str(), megabytes(plan.budget).c_str() + 1,
                plan.fits() ? "fits" : "DOES NOT FIT");
  text += total;
  if (!plan.train) return text;
  const Schedule& list = plan.train->schedule;
  text += "\nstep: " + std::to_string(list.tasks.size()) + " tasks in 1 stream on host (" +
          std::to_string(setup.workers) + " workers), " + std::to_string(list.micro_batches) +
          " micro-batches of at most " + std::to_string(list.tokens) + " tokens, groups of " +
          std::to_string(plan.train->group) + (plan.train->recompute ? ", blocks recomputed" : "") +
          "\n";
  append_list(text, list);
  text += "\nbound of a full step: " + fixed(bound.total_s(), "%.3g s") + " (products " +
          fixed(bound.products_s, "%.3g s") + " for " + fixed(bound.flops / 1e9, "%.4g GFLOP") +
          ", update " + fixed(bound.update_s, "%.3g s") + "); limited by " + bound.limit() + "\n";
  return text;
}

}  // namespace hearth
