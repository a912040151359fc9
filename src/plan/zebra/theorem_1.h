// Whether the order of Theorem 1 (HeterMoE, arXiv 2504.03871, section 4.1) is the fastest. The paper
// has no conditions. Exhaustive search over small cases finds faster orders, by up to 13 %, unless
// attention is what takes longest:
//
//   - the experts of a layer take no longer than any stage of attention in the same phase,
//   - no exchange takes longer than any stage of attention in any phase,
//   - layers are alike: no stage, nor experts of a layer, take a quarter longer than those of another,
//   - no attention rank computes experts.
//
// The last stage, with the head, counts with both phases together, since they follow each other.
//
// With these, no faster order was found (tests/plan/test_zebra_order.cpp). Pure.
#pragma once

#include <string>
#include <vector>

#include "plan/zebra/zebra_times.h"

namespace hearth {

struct Theorem1 {
  std::vector<std::string> fails;  // for people: which condition, and by how much
  bool holds() const { return fails.empty(); }
};

Theorem1 check_theorem_1(const ZebraTimes& times, const ExpertShift& shift = {});

}  // namespace hearth
