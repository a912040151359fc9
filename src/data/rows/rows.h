// Data files to samples: rows of JSON Lines, or plain text files, as ids and labels.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "data/chat/mask.h"
#include "data/samples/row_words.h"

namespace hearth {

enum class RowFormat { automatic, text, messages, completion, alpaca, sharegpt, tokens };

/// What happens to a row longer than seq_len: cut at the end, left out, or an input error.
enum class Overflow { truncate, drop, error };

struct RowOptions {
  std::string model;  // directory of the tokenizer files; not touched by input_ids rows
  RowFormat format = RowFormat::automatic;
  TrainOn train_on = TrainOn::automatic;  // of chats and completions; text is trained as a whole
  bool follow_links = false;              // of the model directory
  std::string chat_template;              // TemplateOptions::choice
  std::string template_date;              // TemplateOptions::date
  std::string adapter;                    // TemplateOptions::adapter
  bool no_special_in_content = false;     // special tokens typed in messages are read as text
  int64_t skip_bad_rows = 0;              // so many bad rows are passed over, each with a warning
  int64_t seq_len = 0;                    // 0: any length
  Overflow overflow = Overflow::truncate;
  int64_t vocabulary = 0;  // rows of the embedding: ids are below; 0: not known, not checked
};

/// One row, ready for training.
struct Sample {
  std::string file;
  int64_t line = 0;  // from 1; 1 for a plain text file
  std::string text;  // exactly what was encoded; empty for input_ids rows
  std::vector<int32_t> ids;
  std::vector<int32_t> labels;  // beside their ids (not shifted); kIgnoredLabel where not trained
  bool encoded = false;         // here, from a text or a chat; not an input_ids row
  std::vector<TextSpan> spans;  // of text, one an id; empty for input_ids rows, an added end token
                                // has an empty span at the end
  /// One entry an id: this token is a target that counts (never the first).
  std::vector<uint8_t> trained() const;
};

struct RowTotals {
  int64_t rows = 0;  // given out
  int64_t tokens = 0;
  int64_t trained_tokens = 0;
  int64_t truncated = 0;         // rows cut
  int64_t truncated_tokens = 0;  // ids cut off them
  int64_t dropped = 0;           // rows left out
  int64_t untrained = 0;         // rows given out without a trained token
  int64_t bad = 0;               // rows passed over (skip_bad_rows)

  /// Counts a row of `whole` ids of which `given` are given out, `trained` of these as targets.
  void count(int64_t whole, int64_t given, int64_t trained);
};

/// The simple way: RawRowSource, RowConverter and RowIntake one after the other, in one thread.
/// Errors name FILE:LINE and the field.
class RowReader {
 public:
  RowReader(std::vector<std::string> files, const RowOptions& options);
  ~RowReader();

  bool next(Sample& sample);  // false at the end
  const RowTotals& totals() const;
  /// Path and XXH3 of the bytes of the files read to their end so far.
  const std::vector<std::pair<std::string, Digest>>& digests() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth
