#include "train/card_rows.h"

#include <cstdio>
#include <optional>

#include "base/file_ops.h"
#include "base/version.h"
#include "record/journal.h"
#include "state/run_identity.h"
#include "verdict/loss_record.h"

namespace hearth {
namespace {

constexpr const char* kOptions[] = {"method",       "steps",      "epochs",        "lr",
                                    "lr-schedule",  "warmup",     "warmup-ratio",  "weight-decay",
                                    "micro-batch",  "grad-accum", "seq-len",       "packing",
                                    "lora-r",       "expert-r",   "lora-alpha",    "lora-dropout",
                                    "lora-targets", "experts",    "compute-dtype", "seed"};

/// "me/chats", a data set of the hub: no file that is there, one slash, no ending.
bool is_hub_name(const std::string& path) {
  const size_t slash = path.find('/');
  return slash != std::string::npos && slash > 0 && slash + 1 < path.size() &&
         path.find_first_of("/.~", slash + 1) == std::string::npos && path[0] != '.' &&
         path[0] != '~' && file_info(path).kind == FileKind::none;
}

/// The card leaves the machine, so it has no local path.
std::string file_name(const std::string& path) {
  if (is_hub_name(path)) return path;
  const std::string whole = path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
  return whole.substr(whole.rfind('/') + 1);
}

/// The names of a file or a list of files, without their folders; empty for none.
std::string file_names(const std::optional<std::string>& list) {
  std::string names;
  if (!list || list->empty()) return names;
  if (!list->starts_with('[')) return file_name(*list);
  const Json files = parse_json(*list, "the list of files");
  if (!files.is_array()) return names;
  for (const Json& file : files.as_array()) {
    if (!file.is_string()) continue;
    names += (names.empty() ? "" : ", ") + file_name(file.as_string());
  }
  return names;
}

std::string four_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", value);
  return text;
}

}  // namespace

CardRows card_rows(const Json& extra, int64_t step, const std::string& journal) {
  const RunIdentity run = identity_in(extra);
  const bool adapts = run.option("method") == "lora";
  CardRows rows;
  for (const auto& [name, option] : {std::pair("data", "data"), {"evaluation data", "eval-data"}}) {
    if (std::string names = file_names(run.option(option)); !names.empty()) {
      rows.emplace_back(name, std::move(names));
    }
  }
  for (const char* name : kOptions) {
    const std::string key = name;
    if (!adapts && (key.starts_with("lora-") || key.starts_with("expert"))) continue;
    const auto value = run.option(key);
    if (value && *value != "null") rows.emplace_back("`--" + key + "`", *value);
  }
  rows.emplace_back("steps trained", std::to_string(step));
  LossRecord losses;
  losses.restore(extra.find("losses"), "the saved state");
  if (losses.steps() > 0) {
    rows.emplace_back("training loss, first and last steps",
                      four_digits(losses.first()) + ", " + four_digits(losses.last()));
  }
  const JournaledRun journaled = read_journaled_run(journal);
  const auto before = journaled.loss_at(0), after = journaled.loss_at(step);
  if (before) rows.emplace_back("evaluation loss before training", four_digits(*before));
  if (after) rows.emplace_back("evaluation loss after training", four_digits(*after));
  rows.emplace_back("version", "hearth " + build_info().version);
  return rows;
}

}  // namespace hearth
