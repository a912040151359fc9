// What a layer takes with expert domains (HybridEP, section III), by the paper's model of two streams,
// computation and communication, and with what it leaves out. A level of links; experts and tokens are
// even. Pure; no clock. Runs do not plan with it: they simulate their own schedules
// (budget/domain_choice.h).
//
// G ranks in domains of S. D are the bytes of a rank's routed rows, P those of its experts as they are
// sent, B the bytes per second of a rank's link:
//
//   gather    (S - 1) P / B            experts, to the ranks of the domain
//   exchange  D (1 - S / G) / B        rows, to the experts; again on their way back
//
// The paper's eq. 10, for a forward pass; experts are taken to be hidden by communication:
//
//   T = max(T_pre, gather) + 2 exchange
//
// Its optimum (eqs. 11 and 12) is p* = max(0, 1 - B T_pre / (P (G - 1))), or 0 if 2 D >= G P, with
// p = (G - S) / (G - 1). No S may have that p, so we compare every divisor S of G.
//
// The paper leaves out:
//
//   - experts that nothing hides, if no row travels: max(2 exchange, T_experts);
//   - backward: 2 exchanges more, and for experts that train their gradients back to the owner, dense,
//     (S - 1) P_gradient / B;
//   - that the shared expert has to be made anew in each step, where weights travel compressed;
//   - that weights may have to be gathered again for backward.
#pragma once

#include <cstdint>
#include <vector>

namespace hearth {

struct StreamCase {
  int32_t ranks = 1;           // G
  double bytes_per_s = 1;      // B
  double before_s = 0;         // T_pre: what is computed before the experts
  double experts_s = 0;        // T_experts
  double row_bytes = 0;        // D
  double expert_bytes = 0;     // P
  double gradient_bytes = 0;   // P_gradient; 0: experts are frozen
  double shared_bytes = 0;     // that a rank sends for the shared expert, if any experts travel
  bool gathers_again = false;  // for backward
};

struct StreamTimes {
  int32_t domain = 1;  // S
  double p = 1;
  double gather_s = 0, exchange_s = 0, reduce_s = 0, shared_s = 0;
  double paper_s = 0;  // eq. 10
  double layer_s = 0;  // forward and backward, with what the paper leaves out
};
StreamTimes stream_times(const StreamCase& of, int32_t domain);

/// Of every divisor of G, the smallest first.
std::vector<StreamTimes> all_stream_times(const StreamCase& of);
/// The domain with the least time, of equals the smallest.
int32_t best_domain_of_paper(const StreamCase& of);
int32_t best_domain(const StreamCase& of);
/// Eqs. 11 and 12. Not rounded.
double best_p_of_paper(const StreamCase& of);

}  // namespace hearth
