#include "data/rows/rows.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "base/file_ops.h"
#include "base/log.h"
#include "base/utf8.h"
#include "data/rows/line_reader.h"
#include "data/rows/row_fields.h"

namespace hearth {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

std::string extension_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos || path.find('/', dot) != std::string::npos) return "";
  std::string extension = path.substr(dot);
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

void refuse_weight(const std::string& path) {
  const size_t colon = path.rfind(':');
  if (colon == std::string::npos || colon + 1 == path.size()) return;
  char* end = nullptr;
  std::strtod(path.c_str() + colon + 1, &end);
  if (*end == '\0' && file_info(path.substr(0, colon)).kind != FileKind::none) {
    throw usage_error("--data " + quoted(path) + ": weights of data files are not in this version");
  }
}

// Made out before the first row is read, so that a long list fails at once.
void check_file(const std::string& path) {
  if (path == "-") return;
  const std::string extension = extension_of(path);
  if (extension == ".json") {
    throw input_error(path +
                      ": .json arrays are not read by this version; write one object a line "
                      "(jq -c '.[]' FILE > rows.jsonl)");
  }
  if (file_info(path).kind == FileKind::none) refuse_weight(path);
  const LineReader opened(path);
  if (extension == ".gz" || extension == ".zst" || extension == ".parquet" ||
      extension == ".arrow") {
    throw input_error(path + ": " + extension +
                      " files are not read by this version; this needs "
                      "JSON Lines, one object a line, unpacked");
  }
}

// Trains every token that covers a part of a trained span. Both lists are in order.
std::vector<int32_t> masked_labels(const Encoding& encoding, const std::vector<TextSpan>& trained) {
  std::vector<int32_t> labels(encoding.ids.size(), kIgnoredLabel);
  auto span = trained.begin();
  for (size_t i = 0; i < labels.size(); ++i) {
    const TextSpan token = encoding.spans[i];
    while (span != trained.end() && span->end <= token.begin) ++span;
    if (span != trained.end() && token.end > span->begin) labels[i] = encoding.ids[i];
  }
  return labels;
}

}  // namespace

std::vector<uint8_t> Sample::trained() const {
  std::vector<uint8_t> flags(labels.size());
  for (size_t i = 1; i < labels.size(); ++i) flags[i] = labels[i] != kIgnoredLabel;
  return flags;
}

struct RowReader::State {
  std::vector<std::string> files;
  RowOptions options;
  size_t next_file = 0;
  std::optional<LineReader> reader;
  std::optional<Tokenizer> loaded;
  bool template_checked = false;
  RowTotals totals;
  std::vector<std::pair<std::string, Digest>> digests;

  // The tokenizer files are read when the first row needs them.
  const Tokenizer& tokenizer() {
    if (!loaded) loaded.emplace(options.model, options.follow_links);
    return *loaded;
  }

  bool read(Sample& sample);
  bool read_line(Sample& sample);
  void read_document(Sample& sample);
  void fill(const Json& row, Sample& sample);
  void fill_text(const std::string& text, Sample& sample);
  void fill_chat(const std::vector<Message>& messages, Sample& sample);
  void set_encoding(Encoding encoding, Sample& sample);
  bool fit(Sample& sample);
  std::string where() const { return reader->where(); }
};

// A row as it stands in the files; false behind the last one.
bool RowReader::State::read(Sample& sample) {
  while (true) {
    if (!reader) {
      if (next_file == files.size()) return false;
      reader.emplace(files[next_file]);
    }
    bool found = false;
    const bool document = extension_of(files[next_file]) == ".txt";
    if (document) {
      read_document(sample);
      found = true;
    } else {
      found = read_line(sample);
    }
    if (document || !found) {
      digests.emplace_back(files[next_file], reader->digest());
      reader.reset();
      ++next_file;
    }
    if (found) return true;
  }
}

bool RowReader::State::read_line(Sample& sample) {
  while (auto line = reader->next()) {
    if (reader->number() == 1 && line->starts_with(kByteOrderMark)) {
      line->remove_prefix(kByteOrderMark.size());
    }
    if (line->find_first_not_of(" \t\r") == std::string_view::npos) continue;
    sample = {};
    sample.file = reader->name();
    sample.line = reader->number();
    try {
      fill(parse_json(*line, where()), sample);
      return true;
    } catch (const Error& e) {
      // Only what is wrong with this row is tolerated: its message begins with the place.
      const bool of_row = std::string_view(e.what()).starts_with(where() + ":");
      if (!of_row || totals.bad >= options.skip_bad_rows) throw;
      ++totals.bad;
      log_warning("bad row passed over: " + std::string(e.what()));
    }
  }
  return false;
}

void RowReader::State::read_document(Sample& sample) {
  std::string_view text = reader->rest();
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const size_t bad = std::min(find_invalid_utf8(text), text.find('\0'));
  if (bad != std::string_view::npos) {
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(bad), '\n');
    throw input_error(reader->name() + ":" + std::to_string(line) + ": " +
                      (text[bad] == '\0' ? "a NUL byte" : "invalid UTF-8"));
  }
  sample = {};
  sample.file = reader->name();
  sample.line = 1;
  fill_text(std::string(text), sample);
}

void RowReader::State::fill(const Json& row, Sample& sample) {
  RowFormat format = options.format;
  if (format == RowFormat::automatic || !row.is_object()) format = detect_format(row, where());
  switch (format) {
    case RowFormat::text: fill_text(read_text(row, where()), sample); break;
    case RowFormat::messages: fill_chat(parse_messages(row, where()), sample); break;
    default: read_tokens(row, options.vocabulary, where(), sample.ids, sample.labels); break;
  }
}

void RowReader::State::set_encoding(Encoding encoding, Sample& sample) {
  for (const int32_t id : encoding.ids) {
    if (options.vocabulary > 0 && id >= options.vocabulary) {
      throw input_error(where() + ": the tokenizer gives the id " + std::to_string(id) +
                        ", but the model has a vocabulary of " +
                        std::to_string(options.vocabulary));
    }
  }
  sample.ids = std::move(encoding.ids);
  sample.spans = std::move(encoding.spans);
  if (count_trained(sample.labels) == 0) {
    throw input_error(where() + ": no token of this row is trained");
  }
}

void RowReader::State::fill_text(const std::string& text, Sample& sample) {
  const Tokenizer& with = tokenizer();
  Encoding encoding = with.encode(text);
  if (!text.ends_with(with.end_token())) {
    const auto end = static_cast<uint32_t>(text.size());
    encoding.ids.push_back(with.end_id());
    encoding.spans.push_back({end, end});
  }
  sample.text = text;
  sample.labels = encoding.ids;
  set_encoding(std::move(encoding), sample);
}

void RowReader::State::fill_chat(const std::vector<Message>& messages, Sample& sample) {
  if (!template_checked) {
    require_chatml(options.model, options.chat_template, options.follow_links);
    template_checked = true;
  }
  if (std::none_of(messages.begin(), messages.end(),
                   [](const Message& message) { return message.role == "assistant"; })) {
    throw input_error(where() + ": messages: no turn of the assistant");
  }
  RenderedChat chat = render_chatml(messages, options.train_on);
  Encoding encoding = tokenizer().encode(chat.text);
  sample.text = std::move(chat.text);
  sample.labels = masked_labels(encoding, chat.trained);
  set_encoding(std::move(encoding), sample);
}

// Applies seq_len; false when the row is left out.
bool RowReader::State::fit(Sample& sample) {
  const auto length = static_cast<int64_t>(sample.ids.size());
  if (options.seq_len == 0 || length <= options.seq_len) return true;
  switch (options.overflow) {
    case Overflow::error:
      throw input_error(sample.file + ":" + std::to_string(sample.line) + ": " +
                        std::to_string(length) + " ids, more than --seq-len " +
                        std::to_string(options.seq_len));
    case Overflow::drop: ++totals.dropped; return false;
    case Overflow::truncate: break;
  }
  ++totals.truncated;
  totals.truncated_tokens += length - options.seq_len;
  sample.ids.resize(options.seq_len);
  sample.labels.resize(options.seq_len);
  if (!sample.spans.empty()) sample.spans.resize(options.seq_len);
  return true;
}

RowReader::RowReader(std::vector<std::string> files, RowOptions options)
    : state_(std::make_unique<State>()) {
  if (std::count(files.begin(), files.end(), "-") > 1) {
    throw usage_error("standard input (-) can be read once only");
  }
  for (const std::string& file : files) check_file(file);
  state_->files = std::move(files);
  state_->options = std::move(options);
}

RowReader::~RowReader() = default;

bool RowReader::next(Sample& sample) {
  do {
    if (!state_->read(sample)) return false;
  } while (!state_->fit(sample));
  RowTotals& totals = state_->totals;
  const int64_t trained = count_trained(sample.labels);
  ++totals.rows;
  totals.tokens += static_cast<int64_t>(sample.ids.size());
  totals.trained_tokens += trained;
  totals.untrained += trained == 0 ? 1 : 0;
  return true;
}

const RowTotals& RowReader::totals() const { return state_->totals; }

const std::vector<std::pair<std::string, Digest>>& RowReader::digests() const {
  return state_->digests;
}

RowData read_rows(const std::vector<std::string>& files, const RowOptions& options) {
  RowReader reader(files, options);
  RowData data;
  Sample sample;
  while (reader.next(sample)) data.store.add(sample.ids, sample.labels);
  data.totals = reader.totals();
  data.digests = reader.digests();
  const std::string what =
      files.size() == 1 ? files[0] : std::to_string(files.size()) + " data files";
  if (data.totals.rows == 0) {
    throw input_error(what + ": no rows" +
                      (data.totals.dropped > 0 ? " (all " + std::to_string(data.totals.dropped) +
                                                     " are longer than --seq-len and were dropped)"
                                               : ""));
  }
  if (data.totals.trained_tokens == 0) throw input_error(what + ": no trained token in any row");
  return data;
}

}  // namespace hearth
