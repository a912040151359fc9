#include "commands/routing_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "base/counted.h"
#include "predictor/popularity.h"

namespace hearth {
namespace {

using Row = std::span<const int64_t> (SyntheticRouting::*)(int64_t, int64_t) const;

/// Counts as [step][layer][expert].
Json counts_json(const SyntheticRouting& routing, Row row) {
  const RoutingRequest& r = routing.request();
  JsonArray steps;
  for (int64_t step = 0; step < r.steps; ++step) {
    JsonArray layers;
    for (int64_t layer = 0; layer < r.layers; ++layer) {
      JsonArray experts;
      for (const int64_t n : (routing.*row)(step, layer)) experts.emplace_back(n);
      layers.emplace_back(std::move(experts));
    }
    steps.emplace_back(std::move(layers));
  }
  return steps;
}

Json or_null(std::optional<double> value) { return value ? Json(*value) : Json(); }

std::string share(double part) { return fmt::format("{:.2f} %", 100 * part); }

/// Ranks that the table shows: all of a few, else those at the ends and between them.
std::vector<size_t> shown_ranks(size_t experts) {
  std::vector<size_t> ranks;
  for (size_t rank = 0; rank < experts; ++rank) {
    const bool power = ((rank + 1) & rank) == 0;  // 1, 2, 4, ...
    if (experts <= 16 || rank < 8 || power || rank + 1 == experts) ranks.push_back(rank);
  }
  return ranks;
}

/// Popularity by rank, which every step and layer has.
std::string rank_table(const SyntheticRouting& routing) {
  const RoutingRequest& r = routing.request();
  std::vector<std::pair<int64_t, int64_t>> ranked;  // first and all choices
  const auto first = routing.first(0, 0), all = routing.all(0, 0);
  for (size_t e = 0; e < first.size(); ++e) ranked.emplace_back(first[e], all[e]);
  std::sort(ranked.begin(), ranked.end(), std::greater<>());
  std::string text = fmt::format("\n{:>6} {:>14} {:>10} {:>14} {:>10}\n", "rank", "first choices",
                                 "of tokens", "all choices", "of tokens");
  for (const size_t rank : shown_ranks(ranked.size())) {
    const auto [one, every] = ranked[rank];
    const auto tokens = static_cast<double>(r.tokens);
    text += fmt::format("{:>6} {:>14} {:>10} {:>14} {:>10}\n", rank + 1, one,
                        share(static_cast<double>(one) / tokens), every,
                        share(static_cast<double>(every) / tokens));
  }
  return text;
}

std::string counts_table(const SyntheticRouting& routing) {
  const RoutingRequest& r = routing.request();
  std::string text = "\nfirst choices by expert\n";
  for (int64_t step = 0; step < r.steps; ++step) {
    for (int64_t layer = 0; layer < r.layers; ++layer) {
      text += fmt::format("step {} layer {}:", step + 1, layer);
      for (const int64_t n : routing.first(step, layer)) text += fmt::format(" {}", n);
      text += "\n";
    }
  }
  return text;
}

}  // namespace

Json routing_json(const SyntheticRouting& routing) {
  Json body;
  body["skew"] = routing.request().skew;
  body["g"] = routing.first_skew();
  body["g_all"] = routing.all_skew();
  body["persistence"] = or_null(routing.persistence());
  body["counts"] = counts_json(routing, &SyntheticRouting::first);
  if (routing.token_hit()) {
    body["predictor"]["token_hit"] = *routing.token_hit();
    body["predictor"]["least_quarter"] = *routing.foretold_least();
    body["predicted"] = counts_json(routing, &SyntheticRouting::predicted);
  }
  Json document;
  document["routing"] = std::move(body);
  return document;
}

std::string routing_text(const SyntheticRouting& routing, bool every_step) {
  const RoutingRequest& r = routing.request();
  const auto line = [](const char* name, const std::string& value) {
    return fmt::format("{:<30} {}\n", name, value);
  };
  std::string text;
  text += line("routing", fmt::format("{}, top {}, {}, {}, {}", counted(r.experts, "expert"),
                                      r.top_k, counted(r.tokens, "token"),
                                      counted(r.layers, "layer"), counted(r.steps, "step")));
  text += line("skew G of first choices",
               fmt::format("{:.5f} (asked {:.5f})", routing.first_skew(), r.skew));
  text += line("skew of all choices", fmt::format("{:.5f}", routing.all_skew()));
  if (const auto persistence = routing.persistence()) {
    text += line("persistence", fmt::format("{:.4f} (asked {:.4f})", *persistence, r.persistence));
  } else {
    text += line("persistence", "none with one step");
  }
  if (const auto hit = routing.token_hit()) {
    text += line("predictor: choices right", share(*hit));
    text += line("predictor: least quarter found", share(*routing.foretold_least()));
  }
  return text + rank_table(routing) + (every_step ? counts_table(routing) : "");
}

std::string routing_trace(const SyntheticRouting& routing) {
  const RoutingRequest& r = routing.request();
  JsonArray events;
  for (int64_t step = 0; step < r.steps; ++step) {
    for (int64_t layer = 0; layer < r.layers; ++layer) {
      Json event;
      event["name"] = fmt::format("tokens of layer {}", layer);
      event["ph"] = "C";
      event["pid"] = 0;
      event["ts"] = step * 1000;  // microseconds
      Json& experts = event["args"];
      int64_t number = 0;
      for (const int64_t n : routing.first(step, layer)) {
        experts[fmt::format("expert {}", number++)] = n;
      }
      events.push_back(std::move(event));
    }
  }
  Json document;
  document["traceEvents"] = std::move(events);
  return document.dump() + "\n";
}

}  // namespace hearth
