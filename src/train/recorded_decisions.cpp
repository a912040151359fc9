#include "train/recorded_decisions.h"

#include <map>
#include <optional>

#include "base/error.h"
#include "data/rows/line_reader.h"
#include "plan/decisions/divided_expert.h"

namespace hearth {

namespace {

/// Reads the fields of one decision.
class DecisionReader {
 public:
  DecisionReader(const PlacedModel& model, std::string where)
      : spec_(model.opened->spec),
        placement_(model.placement),
        names_(model.opened->devices.names()),
        divides_(model.of_model.divides_experts()),
        where_(std::move(where)) {}

  int64_t step(const Json& event) const {
    const Json& value = field(event, "step");
    if (!value.is_signed() || value.as_int() < 1) refuse("step", "expected a step, 1 or more");
    return value.as_int();
  }
  int32_t layer(const Json& event) const {
    const Json& value = field(event, "layer");
    if (!value.is_signed() || value.as_int() < 0 || value.as_int() >= spec_.layers ||
        !spec_.has_experts(static_cast<int32_t>(value.as_int()))) {
      refuse("layer", "the model has no such layer with experts");
    }
    return static_cast<int32_t>(value.as_int());
  }
  RecordedSplit split(const Json& event, int32_t layer) const {
    if (text(event, "phase") != "forward") refuse("phase", "expected 'forward'");
    const std::string& device = names_[static_cast<size_t>(placement_.dense(layer))];
    if (text(event, "device") != device) {
      refuse("device", "here the layer is on " + quoted(device) + ", not on " +
                           quoted(text(event, "device")));
    }
    const JsonArray& tokens = by_expert(event, "tokens");
    const JsonArray& where = by_expert(event, "where");
    const JsonArray& reasons = by_expert(event, "reason");
    RecordedSplit split;
    for (size_t e = 0; e < tokens.size(); ++e) {
      const std::string of = " of expert " + std::to_string(e);
      if (!tokens[e].is_signed() || tokens[e].as_int() < 0 ||
          tokens[e].as_int() > std::numeric_limits<int32_t>::max()) {
        refuse("tokens", "expected a count" + of);
      }
      const bool any = tokens[e].as_int() > 0;
      split.tokens.push_back(static_cast<int32_t>(tokens[e].as_int()));
      split.reasons.push_back(any && reasons[e].is_string() ? reason_named(reasons[e].as_string())
                                                            : SplitReason::none);
      split.on_device.push_back(any && where[e].is_string() && where[e].as_string() == device ? 1
                                                                                              : 0);
      if (!any && !where[e].is_null()) refuse("where", "expected null" + of + ", without tokens");
      if (!any) continue;
      if (where[e].is_object()) {
        split.divided = divided(where[e], device, static_cast<int32_t>(e), split.divided);
        if (split.reasons[e] == SplitReason::none) refuse("reason", "an unknown one" + of);
        continue;
      }
      const bool known = split.on_device[e] != 0 ||
                         (where[e].is_string() && where[e].as_string() == names_[kHostPlace]);
      if (!known) {
        refuse("where", "expected " + quoted(device) + " or " + quoted(names_[kHostPlace]) + of);
      }
      if (split.reasons[e] == SplitReason::none) refuse("reason", "an unknown one" + of);
    }
    return split;
  }

 private:
  const Json& field(const Json& event, const char* name) const {
    const Json* const found = event.find(name);
    if (found == nullptr) refuse(name, "is missing");
    return *found;
  }
  const std::string& text(const Json& event, const char* name) const {
    const Json& value = field(event, name);
    if (!value.is_string()) refuse(name, "expected a string");
    return value.as_string();
  }
  /// Of {place: width, ...}. `before`: of the experts before.
  DividedExpert divided(const Json& where, const std::string& device, int32_t expert,
                        const DividedExpert& before) const {
    const std::string of = " of expert " + std::to_string(expert);
    if (!divides_) refuse("where", "an expert is divided, which this run does not do" + of);
    if (before.any()) refuse("where", "two experts of a layer are divided");
    const Json* const here = where.find(names_[kHostPlace]);
    const Json* const there = where.find(device);
    const bool is_whole = here != nullptr && there != nullptr && here->is_signed() &&
                          there->is_signed() && where.as_object().size() == 2 &&
                          here->as_int() > 0 && there->as_int() > 0 &&
                          here->as_int() < spec_.expert_width &&
                          there->as_int() == spec_.expert_width - here->as_int() &&
                          there->as_int() % divided_columns(spec_.expert_width) == 0;
    if (!is_whole) {
      refuse("where", "expected columns of " + quoted(names_[kHostPlace]) + " and " +
                          quoted(device) + ", which add up to the width" + of);
    }
    return {expert, there->as_int()};
  }
  const JsonArray& by_expert(const Json& event, const char* name) const {
    const Json& value = field(event, name);
    if (!value.is_array()) refuse(name, "expected a list");
    const auto found = std::ssize(value.as_array());
    if (found != spec_.experts) {
      refuse(name, "has " + std::to_string(found) + " entries, the model has " +
                       std::to_string(spec_.experts) + " experts");
    }
    return value.as_array();
  }
  [[noreturn]] void refuse(const char* name, const std::string& why) const {
    throw input_error(where_ + ": " + name + ": " + why);
  }

  const ModelSpec& spec_;
  const Placement& placement_;
  const std::vector<std::string> names_;
  const bool divides_;
  const std::string where_;
};

void read_decision_event(const Json& event, const LineReader& lines, const PlacedModel& model,
                         RecordedSplits& recorded) {
  const Json* const name = event.find("event");
  if (name == nullptr || !name->is_string()) return;
  const std::string& is = name->as_string();
  if (is == "start") recorded.forget_after(0);
  if (is != "decision" && is != "resume") return;
  const DecisionReader read(model, lines.where());
  if (is == "resume") {  // after step 0 if there was no state yet
    const Json* const step = event.find("step");
    return recorded.forget_after(step != nullptr && step->is_signed() ? step->as_int() : 0);
  }
  const int32_t layer = read.layer(event);
  RecordedSplit split = read.split(event, layer);
  split.line = lines.number();
  recorded.add(read.step(event), layer, std::move(split));
}

}  // namespace

std::shared_ptr<const RecordedSplits> read_recorded_decisions(const std::string& path,
                                                              const PlacedModel& model) {
  ByteStream bytes(path);
  LineReader lines(bytes);
  auto recorded = std::make_shared<RecordedSplits>(shown_name(path));
  std::optional<Error> torn;  // of the line before
  while (const auto line = lines.next()) {
    if (torn) throw Error(*torn);
    Json event;
    try {
      event = parse_json(*line, lines.where());
    } catch (const Error& error) {
      torn = error;
      continue;
    }
    read_decision_event(event, lines, model, *recorded);
  }
  recorded->set_lines(lines.number());
  return recorded;
}

void require_recorded(const RecordedSplits& recorded, const PlacedModel& model, int64_t first,
                      int64_t last) {
  std::map<int32_t, int64_t> groups;
  for (const Task& task : model.plan.train->schedule.tasks) {
    if (task.kind == TaskKind::decide) ++groups[task.layer];
  }
  recorded.require(first, last, groups);
}

}  // namespace hearth
