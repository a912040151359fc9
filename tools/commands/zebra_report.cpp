#include "commands/zebra_report.h"

#include <fmt/format.h>

#include "study/zebra_study.h"

namespace hearth {

namespace {

constexpr int32_t kLengths[] = {4, 8, 12, 16, 20, 24};  // thousands of tokens, of the gain

Json use_json(const ZebraUse& use) {
  return JsonObject{{"attention", use.attention}, {"experts", use.experts}};
}

std::string use_text(const ZebraUse& use) {
  return fmt::format("{:.0f}/{:.0f}", 100 * use.attention, 100 * use.experts);
}

JsonArray shift_json(const ExpertShift& shift) {
  JsonArray json;
  for (const int32_t moved : shift) json.emplace_back(int64_t{moved});
  return json;
}

}  // namespace

Json zebra_study_json() {
  JsonArray models, utilisation, gain;
  for (const ZebraModel& model : zebra_models()) {
    models.emplace_back(JsonObject{{"model", model.name},
                                   {"expert_parameters", model.expert_parameters()},
                                   {"paper_parameters", model.paper}});
  }
  for (const ZebraTable3& paper : zebra_table_3()) {
    const ZebraRow row = zebra_row(paper.thousand_tokens);
    utilisation.emplace_back(JsonObject{{"tokens", int64_t{1024} * row.thousand_tokens},
                                        {"apart", use_json(row.apart)},
                                        {"zebra", use_json(row.zebra)},
                                        {"algorithm_1", use_json(row.seed)},
                                        {"shifted", use_json(row.shifted)},
                                        {"shift", shift_json(row.shift)},
                                        {"paper_zebra", use_json(paper.zebra)},
                                        {"paper_shifted", use_json(paper.shifted)}});
  }
  for (const int32_t length : kLengths) {
    const ZebraRow row = zebra_row(length);
    gain.emplace_back(JsonObject{
        {"tokens", int64_t{1024} * length}, {"algorithm_1", row.seed_gain}, {"shifted", row.gain}});
  }
  return JsonObject{{"simulated", true},
                    {"models", std::move(models)},
                    {"utilisation", std::move(utilisation)},
                    {"gain", std::move(gain)}};
}

std::string zebra_study_text() {
  std::string text =
      "simulated, not run: HeterMoE (arXiv 2504.03871). Communication and optimizer take no "
      "time\n\n"
      "parameters of the experts, in billions, and of the whole model in the paper\n";
  for (const ZebraModel& model : zebra_models()) {
    text += fmt::format("  {:<12} {:>6.2f} {:>6.1f}\n", model.name, model.expert_parameters() / 1e9,
                        model.paper / 1e9);
  }
  text += "\nMixtral-D1 on 6 A40 and 6 V100: utilisation in percent, attention/experts ranks\n" +
          fmt::format("  {:<7} {:>8} {:>8} {:>12} {:>9} {:>13} {:>15}\n", "tokens", "apart",
                      "zebra", "Algorithm 1", "searched", "paper: zebra", "paper: shifted");
  for (const ZebraTable3& paper : zebra_table_3()) {
    const ZebraRow row = zebra_row(paper.thousand_tokens);
    text += fmt::format("  {:<7} {:>8} {:>8} {:>12} {:>9} {:>13} {:>15}\n",
                        fmt::format("{}K", row.thousand_tokens), use_text(row.apart),
                        use_text(row.zebra), use_text(row.seed), use_text(row.shifted),
                        use_text(paper.zebra), use_text(paper.shifted));
  }
  text += "\nspeed with experts that move, over none\n" +
          fmt::format("  {:<7} {:>12} {:>9}\n", "tokens", "Algorithm 1", "searched");
  for (const int32_t length : kLengths) {
    const ZebraRow row = zebra_row(length);
    text += fmt::format("  {:<7} {:>12.2f} {:>9.2f}\n", fmt::format("{}K", length), row.seed_gain,
                        row.gain);
  }
  return text;
}

}  // namespace hearth
