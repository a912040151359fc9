#include "data/rows/row_converter.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "base/json_at.h"
#include "base/utf8.h"
#include "data/rows/row_fields.h"

namespace hearth {
namespace {

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

// What works on this row alone: its errors get the place and are the row's.
template <class F>
auto of_row(const std::string& where, const F& work) {
  try {
    return work();
  } catch (const BadRow&) {
    throw;
  } catch (const Error& error) {
    if (error.code() != ExitCode::input) throw;
    throw BadRow(where + ": " + error.what());
  }
}

// The same for work that names the place itself.
template <class F>
auto of_placed_row(const F& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.code() != ExitCode::input) throw;
    throw BadRow(error.what());
  }
}

Json parse_row(const RawRow& row) {
  try {
    return parse_json_at(row.text, row.file, row.line);
  } catch (const Error& error) {
    throw BadRow(error.what());
  }
}

void check_document(const RawRow& row) {
  const std::string_view text = row.text;
  const size_t bad = std::min(find_invalid_utf8(text), text.find('\0'));
  if (bad == std::string_view::npos) return;
  const auto line =
      row.line + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(bad), '\n');
  throw BadRow(row.file + ":" + std::to_string(line) + ": " +
               (text[bad] == '\0' ? "a NUL byte" : "invalid UTF-8"));
}

}  // namespace

struct RowConverter::State {
  RowOptions options;
  // A failed reading is tried again by the next row that needs it.
  mutable std::once_flag tokenizer_read, template_read;
  mutable std::optional<Tokenizer> loaded;
  mutable std::optional<ChatTemplate> chat_template;

  const Tokenizer& tokenizer() const {
    std::call_once(tokenizer_read, [&] { loaded.emplace(options.model, options.follow_links); });
    return *loaded;
  }
  const ChatTemplate& template_of_chats() const {
    std::call_once(template_read, [&] {
      chat_template.emplace(TemplateOptions{options.model, options.chat_template,
                                            options.template_date, options.follow_links});
    });
    return *chat_template;
  }

  void fill(const Json& row, const std::string& where, Sample& sample) const;
  void fill_text(const std::string& text, const std::string& where, Sample& sample) const;
  void fill_chat(const Json& row, const std::string& where, Sample& sample) const;
  void set_encoding(Encoding encoding, const std::string& where, Sample& sample) const;
};

void RowConverter::State::fill(const Json& row, const std::string& where, Sample& sample) const {
  RowFormat format = options.format;
  if (format == RowFormat::automatic || !row.is_object()) format = detect_format(row, where);
  switch (format) {
    case RowFormat::text: fill_text(read_text(row, where), where, sample); break;
    case RowFormat::messages: fill_chat(row, where, sample); break;
    default: read_tokens(row, options.vocabulary, where, sample.ids, sample.labels); break;
  }
}

void RowConverter::State::set_encoding(Encoding encoding, const std::string& where,
                                       Sample& sample) const {
  for (const int32_t id : encoding.ids) {
    if (options.vocabulary > 0 && id >= options.vocabulary) {
      throw BadRow(where + ": the tokenizer gives the id " + std::to_string(id) +
                   ", but the model has a vocabulary of " + std::to_string(options.vocabulary));
    }
  }
  sample.ids = std::move(encoding.ids);
  sample.spans = std::move(encoding.spans);
  if (count_trained(sample.labels) == 0) {
    throw BadRow(where + ": no token of this row is trained");
  }
}

void RowConverter::State::fill_text(const std::string& text, const std::string& where,
                                    Sample& sample) const {
  const Tokenizer& with = tokenizer();
  Encoding encoding = of_row(where, [&] { return with.encode(text, {.add_special = true}); });
  if (!text.ends_with(with.end_token())) {
    const auto end = static_cast<uint32_t>(text.size());
    encoding.ids.push_back(with.end_id());
    encoding.spans.push_back({end, end});
  }
  sample.text = text;
  sample.labels = encoding.ids;
  set_encoding(std::move(encoding), where, sample);
}

void RowConverter::State::fill_chat(const Json& row, const std::string& where,
                                    Sample& sample) const {
  const ChatTemplate& with_template = template_of_chats();
  TrainedChat chat = of_placed_row([&] {
    return render_trained(with_template, read_chat(row, where), options.train_on, where);
  });
  const Tokenizer& with = tokenizer();
  Encoding encoding = of_row(where, [&] { return with.encode(chat.text); });
  sample.text = std::move(chat.text);
  sample.labels = masked_labels(encoding, chat.trained);
  set_encoding(std::move(encoding), where, sample);
}

RowConverter::RowConverter(RowOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
}

RowConverter::~RowConverter() = default;

Sample RowConverter::convert(const RawRow& row) const {
  const std::string where = row.where();
  Sample sample;
  sample.file = row.file;
  sample.line = row.line;
  if (row.document) {
    check_document(row);
    state_->fill_text(row.text, where, sample);
  } else {
    state_->fill(parse_row(row), where, sample);
  }
  return sample;
}

ConvertedRow RowConverter::try_convert(const RawRow& row) const {
  ConvertedRow converted;
  try {
    converted.sample = convert(row);
  } catch (const Error&) {
    converted.error = std::current_exception();
  }
  return converted;
}

}  // namespace hearth
