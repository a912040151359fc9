#include "data/samples/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/error_format.h"
#include "base/setting.h"

namespace hearth {
namespace {

// Appends a document; labels move one place to the front.
void add_document(const RowSet& rows, int64_t row, MicroBatch& batch) {
  const size_t begin = batch.labels.size();
  rows.read(row, batch.ids, batch.labels);
  std::move(batch.labels.begin() + static_cast<ptrdiff_t>(begin) + 1, batch.labels.end(),
            batch.labels.begin() + static_cast<ptrdiff_t>(begin));
  batch.labels.back() = kIgnoredLabel;
  const auto length = static_cast<int32_t>(batch.labels.size() - begin);
  for (int32_t i = 0; i < length; ++i) batch.positions.push_back(i);
  batch.tokens += length;
  batch.offsets.push_back(static_cast<int32_t>(batch.tokens));
  batch.trained_tokens += rows.trained(row);
}

void add_sequence(const RowSet& rows, std::span<const uint32_t> sequence, MicroBatch& batch) {
  if (batch.offsets.empty()) batch.offsets.push_back(0);
  for (const uint32_t row : sequence) add_document(rows, row, batch);
  ++batch.sequences;
}

void check_options(const RowSet& rows, const SamplerOptions& options) {
  HEARTH_CHECK(options.seq_len > 0 && options.micro_batch > 0 && options.grad_accum > 0,
               "sampler options above 0");
  HEARTH_CHECK(rows.rows() > 0 && rows.longest() <= options.seq_len,
               "rows, none longer than seq_len");
  if (options.micro_batch > std::numeric_limits<int32_t>::max() / options.seq_len) {
    throw usage_error("{} of {}: more than 2^31 tokens in a micro-batch; raise {} instead",
                      spelled(Setting::micro_batch, std::to_string(options.micro_batch)),
                      spelled(Setting::seq_len, std::to_string(options.seq_len)),
                      spelled(Setting::grad_accum));
  }
}

/// How many rows have each length, copies of an epoch counted.
std::vector<int64_t> count_lengths(const RowSet& rows) {
  std::vector<int64_t> counts(static_cast<size_t>(rows.longest()) + 1);
  for (int64_t row = 0; row < rows.rows(); ++row) {
    counts[rows.length(row)] += rows.most_copies(row);
  }
  return counts;
}

// Rows of an epoch in file order, over and over: the largest sum of n neighbours.
int64_t largest_run(const RowSet& set, int64_t n) {
  const std::vector<uint32_t> rows = set.epoch_rows(0, 0);
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t part = n % count;
  int64_t sum = 0, all = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t length = set.length(rows[i]);
    all += length;
    if (i < part) sum += length;
  }
  int64_t largest = sum;
  for (int64_t i = 0; i < count; ++i) {
    sum += set.length(rows[(i + part) % count]) - set.length(rows[i]);
    largest = std::max(largest, sum);
  }
  return n / count * all + largest;
}

// Any order in each epoch: the n longest, where a row comes again once an epoch that is touched; so
// many epochs have n sequences or more.
int64_t largest_choice(const RowSet& rows, int64_t n) {
  const auto counts = count_lengths(rows);
  const int64_t epochs = n == 1 ? 1 : (n - 2) / rows.rows_in_epoch() + 2;
  int64_t sum = 0;
  for (size_t length = counts.size() - 1; n > 0; --length) {
    const int64_t times = std::min(n, counts[length] * epochs);
    sum += static_cast<int64_t>(length) * times;
    n -= times;
  }
  return sum;
}

}  // namespace

Sampler::Sampler(const RowSet& rows, const SamplerOptions& options)
    : rows_(rows), options_(options) {
  check_options(rows, options);
  plan(0);
}

const EpochPlan& Sampler::plan(int64_t epoch) const {
  if (planned_epoch_ != epoch) {
    plan_ = {};  // two at once would take twice the memory
    plan_ = plan_epoch(rows_, options_, epoch);
    planned_epoch_ = epoch;
  }
  return plan_;
}

std::vector<MicroBatch> Sampler::next_step() {
  std::vector<MicroBatch> step(options_.grad_accum);
  for (auto& batch : step) {
    for (int64_t i = 0; i < options_.micro_batch; ++i) {
      const EpochPlan& current = plan(cursor_.epoch);
      add_sequence(rows_, current.sequence(cursor_.sequence), batch);
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

double Sampler::epochs() const {
  const auto part = static_cast<double>(cursor_.sequence);
  return static_cast<double>(cursor_.epoch) +
         part / static_cast<double>(sequences_in_epoch(cursor_.epoch));
}

int64_t Sampler::sequences_in_epoch(int64_t epoch) const {
  if (!options_.packing) return rows_.rows_in_epoch();
  return plan(!options_.shuffle && rows_.epochs_alike() ? 0 : epoch).sequences();
}

int64_t Sampler::steps_for_epochs(double epochs) const {
  HEARTH_CHECK(epochs > 0 && epochs < 1e9, "a number of epochs");
  const auto whole = static_cast<int64_t>(epochs);
  const double rest = epochs - static_cast<double>(whole);
  int64_t sequences = 0;
  if (!options_.packing || (!options_.shuffle && rows_.epochs_alike())) {
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
  if (options_.packing) {
    int64_t tokens = 0;  // of an epoch at most
    for (int64_t row = 0; row < rows_.rows() && tokens < options_.seq_len; ++row) {
      tokens += rows_.length(row) * rows_.most_copies(row);
    }
    return options_.micro_batch * std::min(options_.seq_len, tokens);
  }
  return options_.shuffle || !rows_.epochs_alike() ? largest_choice(rows_, options_.micro_batch)
                                                   : largest_run(rows_, options_.micro_batch);
}

int64_t Sampler::max_documents_per_micro_batch() const {
  if (!options_.packing) return options_.micro_batch;
  int64_t documents = 0, left = options_.seq_len;
  const auto counts = count_lengths(rows_);
  for (size_t length = 1; length < counts.size(); ++length) {
    const auto each = static_cast<int64_t>(length);
    const int64_t times = std::min(counts[length], left / each);
    documents += times;
    left -= times * each;
  }
  return options_.micro_batch * documents;
}

EvalBatches::EvalBatches(const RowSet& rows, const SamplerOptions& options)
    : rows_(rows), micro_batch_(options.micro_batch) {
  check_options(rows, options);
  SamplerOptions in_order = options;
  in_order.shuffle = false;
  plan_ = plan_epoch(rows, in_order, 0);
}

std::optional<MicroBatch> EvalBatches::next() {
  if (next_sequence_ == plan_.sequences()) return std::nullopt;
  MicroBatch batch;
  const int64_t end = std::min(next_sequence_ + micro_batch_, plan_.sequences());
  while (next_sequence_ < end) add_sequence(rows_, plan_.sequence(next_sequence_++), batch);
  return batch;
}

int64_t EvalBatches::micro_batches() const {
  return (plan_.sequences() + micro_batch_ - 1) / micro_batch_;
}

int64_t EvalBatches::max_tokens_per_micro_batch() const {
  return most_in_a_micro_batch([this](uint32_t row) { return rows_.length(row); });
}

int64_t EvalBatches::max_documents_per_micro_batch() const {
  return most_in_a_micro_batch([](uint32_t) { return int64_t{1}; });
}

template <class F>
int64_t EvalBatches::most_in_a_micro_batch(const F& of_row) const {
  int64_t most = 0;
  for (int64_t first = 0; first < plan_.sequences(); first += micro_batch_) {
    const int64_t end = std::min(first + micro_batch_, plan_.sequences());
    int64_t sum = 0;
    for (int64_t i = first; i < end; ++i) {
      for (const uint32_t row : plan_.sequence(i)) sum += of_row(row);
    }
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace hearth
