// Raw rows to samples: fields, template, tokenizer and mask.
#pragma once

#include <exception>
#include <memory>

#include "base/error.h"
#include "data/rows/raw_rows.h"
#include "data/rows/rows.h"

namespace hearth {

/// What is wrong with one row, which --skip-bad-rows may pass over: an input error that begins with
/// FILE:LINE. Errors of the model's files are none of these.
class BadRow : public Error {
 public:
  explicit BadRow(const std::string& message) : Error(ExitCode::input, message) {}
};

/// A sample, or why there is none: what a pool of threads hands back for a row.
struct ConvertedRow {
  Sample sample;
  std::exception_ptr error;
};

/// Threads may share one. The tokenizer's files and the template are read once, when the first row
/// needs them: input_ids rows need neither.
class RowConverter {
 public:
  /// Of the options, seq_len, overflow and skip_bad_rows are RowIntake's and do not count here.
  explicit RowConverter(RowOptions options);
  ~RowConverter();

  /// Throws BadRow, or the input error of a file of the model.
  ///
  /// Chats and texts without a trained token are refused (judged before a row is cut); input_ids
  /// rows are not.
  Sample convert(const RawRow& row) const;
  /// The same with the error in the result.
  ConvertedRow try_convert(const RawRow& row) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth
