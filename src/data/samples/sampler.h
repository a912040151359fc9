// From rows to steps: the order of an epoch, packing, and micro-batches. All of it is a pure
// function of (rows, options, epoch); what moves is a cursor of two numbers, the only saved state.
// It knows nothing of threads or ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/samples/epoch_plan.h"
#include "data/samples/row_set.h"

namespace hearth {

/// One micro-batch: its sequences, and in them the documents, laid end to end. No padding.
struct MicroBatch {
  std::vector<int32_t> ids;  // [tokens]
  /// [tokens], already shifted: the target of position t is the label of position t + 1 of the same
  /// document, ignored (-100) at a document's last position.
  std::vector<int32_t> labels;
  std::vector<int32_t> positions;  // [tokens], from 0 in every document
  /// [documents + 1] token offsets of the documents (cumulative lengths; first 0, last `tokens`).
  /// Attention never crosses them.
  std::vector<int32_t> offsets;
  int64_t tokens = 0;
  int64_t trained_tokens = 0;  // labels that are not ignored
  int64_t sequences = 0;
};

/// Where the next step starts. Sequences of an epoch are numbered from 0.
struct SamplerCursor {
  int64_t epoch = 0;
  int64_t sequence = 0;
  friend bool operator==(const SamplerCursor&, const SamplerCursor&) = default;
};

/// Steps for training. The rows must outlive the sampler: at least one, none longer than seq_len.
class Sampler {
 public:
  Sampler(const RowSet& rows, const SamplerOptions& options);

  /// The grad_accum micro-batches of the next step, each of micro_batch sequences. Epochs follow one
  /// another without a gap, inside a micro-batch as well.
  std::vector<MicroBatch> next_step();

  SamplerCursor cursor() const { return cursor_; }
  /// Goes to a cursor of the same rows and options (a resume). Input error if it is out of range.
  void seek(SamplerCursor cursor);

  int64_t sequences_per_step() const { return options_.micro_batch * options_.grad_accum; }
  int64_t sequences_in_epoch(int64_t epoch) const;
  /// Steps of `--epochs`: sequences of the epochs over sequences per step, rounded up. A fraction
  /// of an epoch counts as that fraction of its sequences.
  int64_t steps_for_epochs(double epochs) const;

  /// Bounds over all micro-batches of all epochs, from the lengths of the rows: what buffers are
  /// sized by.
  int64_t max_tokens_per_micro_batch() const;
  int64_t max_documents_per_micro_batch() const;
  /// Bytes that an epoch's order takes in memory.
  int64_t bytes() const { return plan_.bytes(); }

 private:
  const EpochPlan& plan(int64_t epoch) const;

  const RowSet& rows_;
  SamplerOptions options_;
  SamplerCursor cursor_;
  mutable EpochPlan plan_;  // of planned_epoch_; recomputed at will
  mutable int64_t planned_epoch_ = -1;
};

/// One pass in file order, for evaluation. The last micro-batch may hold fewer sequences.
class EvalBatches {
 public:
  /// Takes seq_len, micro_batch and packing from the options; same conditions as Sampler.
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
