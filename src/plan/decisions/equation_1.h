// The rule of `aptmoe`: Equation 1 of APTMoE (III-C 3).
//
//         sum over experts on the host of their CPU time, from the least popular up
//   R = ---------------------------------------------------------------------------
//         Load_MHA + Load_Gate + sum of the loads of the others, from the most popular down
//
// Loading begins with the most popular expert and stops at R <= 1: the host then works no longer than
// the link does. The device's own time is no part of the rule: it is assumed to be shorter.
#pragma once

#include "plan/decisions/split_problem.h"

namespace hearth {

enum class EquationForm : uint8_t {
  /// Loads count what is not there yet. What is here or coming is on the device, whatever its
  /// popularity. CPU time is what the host's calls take (SplitProblem::host_calls): if it computes
  /// each micro-batch by itself, it reads an expert's weights for each. A pass that sends gradients
  /// home counts the slower direction of the link. Of several passes the times are added. If the device
  /// has room for all experts with tokens and the layer takes no longer that way (SplitModel), they all are
  /// there.
  corrected,
  /// As in the paper: all loads count whatever is there, and CPU time is that of all tokens at once.
  /// No gradients.
  printed
};

/// Uses only real or predicted tokens, projected to the whole group. If the device has no room for
/// what the equation loads, the most popular go there.
ExpertSplit split_by_equation_1(const SplitProblem& problem, EquationForm form);

/// R of a split, for studies: infinite if nothing is loaded and the host has work.
double ratio_of_equation_1(const SplitProblem& problem, EquationForm form,
                           const ExpertSplit& split);

}  // namespace hearth
