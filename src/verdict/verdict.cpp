#include "verdict/verdict.h"

#include <cmath>
#include <cstdio>
#include <numeric>

#include "base/counted.h"
#include "base/setting.h"
#include "base/size_text.h"
#include "verdict/movement.h"

namespace hearth {

namespace {

constexpr int64_t kMostSkipped = 100;     // 1 step in 100 may be skipped
constexpr int64_t kUpdatesThatMoveA = 3;  // the first may have rate 0, the second moves only B

std::string rounded(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", number);
  return text;
}

JsonArray first_of(const std::vector<std::string>& names) {
  constexpr size_t kMostNames = 20;
  JsonArray list;
  for (size_t i = 0; i < std::min(kMostNames, names.size()); ++i) list.push_back(names[i]);
  return list;
}

/// "virtual:0, virtual:1 and the CPU"
std::string listed(const std::vector<std::string>& places) {
  std::string text;
  for (size_t i = 0; i < places.size(); ++i) {
    text += i == 0 ? "" : i + 1 < places.size() ? ", " : " and ";
    text += places[i] == "cpu" ? "the CPU" : places[i];
  }
  return text;
}

/// Judges one part of the run after the other and collects the findings.
class Judge {
 public:
  explicit Judge(const RunFacts& facts) : facts_(facts) {}

  Verdict take() {
    frozen();
    if (facts_.failure.empty()) {
      groups();
      experts();
    } else {
      alarm("cannot compare the trained weights with their start: " + facts_.failure);
    }
    tokens();
    steps();
    losses();
    plan();
    evaluation();
    JsonObject json{{"verdict", verdict_.alarms.empty() ? "ok" : "alarm"}};
    JsonArray reasons;
    for (const std::string& reason : verdict_.alarms) reasons.push_back(reason);
    json.emplace_back("reasons", std::move(reasons));
    JsonArray findings;
    for (const std::string& line : verdict_.lines) findings.push_back(line);
    json.emplace_back("findings", std::move(findings));
    json.insert(json.end(), found_.begin(), found_.end());
    verdict_.json = std::move(json);
    return std::move(verdict_);
  }

 private:
  void alarm(std::string reason) { verdict_.alarms.push_back(std::move(reason)); }
  void line(std::string text) { verdict_.lines.push_back(std::move(text)); }
  void found(const char* name, Json what) { found_.emplace_back(name, std::move(what)); }

  void frozen() {
    const FrozenContent& end = facts_.frozen_at_end;
    const auto changed = changed_tensors(facts_.table, facts_.frozen_at_start, end);
    if (!changed.empty()) {
      alarm(counted(std::ssize(changed), "frozen tensor") + " changed (first: " + changed[0] + ")");
    }
    found("frozen", JsonObject{{"tensors", end.tensors},
                               {"parameters", end.parameters},
                               {"digest_at_start", facts_.frozen_at_start.root.hex()},
                               {"digest_at_end", end.root.hex()},
                               {"changed", first_of(changed)}});
    if (end.tensors == 0) return line("frozen: nothing; everything was trained");
    line("frozen: " + counted(end.tensors, "tensor") + ", " + counted(end.parameters, "parameter") +
         ", " +
         (changed.empty() ? "unchanged (digest " + end.root.hex() + ")"
                          : std::to_string(changed.size()) + " of them changed"));
  }

  void groups() {
    const auto parts = movement_by_part(facts_.table, facts_.changes);
    JsonArray list;
    std::string still;  // the last group that has an alarm as a whole
    for (const PartMovement& part : parts) {
      const bool from_zero = part.start_norm == 0;
      const double share = part.update_norm / part.start_norm;
      list.push_back(JsonObject{{"group", part.group},
                                {"part", part.factor == Factor::none ? "weights"
                                         : part.factor == Factor::a  ? "A"
                                                                     : "B"},
                                {"tensors", part.tensors},
                                {"moved", part.moved},
                                {"parameters", part.parameters},
                                {"start_norm", part.start_norm},
                                {"update_norm", part.update_norm},
                                {"relative_update", from_zero ? Json() : Json(share)}});
      line("trained: " + part.name() + ": " + std::to_string(part.moved) + " of " +
           counted(part.tensors, "tensor") + " moved, " +
           (from_zero ? "from 0 to a norm of " + rounded(part.update_norm)
                      : "by " + rounded(100 * share) + " % of their norm"));
      const bool group_moved = std::any_of(parts.begin(), parts.end(), [&](const auto& other) {
        return other.group == part.group && other.moved > 0;
      });
      if (!group_moved) {
        if (still != part.group) alarm(part.group + " did not move" + why_not());
        still = part.group;
      } else if (part.moved < part.tensors) {
        unmoved(part);
      }
    }
    found("groups", std::move(list));
  }

  std::string why_not() const {
    if (facts_.rate_was_zero) return " (the learning rate was 0 in every step)";
    return facts_.skipped == facts_.steps ? " (every step was skipped)" : "";
  }

  /// What did not move in a group that moved. Experts are judged one by one.
  void unmoved(const PartMovement& part) {
    if (part.factor == Factor::a && facts_.routing.updates() < kUpdatesThatMoveA) return;
    if (part.group == "experts" && part.moved > 0) return;
    alarm(part.moved == 0 ? part.name() + " did not move"
                          : std::to_string(part.tensors - part.moved) + " of " +
                                counted(part.tensors, "tensor") + " of " + part.name() +
                                " did not move (first: " + part.first_unmoved + ")");
  }

  void experts() {
    const auto e = movement_of_experts(facts_.table, facts_.changes, facts_.routing);
    if (e.trained == 0) return;
    const int64_t idle =
        std::accumulate(e.without_tokens.begin(), e.without_tokens.end(), int64_t{0});
    JsonArray by_layer;
    for (size_t i = 0; i < e.without_tokens.size(); ++i) {
      by_layer.push_back(
          JsonObject{{"layer", facts_.routing.layers()[i]}, {"experts", e.without_tokens[i]}});
    }
    found("experts", JsonObject{{"trained", e.trained},
                                {"moved", e.moved},
                                {"without_tokens", idle},
                                {"without_tokens_by_layer", std::move(by_layer)},
                                {"without_gradient", e.without_gradient},
                                {"forgotten", first_of(e.forgotten)},
                                {"moved_in_part", first_of(e.in_part)}});
    std::string text =
        "experts: " + std::to_string(e.moved) + " of " + counted(e.trained, "expert") + " moved";
    if (idle > 0) text += "; " + std::to_string(idle) + " got no token";
    if (e.without_gradient > 0) {
      text += "; " + std::to_string(e.without_gradient) +
              " got only tokens that no trained token depends on";
    }
    if (!e.forgotten.empty()) {
      text += "; " + std::to_string(e.forgotten.size()) + " got tokens but did not move";
      alarm(counted(std::ssize(e.forgotten), "expert") +
            " got tokens but did not move (first: " + e.forgotten[0] + ")");
    }
    if (!e.in_part.empty() && e.moved > 0) {
      alarm(counted(std::ssize(e.in_part), "expert") + " moved only in part (" + e.in_part[0] +
            " did not)");
    }
    line(std::move(text));
  }

  void tokens() {
    const Routing& routing = facts_.routing;
    const int64_t visits = routing.tokens() * facts_.experts_per_token;
    for (const int32_t layer : routing.layers()) {
      const auto of_layer = routing.experts(layer);
      const int64_t sum = std::accumulate(of_layer.begin(), of_layer.end(), int64_t{0});
      if (sum == visits) continue;
      alarm("layer " + std::to_string(layer) + " sent " + std::to_string(sum) +
            " tokens to its experts, not " + std::to_string(visits));
      break;
    }
    const std::vector<std::string>& places = facts_.experts_at;
    JsonObject by_path;  // tokens of the run; how many of them each place computed is not counted
    for (const std::string& place : places) by_path.emplace_back(place, facts_.tokens);
    JsonObject json{{"all", facts_.tokens},
                    {"trained", facts_.trained_tokens},
                    {"by_path", std::move(by_path)}};
    std::string text = "tokens: " + std::to_string(facts_.tokens) +
                       (facts_.experts_apart || places.size() > 1 ? ", experts on " : ", all on ") +
                       listed(places) + "; " + std::to_string(facts_.trained_tokens) +
                       " of them trained";
    if (!routing.layers().empty()) {
      json.emplace_back("to_experts_a_layer", visits);
      text += "; " + std::to_string(visits) + " sent to experts in each MoE layer";
    }
    found("tokens", std::move(json));
    line(std::move(text));
  }

  void steps() {
    const int64_t skipped = facts_.skipped;
    if (skipped * kMostSkipped > facts_.steps) {
      alarm(std::to_string(skipped) + " of " + counted(facts_.steps, "step") +
            " skipped, loss or gradient not finite");
    }
    found("steps", JsonObject{{"all", facts_.steps}, {"skipped", skipped}});
    line("steps: " + std::to_string(facts_.steps) + ", " +
         (skipped == 0 ? "none" : std::to_string(skipped)) + " skipped");
  }

  void losses() {
    const LossRecord& losses = facts_.losses;
    if (losses.steps() == 0) return;
    if (losses.mostly_without_gradient()) {
      alarm("the gradient norm was 0 in " + std::to_string(losses.without_gradient()) + " of " +
            counted(losses.steps(), "step"));
    }
    if (losses.rose_far()) {
      alarm("the training loss rose from " + rounded(losses.first()) + " to " +
            rounded(losses.last()));
    }
    found("losses", JsonObject{{"first", losses.first()},
                               {"last", losses.last()},
                               {"without_gradient", losses.without_gradient()}});
    line("training loss: " + rounded(losses.first()) + " at the start, " + rounded(losses.last()) +
         " at the end");
  }

  void plan() {
    // The program's own pages differ from start to start by less than this.
    const uint64_t slack = std::max(facts_.planned_bytes / 100, uint64_t{4} << 20);
    const bool above = facts_.measured_bytes > facts_.planned_bytes + slack;
    if (above) {
      alarm("memory above the plan: " + size_text(facts_.measured_bytes) + ", planned " +
            size_text(facts_.planned_bytes));
    }
    found("memory",
          JsonObject{{"planned", facts_.planned_bytes}, {"measured", facts_.measured_bytes}});
    found("step_time_s",
          JsonObject{{"predicted", facts_.predicted_s},
                     {"measured", facts_.measured_s ? Json(*facts_.measured_s) : Json()}});
    line("plan: memory " + size_text(facts_.planned_bytes) + ", measured " +
         size_text(facts_.measured_bytes) + "; a step " +
         (facts_.predicted_s > 0 ? rounded(facts_.predicted_s) + " s" : "not predicted") +
         (facts_.measured_s ? ", measured " + rounded(*facts_.measured_s) + " s" : ""));
  }

  void evaluation() {
    const auto &before = facts_.loss_before, &after = facts_.loss_after;
    if (!after) {
      return line("evaluation: none (" + spelled(Setting::eval_data) + " or " +
                  spelled(Setting::val_size) + ", " + spelled(Setting::eval_at_start) + ")");
    }
    if (!std::isfinite(*after)) alarm("the evaluation loss is not finite");
    if (before && *after > *before) {
      alarm("the evaluation loss rose from " + rounded(*before) + " to " + rounded(*after));
    }
    JsonObject json{{"before", before ? Json(*before) : Json()}, {"after", *after}};
    std::string when = " after";
    if (facts_.result_step) {
      json.emplace_back("result_step", *facts_.result_step);
      when += " step " + std::to_string(*facts_.result_step) + ", whose state is the result";
    }
    found("evaluation", std::move(json));
    line(before ? "evaluation: loss " + rounded(*before) + " before, " + rounded(*after) + when
                : "evaluation: loss " + rounded(*after) + when + "; not known before (" +
                      spelled(Setting::eval_at_start) + ")");
  }

  const RunFacts& facts_;
  Verdict verdict_;
  JsonObject found_;
};

}  // namespace

std::string Verdict::text() const {
  if (alarms.empty()) return "ok";
  std::string text = "alarm: ";
  for (size_t i = 0; i < alarms.size(); ++i) text += (i == 0 ? "" : "; ") + alarms[i];
  return text;
}

Verdict judge(const RunFacts& facts) { return Judge(facts).take(); }

}  // namespace hearth
