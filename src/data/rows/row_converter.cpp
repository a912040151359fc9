#include "data/rows/row_converter.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <set>

#include "base/log.h"
#include "base/utf8.h"
#include "data/rows/chat_rows.h"
#include "data/rows/row_fields.h"
#include "data/rows/row_object.h"
#include "data/rows/typed_specials.h"

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

void check_document(const RawRow& row) {
  const std::string_view text = row.text;
  const size_t bad = std::min(find_invalid_utf8(text), text.find('\0'));
  if (bad == std::string_view::npos) return;
  const auto line =
      row.line + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(bad), '\n');
  throw BadRow(row.file + ":" + std::to_string(line) + ": " +
               (text[bad] == '\0' ? "a NUL byte" : "invalid UTF-8"));
}

// A part that the first row to need it makes, on whatever thread; a making that fails is tried again
// by the next one. std::call_once would do, but the thread sanitizer's never returns after an
// exception.
template <class T>
class MadeOnce {
 public:
  template <class Make>
  const T& get(const Make& make) const {
    if (const T* made = made_.load(std::memory_order_acquire)) return *made;
    const std::lock_guard lock(mutex_);
    if (!value_) make(value_);
    made_.store(&*value_, std::memory_order_release);
    return *value_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::optional<T> value_;
  mutable std::atomic<const T*> made_{nullptr};
};

}  // namespace

struct RowConverter::State {
  RowOptions options;
  std::vector<Column> columns;
  MadeOnce<Tokenizer> loaded;
  MadeOnce<SpecialTokens> specials;
  MadeOnce<ChatTemplate> chat_template;

  const Tokenizer& tokenizer() const {
    return loaded.get([&](auto& made) { made.emplace(options.model, options.follow_links); });
  }
  const ChatTemplate& template_of_chats() const {
    return chat_template.get([&](auto& made) {
      made.emplace(TemplateOptions{options.model, options.chat_template, options.template_date,
                                   options.follow_links, options.adapter, options.template_args});
    });
  }
  const SpecialTokens& special_tokens() const {
    return specials.get([&](auto& made) { made.emplace(tokenizer()); });
  }
  // What a template notes is the same for many rows: told once.
  void tell_once(const std::string& note) const {
    const std::lock_guard lock(told_mutex);
    if (told.insert(note).second) log_info("note: " + note);
  }
  mutable std::mutex told_mutex;
  mutable std::set<std::string> told;

  void fill(const RowObject& object, const std::string& where, Sample& sample) const;
  void fill_text(std::string text, size_t trained_from, const std::string& where,
                 Sample& sample) const;
  void fill_completion(const Json& row, const std::string& where, Sample& sample) const;
  void fill_chat(Chat chat, const std::string& where, Sample& sample) const;
  void set_encoding(Encoding encoding, const std::string& where, Sample& sample) const;
};

void RowConverter::State::fill(const RowObject& object, const std::string& where,
                               Sample& sample) const {
  const Json& row = object.json;
  switch (object.format) {
    case RowFormat::text: return fill_text(read_text(row, "text", where), 0, where, sample);
    case RowFormat::completion:
      if (!completion_is_chat(row, where)) return fill_completion(row, where, sample);
      return fill_chat(of_placed_row([&] { return read_completion_row(row, where); }), where,
                       sample);
    case RowFormat::messages:
      return fill_chat(of_placed_row([&] { return read_messages_row(row, where); }), where, sample);
    case RowFormat::alpaca:
      return fill_chat(of_placed_row([&] { return read_alpaca_row(row, where); }), where, sample);
    case RowFormat::sharegpt:
      return fill_chat(of_placed_row([&] { return read_sharegpt_row(row, where); }), where, sample);
    case RowFormat::tokens:
    case RowFormat::automatic: break;
  }
  read_tokens(row, options.vocabulary, where, sample.ids, sample.labels);
}

void RowConverter::State::set_encoding(Encoding encoding, const std::string& where,
                                       Sample& sample) const {
  for (const int32_t id : encoding.ids) {
    if (options.vocabulary > 0 && id >= options.vocabulary) {
      throw BadRow(where + ": the tokenizer gives the id " + std::to_string(id) +
                   ", but the vocabulary of the model has " + std::to_string(options.vocabulary));
    }
  }
  sample.encoded = true;
  sample.ids = std::move(encoding.ids);
  sample.spans = std::move(encoding.spans);
  if (count_trained(sample.labels) == 0) {
    throw BadRow(where + ": no token of this row would be trained");
  }
}

// A text, of which the tokens that cover a character from trained_from on are trained, and what is
// written behind the last one.
void RowConverter::State::fill_text(std::string text, size_t trained_from, const std::string& where,
                                    Sample& sample) const {
  const Tokenizer& with = tokenizer();
  Encoding encoding = of_row(where, [&] { return with.encode(text, {.add_special = true}); });
  const auto end = static_cast<uint32_t>(text.size());
  // The post-processor of some tokenizers adds the end token itself.
  const bool ended = !encoding.ids.empty() && encoding.ids.back() == with.end_id();
  if (!ended && !text.ends_with(with.end_token())) {
    encoding.ids.push_back(with.end_id());
    encoding.spans.push_back({end, end});
  }
  sample.labels = encoding.ids;
  for (size_t i = 0; i < sample.labels.size() && trained_from > 0; ++i) {
    const TextSpan token = encoding.spans[i];
    const bool added_behind = token.begin == end;
    if (token.end <= trained_from && !added_behind) sample.labels[i] = kIgnoredLabel;
  }
  sample.text = std::move(text);
  set_encoding(std::move(encoding), where, sample);
}

void RowConverter::State::fill_completion(const Json& row, const std::string& where,
                                          Sample& sample) const {
  const std::string& prompt = read_text(row, "prompt", where);
  const size_t trained_from = options.train_on == TrainOn::all ? 0 : prompt.size();
  fill_text(prompt + read_text(row, "completion", where), trained_from, where, sample);
}

void RowConverter::State::fill_chat(Chat chat, const std::string& where, Sample& sample) const {
  const ChatTemplate& with_template = template_of_chats();
  const Tokenizer& with = tokenizer();
  std::optional<TypedSpecials> typed;
  if (options.no_special_in_content) {
    const SpecialTokens& tokens = special_tokens();
    of_row(where, [&] { typed.emplace(tokens, chat); });
  }
  TrainedChat rendered =
      of_placed_row([&] { return render_trained(with_template, chat, options.train_on, where); });
  const std::vector<TextSpan> typed_spans =
      typed ? typed->restore(rendered) : std::vector<TextSpan>();
  if (!rendered.note.empty()) tell_once(rendered.note);
  Encoding encoding =
      of_row(where, [&] { return with.encode(rendered.text, {.content = typed_spans}); });
  sample.text = std::move(rendered.text);
  sample.labels = masked_labels(encoding, rendered.trained);
  set_encoding(std::move(encoding), where, sample);
}

RowConverter::RowConverter(RowOptions options) : state_(std::make_unique<State>()) {
  state_->columns = parse_columns(options.columns);
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
    state_->fill_text(row.text, 0, where, sample);
  } else {
    state_->fill(read_row_object(row, state_->columns, state_->options.format, RowPart::whole),
                 where, sample);
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
