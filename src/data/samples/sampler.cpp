#include "data/samples/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"

namespace hearth {
namespace {

// Appends a document; labels move one place to the front.
void add_document(const TokenStore& store, int64_t row, MicroBatch& batch) {
  const auto ids = store.ids(row);
  const auto labels = store.labels(row);
  batch.ids.insert(batch.ids.end(), ids.begin(), ids.end());
  batch.labels.insert(batch.labels.end(), labels.begin() + 1, labels.end());
  batch.labels.push_back(kIgnoredLabel);
  for (size_t i = 0; i < ids.size(); ++i) batch.positions.push_back(static_cast<int32_t>(i));
  batch.tokens += static_cast<int64_t>(ids.size());
  batch.offsets.push_back(static_cast<int32_t>(batch.tokens));
  batch.trained_tokens += store.trained(row);
}

void add_sequence(const TokenStore& store, std::span<const int64_t> rows, MicroBatch& batch) {
  if (batch.offsets.empty()) batch.offsets.push_back(0);
  for (const int64_t row : rows) add_document(store, row, batch);
  ++batch.sequences;
}

void check_options(const TokenStore& store, const SamplerOptions& options) {
  HEARTH_CHECK(options.seq_len > 0 && options.micro_batch > 0 && options.grad_accum > 0,
               "sampler options above 0");
  HEARTH_CHECK(store.rows() > 0 && store.longest() <= options.seq_len,
               "rows, none longer than seq_len");
  if (options.micro_batch > std::numeric_limits<int32_t>::max() / options.seq_len) {
    throw usage_error("--micro-batch " + std::to_string(options.micro_batch) + " of --seq-len " +
                      std::to_string(options.seq_len) +
                      ": more than 2^31 tokens in a micro-batch; take more --grad-accum");
  }
}

std::vector<int64_t> sorted_lengths(const TokenStore& store) {
  std::vector<int64_t> lengths(store.rows());
  for (int64_t row = 0; row < store.rows(); ++row) lengths[row] = store.length(row);
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

// Rows in file order, over and over: the largest sum of n neighbours.
int64_t largest_run(const TokenStore& store, int64_t n) {
  const int64_t rows = store.rows();
  const int64_t part = n % rows;
  int64_t sum = 0;
  for (int64_t i = 0; i < part; ++i) sum += store.length(i);
  int64_t largest = sum;
  for (int64_t i = 0; i < rows; ++i) {
    sum += store.length((i + part) % rows) - store.length(i);
    largest = std::max(largest, sum);
  }
  return n / rows * store.tokens() + largest;
}

// Any order in each epoch: the n longest, where a row comes again once an epoch that is touched.
int64_t largest_choice(const TokenStore& store, int64_t n) {
  const auto lengths = sorted_lengths(store);
  const int64_t epochs = n == 1 ? 1 : (n - 2) / store.rows() + 2;
  int64_t sum = 0;
  for (auto length = lengths.rbegin(); length != lengths.rend() && n > 0; ++length) {
    const int64_t times = std::min(n, epochs);
    sum += *length * times;
    n -= times;
  }
  return sum;
}

}  // namespace

Sampler::Sampler(const TokenStore& store, const SamplerOptions& options)
    : store_(store), options_(options) {
  check_options(store, options);
}

const EpochPlan& Sampler::plan(int64_t epoch) const {
  if (planned_epoch_ != epoch) {
    plan_ = plan_epoch(store_, options_, epoch);
    planned_epoch_ = epoch;
  }
  return plan_;
}

std::vector<MicroBatch> Sampler::next_step() {
  std::vector<MicroBatch> step(options_.grad_accum);
  for (auto& batch : step) {
    for (int64_t i = 0; i < options_.micro_batch; ++i) {
      const EpochPlan& current = plan(cursor_.epoch);
      add_sequence(store_, current.sequence(cursor_.sequence), batch);
      if (++cursor_.sequence == current.sequences()) cursor_ = {cursor_.epoch + 1, 0};
    }
  }
  return step;
}

void Sampler::seek(SamplerCursor cursor) {
  if (cursor.epoch < 0 || cursor.epoch > std::numeric_limits<uint32_t>::max() ||
      cursor.sequence < 0 || cursor.sequence >= sequences_in_epoch(cursor.epoch)) {
    throw input_error("saved position in the data (epoch " + std::to_string(cursor.epoch) +
                      ", sequence " + std::to_string(cursor.sequence) +
                      ") does not exist in this data");
  }
  cursor_ = cursor;
}

int64_t Sampler::sequences_in_epoch(int64_t epoch) const {
  if (!options_.packing) return store_.rows();
  if (!options_.shuffle) return plan(0).sequences();
  if (epoch == planned_epoch_) return plan_.sequences();
  return plan_epoch(store_, options_, epoch).sequences();
}

int64_t Sampler::steps_for_epochs(double epochs) const {
  HEARTH_CHECK(epochs > 0 && epochs < 1e9, "a number of epochs");
  const auto whole = static_cast<int64_t>(epochs);
  const double rest = epochs - static_cast<double>(whole);
  int64_t sequences = 0;
  if (!options_.packing || !options_.shuffle) {  // every epoch alike
    sequences = whole * sequences_in_epoch(0);
  } else {
    for (int64_t epoch = 0; epoch < whole; ++epoch) sequences += sequences_in_epoch(epoch);
  }
  if (rest > 0) {
    sequences +=
        static_cast<int64_t>(std::ceil(rest * static_cast<double>(sequences_in_epoch(whole))));
  }
  return (sequences + sequences_per_step() - 1) / sequences_per_step();
}

int64_t Sampler::max_tokens_per_micro_batch() const {
  if (options_.packing) return options_.micro_batch * std::min(options_.seq_len, store_.tokens());
  return options_.shuffle ? largest_choice(store_, options_.micro_batch)
                          : largest_run(store_, options_.micro_batch);
}

int64_t Sampler::max_documents_per_micro_batch() const {
  if (!options_.packing) return options_.micro_batch;
  int64_t documents = 0;
  int64_t tokens = 0;
  for (const int64_t length : sorted_lengths(store_)) {
    if ((tokens += length) > options_.seq_len) break;
    ++documents;
  }
  return options_.micro_batch * documents;
}

EvalBatches::EvalBatches(const TokenStore& store, const SamplerOptions& options)
    : store_(store), micro_batch_(options.micro_batch) {
  check_options(store, options);
  SamplerOptions in_order = options;
  in_order.shuffle = false;
  plan_ = plan_epoch(store, in_order, 0);
}

std::optional<MicroBatch> EvalBatches::next() {
  if (next_sequence_ == plan_.sequences()) return std::nullopt;
  MicroBatch batch;
  const int64_t end = std::min(next_sequence_ + micro_batch_, plan_.sequences());
  while (next_sequence_ < end) add_sequence(store_, plan_.sequence(next_sequence_++), batch);
  return batch;
}

int64_t EvalBatches::micro_batches() const {
  return (plan_.sequences() + micro_batch_ - 1) / micro_batch_;
}

int64_t EvalBatches::max_tokens_per_micro_batch() const {
  int64_t most = 0;
  for (int64_t first = 0; first < plan_.sequences(); first += micro_batch_) {
    const int64_t end = plan_.offsets[std::min(first + micro_batch_, plan_.sequences())];
    int64_t tokens = 0;
    for (int64_t i = plan_.offsets[first]; i < end; ++i) tokens += store_.length(plan_.rows[i]);
    most = std::max(most, tokens);
  }
  return most;
}

int64_t EvalBatches::max_documents_per_micro_batch() const {
  int64_t most = 0;
  for (int64_t first = 0; first < plan_.sequences(); first += micro_batch_) {
    const int64_t end = std::min(first + micro_batch_, plan_.sequences());
    most = std::max(most, plan_.offsets[end] - plan_.offsets[first]);
  }
  return most;
}

}  // namespace hearth
