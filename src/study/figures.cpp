#include "study/figures.h"

#include "base/error.h"

namespace hearth {

namespace {

StepStudy study_of(const char* shape, std::vector<double> skews, int64_t batch) {
  StepStudy study;
  study.shape = *find_study_shape(shape);
  study.skews = std::move(skews);
  study.batch = batch;
  study.policies = {"gpipe-offload", "mobius", "aptmoe", "auto"};
  return study;
}

}  // namespace

std::vector<StepStudy> figure_studies(int figure) {
  HEARTH_CHECK(figure >= kFirstFigure && figure <= kLastFigure, "figures: no such figure");
  const std::vector<double> of_8{.2, .4, .6, .8}, of_16{.1, .2, .3, .4};
  std::vector<StepStudy> studies;
  if (figure == 11) {
    return {study_of("S-8", of_8, 128), study_of("S-16", of_16, 128), study_of("M-8", of_8, 16),
            study_of("M-16", of_16, 16), study_of("L-8", of_8, 8)};
  }
  if (figure == 12) {
    for (const char* shape : {"S-16", "M-16"}) {
      for (const int64_t batch : {16, 32, 64, 128, 256}) {
        studies.push_back(study_of(shape, {.3}, batch));
      }
    }
  } else if (figure == 13) {
    for (const int cores : {7, 14, 28}) {
      for (StepStudy study : {study_of("S-16", {.3}, 128), study_of("M-8", {.6}, 128)}) {
        study.machine.cores_per_gpu = cores;
        studies.push_back(std::move(study));
      }
    }
  } else {
    for (const int gpus : {4, 8, 16}) {
      for (StepStudy study : {study_of("S-64", {.15}, 128), study_of("M-16", {.3}, 128)}) {
        study.machine.gpus = gpus;
        study.machine.roots = gpus / 2;
        study.micro_batches = gpus;
        studies.push_back(std::move(study));
      }
    }
  }
  return studies;
}

}  // namespace hearth
