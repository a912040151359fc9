// Converts raw rows to samples: fields, template, tokenizer and mask.
#pragma once

#include <exception>
#include <memory>

#include "base/error.h"
#include "data/rows/raw_rows.h"
#include "data/rows/rows.h"

namespace hearth {

/// An error of one row, which --skip-bad-rows may skip: an input error that starts with FILE:LINE.
/// Errors of the model's files are plain input errors.
class BadRow : public Error {
 public:
  explicit BadRow(const std::string& message) : Error(ExitCode::input, message) {}
};

/// Runs work on one row, whose input errors name FILE:LINE, and throws them as BadRow.
template <class F>
auto of_placed_row(const F& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.code() != ExitCode::input) throw;
    throw BadRow(error.what());
  }
}

/// A sample, or the error of its row. Worker threads return this.
struct ConvertedRow {
  Sample sample;
  std::exception_ptr error;
};

/// Thread-safe. Reads the tokenizer's files and the template once, when a row first needs them;
/// input_ids rows need neither.
class RowConverter {
 public:
  /// Ignores seq_len, overflow and skip_bad_rows; RowIntake applies them.
  explicit RowConverter(RowOptions options);
  ~RowConverter();

  /// Throws BadRow, or an input error for a file of the model. A chat or text without a trained
  /// token is a BadRow; this is checked before a row is cut. An input_ids row may have none.
  Sample convert(const RawRow& row) const;
  /// Like `convert`, but returns the error.
  ConvertedRow try_convert(const RawRow& row) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth
