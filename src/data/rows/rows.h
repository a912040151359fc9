// Reads data files as samples: ids and labels of JSON rows or plain text files.
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

/// Treatment of a row longer than seq_len: cut its end, drop it, or throw an input error.
enum class Overflow { truncate, drop, error };

struct RowOptions {
  std::string model;  // directory of the tokenizer files; input_ids rows do not need it
  RowFormat format = RowFormat::automatic;
  TrainOn train_on = TrainOn::automatic;   // for chats; every token of a text is trained
  bool follow_links = false;               // in the model directory
  std::string chat_template;               // TemplateOptions::choice
  std::string template_date;               // TemplateOptions::date
  std::string adapter;                     // TemplateOptions::adapter
  std::vector<std::string> template_args;  // TemplateOptions::args
  bool no_special_in_content = false;      // read special tokens in messages as text
  std::vector<std::string> columns = {};   // FIELD=COLUMN: members of rows that are read as fields
  int64_t max_samples = 0;                 // of each file, the first rows; 0: all
  int64_t skip_bad_rows = 0;               // how many bad rows may be skipped, each with a warning
  int64_t seq_len = 0;                     // 0: any length
  Overflow overflow = Overflow::truncate;
  int64_t vocabulary = 0;  // rows of the embedding, upper bound of ids; 0: do not check
};

/// One row, ready for training.
struct Sample {
  std::string file;
  int64_t line = 0;  // from 1; 1 for a plain text file
  std::string text;  // the text that was encoded; empty for input_ids rows
  std::vector<int32_t> ids;
  std::vector<int32_t> labels;  // of the ids (not shifted); kIgnoredLabel: not trained
  bool encoded = false;         // from a text or a chat; false for an input_ids row
  std::vector<TextSpan> spans;  // of text, one per id; empty for input_ids rows, an added end token
                                // has an empty span at the end
  /// Per id: whether this token is a trained target. The first token never is.
  std::vector<uint8_t> trained() const;
};

struct RowTotals {
  int64_t rows = 0;  // returned
  int64_t tokens = 0;
  int64_t trained_tokens = 0;
  int64_t truncated = 0;         // rows cut
  int64_t truncated_tokens = 0;  // ids cut off from them
  int64_t dropped = 0;           // rows that --overflow drops
  int64_t untrained = 0;         // rows returned without a trained token
  int64_t bad = 0;               // rows skipped (skip_bad_rows)

  /// Counts a row of `whole` ids: `given` ids are returned, `trained` of these are targets.
  void count(int64_t whole, int64_t given, int64_t trained);
};

/// RawRowSource, RowConverter and RowIntake in sequence, in one thread. Errors name FILE:LINE and
/// the field.
class RowReader {
 public:
  RowReader(std::vector<std::string> files, const RowOptions& options);
  ~RowReader();

  bool next(Sample& sample);  // false at the end
  const RowTotals& totals() const;
  /// Path and XXH3 digest of each file that was read to its end.
  const std::vector<std::pair<std::string, Digest>>& digests() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth
