// The simulated rows of HeterMoE's evaluation (arXiv 2504.03871): Table 2's models, Table 3 and the
// gain of Asym-EA over sequence lengths. Times are ratios, for which the paper gives what is needed:
//
//   - Experts take 0.8 of a V100's time at an A40 (section 2.3).
//   - Attention takes 0.371 + 0.0309 s of the experts' time, s in thousands of tokens: the line through
//     the utilisations of Table 3 at 8 K and 16 K, which meets 1 at 20 K, where the paper says that
//     Asym-EA ends.
//   - Backward takes twice as long as forward. Communication and optimizer take no time.
//
// So utilisations and gains are upper bounds of the paper's. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/zebra/expert_shift.h"

namespace hearth {

/// Of Table 2. The width of an expert is 3.5 times the hidden size, as of Mixtral.
struct ZebraModel {
  std::string name;
  int32_t layers = 0;
  int64_t hidden = 0;
  int32_t experts = 0;
  double paper = 0;  // parameters

  double expert_parameters() const;
};
const std::vector<ZebraModel>& zebra_models();

/// Mixtral-D1 on setup O1: 6 A40 and 6 V100.
inline constexpr int32_t kZebraMicroBatches = 4;
ZebraTimes zebra_times_of_o1(double attention_share);
double zebra_attention_share(double thousand_tokens);

/// Shares of the time in which ranks of a role compute.
struct ZebraUse {
  double attention = 0, experts = 0;
};
struct ZebraRow {
  int32_t thousand_tokens = 0;
  ZebraUse apart, zebra, seed,
      shifted;                     // a micro-batch at a time; zebra; with Algorithm 1; searched
  double seed_gain = 1, gain = 1;  // of a shift: zebra's time over that
  ExpertShift shift;
};
ZebraRow zebra_row(int32_t thousand_tokens);

/// Table 3 of the paper: utilisation in percent without and with Asym-EA.
struct ZebraTable3 {
  int32_t thousand_tokens = 0;
  ZebraUse zebra, shifted;
};
const std::vector<ZebraTable3>& zebra_table_3();

}  // namespace hearth
