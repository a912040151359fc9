// Weights of a session: read, drawn, and shown to saved state.
#include <algorithm>
#include <mutex>

#include "base/system.h"
#include "model/adapters.h"
#include "model/parameter_access.h"
#include "state/parameter_state.h"
#include "train/session.h"

namespace hearth {

namespace {

/// RAII: redirects weight loads into the gradient buffers until destroyed.
class HomesInGradients {
 public:
  explicit HomesInGradients(ParameterTable& table) : table_(table) { exchange(); }
  ~HomesInGradients() { exchange(); }
  HomesInGradients(const HomesInGradients&) = delete;
  HomesInGradients& operator=(const HomesInGradients&) = delete;

 private:
  void exchange() {
    for (Tensor& t : table_.tensors()) {
      if (!t.trainable) continue;
      std::swap(t.copies[static_cast<int>(CopyRole::master)].view,
                t.copies[static_cast<int>(CopyRole::gradient)].view);
    }
  }
  ParameterTable& table_;
};

}  // namespace

void Session::read_adapters() {
  if (opened_.adapter) {
    opened_.adapter->read(table_);
  } else {
    init_adapters(table_, model_.settings.seed);
  }
}

void Session::read_weights() {
  // Ranks that are threads take turns, so that the buffers are there once.
  static std::mutex turn;
  const std::lock_guard lock(turn);
  const uint64_t before = resident_bytes(), peak = peak_resident_bytes();
  opened_.checkpoint->read_weights(table_, *pool_);
  read_adapters();
  refresh_working_copies(table_);
  start_predictor();
  // Where the process once had more, nobody knows how much this took.
  if (peak_resident_bytes() > peak) read_bytes_ = peak_resident_bytes() - before;
}

/// With the weights of the routers; if it reads what enters a layer, of the norms before them, too.
void Session::start_predictor() {
  if (!predictor_) return;
  const std::vector<int32_t> layers = routed_layers(opened_.spec);
  std::vector<std::byte> staging;
  const auto weights_of = [&](BlockKind kind, int32_t layer, Slot slot) {
    const BlockId block = table_.find_block(kind, layer);
    const Tensor& tensor = table_.tensor(*table_.find_slot(block, slot));
    const View& home = tensor.home().view;
    std::vector<float> weights(static_cast<size_t>(tensor.size()));
    convert(home.dtype, host_elements(table_, tensor, home, 0, tensor.size(), staging), DType::f32,
            weights.data(), tensor.size());
    return weights;
  };
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto number = static_cast<int32_t>(i);
    if (!predictor_->source(number)) continue;
    std::vector<float> norm;
    if (predictor_->settings().input == PredictorInput::layer) {
      norm = weights_of(BlockKind::attention, layers[i], Slot::post_norm);
    }
    predictor_->start(number, weights_of(BlockKind::router, layers[i], Slot::router), norm);
  }
}

void Session::read_start() {
  const HomesInGradients guard(table_);
  opened_.checkpoint->read_weights(table_, *pool_, WeightSet::trained);
  read_adapters();
}

size_t Session::views_through(const Task& update) const {
  const BlockId blocks = update.blocks.back().end;
  const TensorId end = blocks > 0 ? table_.block(blocks - 1).end : 0;
  size_t views = 0;
  for (TensorId id = 0; id < end; ++id) {
    views += table_.tensor(id).trainable && table_.block(table_.tensor(id).block).owned;
  }
  return views;
}

void Session::register_state(StateRegistry& registry, const TensorsElsewhere* elsewhere) {
  if (elsewhere != nullptr) {
    register_parameters(registry, table_, *elsewhere);
  } else {
    register_parameters(registry, table_);
  }
  if (predictor_) predictor_->register_state(registry);
}

}  // namespace hearth
