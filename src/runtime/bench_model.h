// A model with the shapes of another, cut to one layer of each kind, so that every kind of task can
// be measured in little memory.
#pragma once

#include <cstdint>

#include "model/parameter_memory.h"
#include "model/parameter_table.h"
#include "model/spec.h"

namespace hearth {

/// A dense layer where the model has none: as wide as the experts of a token, or no such layer.
enum class DenseLayer : uint8_t { always, as_in_model };

/// What is cut: all layers but one with experts and one dense, experts, rows of the vocabulary.
struct BenchModel {
  ModelSpec spec;           // layer `moe_layer` has routed experts, layer `dense_layer` a dense MLP
  ParameterTable table;     // all blocks at one place; not bound to memory
  int32_t moe_layer = -1;   // -1: the model has no routed experts
  int32_t dense_layer = 0;  // -1: none
  int64_t held_experts = 0;  // experts of the layer that are in the table
  double head_share = 1;     // vocabulary here / of the model
};

/// `table`: of the model; says what is trained and how it is stored. Cuts experts and vocabulary
/// until the parameters take at most `max_bytes`. Usage error if one expert and one row of the
/// vocabulary take more.
BenchModel bench_model(const ModelSpec& spec, const ParameterTable& table, const CopyPolicy& policy,
                       Place place, uint64_t max_bytes, DenseLayer dense = DenseLayer::always);

/// What the parameters take at least: of one expert and one row of the vocabulary.
uint64_t least_bench_bytes(const ModelSpec& spec, const ParameterTable& table,
                           const CopyPolicy& policy, DenseLayer dense = DenseLayer::always);

/// The spec for a call of `experts` experts of the table, each with its own tokens.
ModelSpec with_experts(const ModelSpec& spec, int64_t experts);

}  // namespace hearth
