// The models of APTMoE's evaluation (SC 2024, table I), by name. They have no weights, only shapes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/parameter_table.h"
#include "model/spec.h"

namespace hearth {

/// A GPT-like decoder with top-2 routing. `width` is the paper's inner width of an expert, which has two
/// matrices there. Experts here have three, so they get two thirds of it: equal bytes, equal operations.
struct StudyShape {
  std::string name;
  int64_t hidden = 0, width = 0, experts = 0;
  int64_t layers = 64;
};
inline constexpr int64_t kStudySequence = 128;  // tokens
inline constexpr int64_t kStudyTopK = 2;

/// S-8, S-16, S-64, M-8, M-16, L-8.
const std::vector<StudyShape>& study_shapes();
/// Null if there is no such shape.
const StudyShape* find_study_shape(std::string_view name);

struct StudyModel {
  ModelSpec spec;
  ParameterTable table;  // f32, every tensor trained
};
/// The paper's models have neither embedding nor head. Here both are small: 256 tokens.
StudyModel study_model(const StudyShape& shape);

}  // namespace hearth
