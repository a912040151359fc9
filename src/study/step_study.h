// What a training step of a shape takes on a machine that is only described, under several policies and
// with skewed routing. The plan, the schedule, the rules and the loader are those of runs; times are
// simulated.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "study/study_machine.h"
#include "study/study_shape.h"

namespace hearth {

struct StepStudy {
  StudyShape shape;
  StudyMachine machine;
  int64_t batch = 128;        // sequences of a step
  int64_t micro_batches = 4;  // divides `batch`
  std::vector<double> skews;  // G of first choices (predictor/popularity.h); at least one
  std::vector<std::string>
      policies;  // of --policy, and what `auto` alone may become: static, makespan
  uint64_t seed = 42;
  bool divide_experts = false;  // of the makespan's rule, as --divide-experts has it
  bool keeps_trace = false;
};

struct StudyRow {
  std::string shape;
  int gpus = 0, cores_per_gpu = 0;
  int64_t batch = 0;
  double skew = 0;
  std::string policy;
  std::string became = {};  // of `auto`
  double step_s = 0, bound_s = 0, tokens_per_s = 0;
  std::map<std::string, double> bytes = {};  // by link, of a step
};

struct StudyResult {
  std::vector<StudyRow> rows;  // by skew, then by policy
  int64_t tasks = 0;           // that were simulated
  std::string trace = {};  // if the study keeps it: of the last step of the last row, for Chrome
};

/// Each row is the mean of some steps of equal skew after the first. Between steps popularity changes as
/// in the paper: three quarters of the least popular experts stay among the less popular. A pure
/// function of the study. Usage error if a policy does not fit the memory, or the shape has more GPUs
/// than layers.
StudyResult study_steps(const StepStudy& study);

}  // namespace hearth
