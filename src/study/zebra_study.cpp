#include "study/zebra_study.h"

namespace hearth {

double ZebraModel::expert_parameters() const {
  const auto width = 3.5 * static_cast<double>(hidden);
  return 3 * width * static_cast<double>(hidden) * layers * experts;
}

const std::vector<ZebraModel>& zebra_models() {
  static const std::vector<ZebraModel> models{{"Mixtral-W1", 4, 2048, 12, 2.2e9},
                                              {"Mixtral-W2", 4, 2048, 24, 4.3e9},
                                              {"Mixtral-D1", 8, 1024, 24, 2.1e9},
                                              {"Mixtral-D2", 6, 1024, 18, 1.2e9},
                                              {"Mixtral-D3", 8, 1024, 40, 3.5e9}};
  return models;
}

ZebraTimes zebra_times_of_o1(double attention_share) {
  const ZebraModel& model = zebra_models()[2];
  ZebraTimes times{6, 6, model.experts, {}, {}};
  const double own = static_cast<double>(model.experts) / times.expert_ranks;
  times.stages.assign(static_cast<size_t>(model.layers) + 1,
                      {attention_share, 2 * attention_share});
  times.stages.back() = {};
  times.layers.assign(static_cast<size_t>(model.layers),
                      {{1 / own, 2 / own}, {0.8 / own, 1.6 / own}, {}, {}});
  return times;
}

double zebra_attention_share(double thousand_tokens) { return 0.371 + 0.0309 * thousand_tokens; }

ZebraRow zebra_row(int32_t thousand_tokens) {
  const ZebraTimes times = zebra_times_of_o1(zebra_attention_share(thousand_tokens));
  const auto run = [&](int32_t micro_batches, const ExpertShift& shift) {
    return simulate_zebra(times, theorem_1_order(times.count(), micro_batches), shift);
  };
  const auto use = [](const ZebraRun& of) {
    return ZebraUse{of.attention_s / of.time_s, of.experts_s / of.time_s};
  };
  ZebraRow row;
  row.thousand_tokens = thousand_tokens;
  row.shift = choose_expert_shift(times, kZebraMicroBatches).shift;
  const ZebraRun zebra = run(kZebraMicroBatches, {}), shifted = run(kZebraMicroBatches, row.shift);
  const ZebraRun seed = run(kZebraMicroBatches, gather_and_squeeze(times));
  row.apart = use(run(1, {}));
  row.zebra = use(zebra);
  row.seed = use(seed);
  row.shifted = use(shifted);
  row.seed_gain = zebra.time_s / seed.time_s;
  row.gain = zebra.time_s / shifted.time_s;
  return row;
}

const std::vector<ZebraTable3>& zebra_table_3() {
  static const std::vector<ZebraTable3> rows{{8, {.55, .89}, {.83, .78}},
                                             {16, {.77, .89}, {.86, .84}}};
  return rows;
}

}  // namespace hearth
