#include "runtime/bench_model.h"

#include <algorithm>
#include <string>

#include "base/error_format.h"

namespace hearth {
namespace {

/// Fills the table of a bench model from the model's.
class Cutter {
 public:
  Cutter(const ModelSpec& spec, const ParameterTable& table, DenseLayer dense)
      : spec_(spec), from_(table), without_dense_(dense == DenseLayer::as_in_model) {
    for (int32_t layer = 0; layer < spec.layers; ++layer) {
      int32_t& first = spec.has_experts(layer) ? moe_ : dense_;
      if (first < 0) first = layer;
    }
  }

  /// With so many experts and so many rows of the vocabulary.
  BenchModel cut(int64_t experts, int64_t vocabulary) const {
    BenchModel model;
    model.spec = spec_;
    model.spec.vocabulary = vocabulary;
    model.spec.padding_id = -1;
    model.head_share = static_cast<double>(vocabulary) / static_cast<double>(spec_.vocabulary);
    if (moe_ >= 0) model.moe_layer = 0;
    model.dense_layer = moe_ >= 0 ? 1 : 0;
    model.held_experts = moe_ >= 0 ? experts : 0;
    model.spec.layers = model.dense_layer + 1;
    if (without_dense_ && dense_ < 0) {
      model.dense_layer = -1;
      model.spec.layers = 1;
    }
    if (dense_ < 0) model.spec.dense_width = spec_.expert_width * spec_.experts_per_token;
    model.spec.moe = {true, false};
    const auto window = [&](int32_t layer) { return spec_.windows[static_cast<size_t>(layer)]; };
    model.spec.windows = {window(std::max(moe_, 0)), window(std::max(dense_, 0))};
    if (moe_ < 0) {
      model.spec.moe = {false};
      model.spec.windows = {window(dense_)};
    }
    Copier copier{*this, model, {}};
    copier.copy();
    return model;
  }

 private:
  struct Copier {
    const Cutter& cutter;
    BenchModel& model;
    std::vector<std::pair<BlockId, BlockId>> kept;  // of the model, of the bench model

    void copy() {
      copy_layer(-1, -1, BlockKind::embedding);
      if (model.moe_layer >= 0) copy_layer(cutter.moe_, model.moe_layer);
      if (cutter.dense_ >= 0) {
        copy_layer(cutter.dense_, model.dense_layer);
      } else if (model.dense_layer >= 0) {
        add_dense();
      }
      copy_layer(-1, -1, BlockKind::head);
      const std::vector<std::pair<BlockId, BlockId>> bases = kept;
      for (const auto& [from, to] : bases) copy_adapter(from, to);
    }

    /// The blocks of a layer, but adapters; outside the layers, those of a kind.
    void copy_layer(int32_t layer, int32_t as, BlockKind only = BlockKind::adapter) {
      const auto count = static_cast<BlockId>(cutter.from_.blocks().size());
      for (BlockId id = 0; id < count; ++id) {
        const Block& block = cutter.from_.block(id);
        if (block.layer != layer || block.kind == BlockKind::adapter) continue;
        if (layer < 0 && block.kind != only) continue;
        if (block.kind == BlockKind::expert && block.expert >= model.held_experts) continue;
        const BlockId to = model.table.add_block(block.kind, as, block.expert);
        kept.emplace_back(id, to);
        for (TensorId t = block.begin; t < block.end; ++t) copy_tensor(cutter.from_.tensor(t));
      }
    }

    void copy_tensor(const Tensor& t) {
      const bool by_word = t.slot == Slot::embedding || t.slot == Slot::head;
      const int64_t rows = by_word ? model.spec.vocabulary : t.rows;
      const TensorId id = model.table.add_tensor(t.name, t.slot, rows, t.cols, t.vector);
      Tensor& copy = model.table.tensor(id);
      copy.stored = t.stored;
      copy.trainable = t.trainable;
      copy.decayed = t.decayed;
    }

    /// A dense MLP, trained and stored as the experts are.
    void add_dense() {
      const Tensor& like = cutter.from_.tensor(
          cutter.from_.block(cutter.from_.find_block(BlockKind::expert, cutter.moe_, 0)).begin);
      model.table.add_block(BlockKind::dense, model.dense_layer);
      const int64_t hidden = model.spec.hidden, width = model.spec.dense_width;
      const auto add = [&](const char* name, Slot slot, int64_t rows, int64_t cols) {
        const TensorId id = model.table.add_tensor(std::string("measured.") + name + ".weight",
                                                   slot, rows, cols, false);
        model.table.tensor(id).stored = like.stored;
        model.table.tensor(id).trainable = like.trainable;
      };
      add("gate", Slot::gate, width, hidden);
      add("up", Slot::up, width, hidden);
      add("down", Slot::down, hidden, width);
    }

    void copy_adapter(BlockId from, BlockId to) {
      const auto adapter = cutter.from_.adapter_of(from);
      if (!adapter) return;
      const Block& block = cutter.from_.block(*adapter);
      model.table.add_adapter(to, block.scale);
      for (TensorId t = block.begin; t < block.end; ++t) {
        const Tensor& factor = cutter.from_.tensor(t);
        if (factor.factor != Factor::a) continue;
        model.table.add_low_rank(*model.table.find_slot(to, factor.slot), factor.rows);
      }
    }
  };

  const ModelSpec& spec_;
  const ParameterTable& from_;
  const bool without_dense_;       // if the model has no dense layer
  int32_t moe_ = -1, dense_ = -1;  // the first layers of their kind
};

uint64_t parameter_bytes(const ParameterTable& table, const CopyPolicy& policy) {
  uint64_t sum = 0;
  for (const ParameterArena& arena : parameter_arenas(table, policy)) sum += arena.bytes;
  return sum;
}

}  // namespace

BenchModel bench_model(const ModelSpec& spec, const ParameterTable& table, const CopyPolicy& policy,
                       Place place, uint64_t max_bytes, DenseLayer dense) {
  const Cutter cutter(spec, table, dense);
  int64_t experts = std::max<int64_t>(spec.experts, 1), vocabulary = spec.vocabulary;
  while (true) {
    BenchModel model = cutter.cut(experts, vocabulary);
    const uint64_t bytes = parameter_bytes(model.table, policy);
    if (bytes <= max_bytes) {
      const auto blocks = static_cast<BlockId>(model.table.blocks().size());
      for (BlockId id = 0; id < blocks; ++id) model.table.set_place(id, place);
      return model;
    }
    // What takes more is cut first.
    const uint64_t words = parameter_bytes(cutter.cut(1, vocabulary).table, policy);
    const uint64_t rest = parameter_bytes(cutter.cut(1, 1).table, policy);
    if (rest > max_bytes) {
      throw usage_error("measuring needs {} bytes of memory for parameters, {} are free", rest,
                        max_bytes);
    }
    const bool cut_words = vocabulary > 1 && (experts == 1 || words - rest > max_bytes / 4);
    if (cut_words) {
      vocabulary = std::max<int64_t>(vocabulary / 2, 1);
    } else {
      experts = std::max<int64_t>(experts * 3 / 4, 1);
    }
  }
}

uint64_t least_bench_bytes(const ModelSpec& spec, const ParameterTable& table,
                           const CopyPolicy& policy, DenseLayer dense) {
  return parameter_bytes(Cutter(spec, table, dense).cut(1, 1).table, policy);
}

ModelSpec with_experts(const ModelSpec& spec, int64_t experts) {
  ModelSpec cut = spec;
  cut.experts = experts;
  cut.experts_per_token = 1;
  return cut;
}

}  // namespace hearth
