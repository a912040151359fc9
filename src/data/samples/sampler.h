// Cuts rows into steps: order of an epoch, packing, micro-batches. All is a pure function of (rows,
// options, epoch). The only state, saved with the run, is a cursor of two numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/samples/epoch_plan.h"
#include "data/samples/row_set.h"

namespace hearth {

/// One micro-batch: the documents of its sequences, end to end, without padding.
struct MicroBatch {
  std::vector<int32_t> ids;  // [tokens]
  /// [tokens], shifted: the target at position t is the label of position t + 1 of the same
  /// document. Ignored (-100) at a document's last position.
  std::vector<int32_t> labels;
  std::vector<int32_t> positions;  // [tokens], from 0 in every document
  /// [documents + 1] token offset of each document (first 0, last `tokens`). Attention never
  /// crosses documents.
  std::vector<int32_t> offsets;
  int64_t tokens = 0;
  int64_t trained_tokens = 0;  // labels that are not ignored
  int64_t sequences = 0;
};

/// Where the next step starts. `sequence` counts from 0 in each epoch.
struct SamplerCursor {
  int64_t epoch = 0;
  int64_t sequence = 0;
  friend bool operator==(const SamplerCursor&, const SamplerCursor&) = default;
};

/// Makes training steps. The rows must outlive the sampler. Needs at least one row, and none longer
/// than seq_len.
class Sampler {
 public:
  Sampler(const RowSet& rows, const SamplerOptions& options);

  /// The grad_accum micro-batches of the next step, each of micro_batch sequences. A step or
  /// micro-batch may span two epochs.
  std::vector<MicroBatch> next_step();

  SamplerCursor cursor() const { return cursor_; }
  /// Passes over the data up to the cursor, fractions included.
  double epochs() const;
  /// Whether the step before the cursor was the last of an epoch.
  bool ended_epoch() const { return cursor_.epoch > 0 && cursor_.sequence < sequences_per_step(); }
  /// Moves to a cursor of the same rows and options, for a resume. Input error if it is out of
  /// range.
  void seek(SamplerCursor cursor);

  int64_t sequences_per_step() const { return options_.micro_batch * options_.grad_accum; }
  int64_t sequences_in_epoch(int64_t epoch) const;
  /// Steps of `--epochs`: sequences of the epochs / sequences per step, rounded up. A fraction of
  /// an epoch is that fraction of its sequences.
  int64_t steps_for_epochs(double epochs) const;

  /// Upper bounds over all micro-batches of all epochs, from the lengths of the rows. They size
  /// buffers.
  int64_t max_tokens_per_micro_batch() const;
  int64_t max_documents_per_micro_batch() const;
  /// Bytes that an epoch's order takes in memory.
  int64_t bytes() const { return plan_.bytes(); }

 private:
  const EpochPlan& plan(int64_t epoch) const;

  const RowSet& rows_;
  SamplerOptions options_;
  SamplerCursor cursor_;
  mutable EpochPlan plan_;  // of planned_epoch_; a cache
  mutable int64_t planned_epoch_ = -1;
};

/// One pass in file order, for evaluation. The last micro-batch may hold fewer sequences.
class EvalBatches {
 public:
  /// Uses seq_len, micro_batch and packing of the options; needs the same as Sampler.
  EvalBatches(const RowSet& rows, const SamplerOptions& options);

  std::optional<MicroBatch> next();  // nullopt after the last one
  void restart() { next_sequence_ = 0; }
  int64_t micro_batches() const;
  int64_t max_tokens_per_micro_batch() const;
  int64_t max_documents_per_micro_batch() const;
  int64_t bytes() const { return plan_.bytes(); }

 private:
  template <class F>
  int64_t most_in_a_micro_batch(const F& of_row) const;

  const RowSet& rows_;
  int64_t micro_batch_;
  EpochPlan plan_;
  int64_t next_sequence_ = 0;
};

}  // namespace hearth
