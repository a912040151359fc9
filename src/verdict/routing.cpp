#include "verdict/routing.h"

#include <algorithm>

#include "base/error.h"
#include "data/samples/row_words.h"

namespace hearth {

namespace {

constexpr int64_t kMostTokens = int64_t{1} << 60;  // sums of a run stay far below it

/// The tokens of a document after its last target.
int64_t behind_targets(std::span<const int32_t> labels) {
  int64_t behind = 0;
  while (behind < std::ssize(labels) && labels[labels.size() - 1 - behind] == kIgnoredLabel) {
    ++behind;
  }
  return behind;
}

}  // namespace

Routing::Routing(const ModelSpec& spec)
    : experts_(spec.experts), last_layer_(static_cast<int32_t>(spec.layers) - 1) {
  for (int32_t layer = 0; layer <= last_layer_; ++layer) {
    if (spec.moe[static_cast<size_t>(layer)]) layers_.push_back(layer);
  }
  tokens_.resize(layers_.size() * static_cast<size_t>(experts_));
}

void Routing::count(const std::vector<MicroBatch>& batches,
                    const std::vector<std::vector<double>>& expert_tokens) {
  ++counts_[0];
  for (const MicroBatch& batch : batches) {
    counts_[1] += batch.tokens;
    counts_[2] += batch.tokens - batch.trained_tokens;
    const std::span<const int32_t> labels(batch.labels);
    for (size_t i = 0; i + 1 < batch.offsets.size(); ++i) {
      const auto begin = static_cast<size_t>(batch.offsets[i]);
      counts_[3] +=
          behind_targets(labels.subspan(begin, static_cast<size_t>(batch.offsets[i + 1]) - begin));
    }
  }
  auto at = tokens_.begin();
  for (const std::vector<double>& layer : expert_tokens) {
    for (const double tokens : layer) *at++ += static_cast<int64_t>(tokens);
  }
}

void Routing::register_state(StateRegistry& registry) {
  const auto view = [](const char* name, std::vector<int64_t> shape, auto& numbers) {
    const int64_t rows = shape[0];
    return StateView{name, DType::i64, std::move(shape),
                     0,    rows,       std::as_writable_bytes(std::span(numbers))};
  };
  registry.add({"routing",
                [this, view] {
                  return std::vector<StateView>{
                      view("counts", {std::ssize(counts_)}, counts_),
                      view("experts", {std::ssize(layers_), experts_}, tokens_)};
                },
                {},
                [this] {
                  const auto is_bad = [](int64_t n) { return n < 0 || n > kMostTokens; };
                  if (std::any_of(counts_.begin(), counts_.end(), is_bad) ||
                      std::any_of(tokens_.begin(), tokens_.end(), is_bad)) {
                    throw storage_error("routing: a token count is out of range");
                  }
                },
                true});
}

std::span<const int64_t> Routing::experts(int32_t layer) const {
  const auto at = std::lower_bound(layers_.begin(), layers_.end(), layer) - layers_.begin();
  return std::span(tokens_).subspan(static_cast<size_t>(at * experts_),
                                    static_cast<size_t>(experts_));
}

int64_t Routing::without_gradient(int32_t layer) const {
  return layer == last_layer_ ? counts_[2] : counts_[3];
}

}  // namespace hearth
