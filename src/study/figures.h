// The points of the figures of APTMoE's evaluation (SC 2024, IV).
#pragma once

#include <vector>

#include "study/step_study.h"

namespace hearth {

inline constexpr int kFirstFigure = 11, kLastFigure = 14;

/// Figure 11: five shapes, four G each. 12: five batches of S-16 and M-16. 13: 7, 14 and 28 cores of each
/// GPU, S-16 and M-8. 14: 4, 8 and 16 GPUs, S-64 and M-16. All with gpipe-offload, mobius, aptmoe and
/// auto. Batches of figure 11 are those of the paper's program: 128 for S, 16 for M, 8 for L.
std::vector<StepStudy> figure_studies(int figure);

}  // namespace hearth
