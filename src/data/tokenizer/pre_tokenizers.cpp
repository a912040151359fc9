#include "data/tokenizer/pre_tokenizers.h"

#include <memory>

#include "base/error.h"
#include "base/utf8.h"
#include "data/json_fields.h"
#include "data/tokenizer/byte_alphabet.h"
#include "data/tokenizer/unicode_forms.h"

namespace hearth {
namespace {

// What ByteLevel splits by when use_regex is set (GPT-2).
constexpr const char* kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Writes a prefix before a word: it comes from where the first character does.
void prepend(std::string_view word, uint32_t begin, std::string_view prefix, TextEdit& edit) {
  const std::string_view first = word.substr(0, decode_utf8(word).length);
  edit.replace({begin, begin + static_cast<uint32_t>(first.size())}, std::string(prefix) += first);
}

void spell_words(Words& words) {
  words.edit([](std::string_view word, uint32_t begin, TextEdit& edit) {
    for (uint32_t i = 0; i < word.size(); ++i) {
      edit.replace({begin + i, begin + i + 1}, alphabet_character(static_cast<uint8_t>(word[i])));
    }
  });
}

}  // namespace

Words::Words(std::string_view from, TextRoom* room) : text(from, room) {
  HEARTH_CHECK(!from.empty(), "words of a text");
  spans.push_back({0, static_cast<uint32_t>(from.size())});
}

void Words::edit(const std::function<void(std::string_view, uint32_t, TextEdit&)>& rewrite) {
  const std::string_view from = text.text();
  TextEdit edit = text.edit();
  for (TextSpan& word : spans) {
    const TextSpan old = word;
    word.begin = edit.copy_until(old.begin);
    rewrite(from.substr(old.begin, old.end - old.begin), old.begin, edit);
    word.end = edit.copy_until(old.end);
  }
  text.apply(std::move(edit));
}

void Words::split(const SplitRule& rule) {
  std::vector<TextSpan> pieces;
  pieces.reserve(spans.size() + text.text().size() / 8);
  for (const TextSpan word : spans) {
    hearth::split(text.text().substr(word.begin, word.end - word.begin), rule, word.begin, pieces);
  }
  spans = std::move(pieces);
}

PreTokenizer::PreTokenizer(const Json& description, const std::string& source) {
  if (!description.is_null()) add(description, source + ": pre_tokenizer");
}

void PreTokenizer::apply(Words& words, bool spell) const {
  for (const Step& step : steps_) step(words);
  if (gives_bytes_ && spell) spell_words(words);
}

void PreTokenizer::add_split(Matcher matcher, SplitBehavior behavior, bool invert) {
  const auto rule =
      std::make_shared<const SplitRule>(SplitRule{std::move(matcher), behavior, invert});
  steps_.emplace_back([rule](Words& words) { words.split(*rule); });
}

void PreTokenizer::add(const Json& description, const std::string& where) {
  if (steps_.size() >= kMaxComponents) refuse_components(where);
  if (!description.is_object()) refuse_value(where, description);
  const std::string& type = read_string(description, "type", where);
  if (type == "Sequence") {
    allow_keys(description, where, {"type", "pretokenizers"});
    const Json& list = member(description, "pretokenizers", where);
    if (!list.is_array()) refuse_value(where + ".pretokenizers", list);
    for (size_t i = 0; i < list.as_array().size(); ++i) {
      add(list.as_array()[i], where + ".pretokenizers[" + std::to_string(i) + "]");
    }
    return;
  }
  if (gives_bytes_) {  // a ByteLevel that something follows: that sees the alphabet
    steps_.emplace_back(spell_words);
    gives_bytes_ = false;
  }
  if (type == "ByteLevel") {
    add_byte_level(description, where);
  } else if (type == "Metaspace") {
    add_metaspace(description, where);
  } else if (type == "Split") {
    allow_keys(description, where, {"type", "pattern", "behavior", "invert"});
    add_split(Matcher(member(description, "pattern", where), where + ".pattern"),
              read_behavior(member(description, "behavior", where), where + ".behavior"),
              required_bool(description, "invert", where));
  } else if (type == "Digits") {
    allow_keys(description, where, {"type", "individual_digits"});
    const bool each = required_bool(description, "individual_digits", where);
    add_split(Matcher(is_numeric), each ? SplitBehavior::isolated : SplitBehavior::contiguous);
  } else if (type == "Punctuation") {
    allow_keys(description, where, {"type", "behavior"});
    const Json& behavior = member_or_null(description, "behavior");
    add_split(Matcher(is_punctuation), behavior.is_null()
                                           ? SplitBehavior::isolated
                                           : read_behavior(behavior, where + ".behavior"));
  } else if (type == "Whitespace") {  // \w+|[^\w\s]+
    allow_keys(description, where, {"type"});
    add_split(Matcher(is_space), SplitBehavior::removed);
    add_split(Matcher(is_word), SplitBehavior::contiguous);
  } else if (type == "WhitespaceSplit") {
    allow_keys(description, where, {"type"});
    add_split(Matcher(is_space), SplitBehavior::removed);
  } else if (type == "BertPreTokenizer") {
    allow_keys(description, where, {"type"});
    add_split(Matcher(is_space), SplitBehavior::removed);
    add_split(Matcher(is_punctuation), SplitBehavior::isolated);
  } else if (type == "CharDelimiterSplit") {
    allow_keys(description, where, {"type", "delimiter"});
    add_split(Matcher(read_character(description, "delimiter", where)), SplitBehavior::removed);
  } else {
    refuse_value(where + ".type", Json(type));
  }
}

void PreTokenizer::add_byte_level(const Json& description, const std::string& where) {
  allow_keys(description, where, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (required_bool(description, "add_prefix_space", where)) {
    steps_.emplace_back([](Words& words) {
      words.edit([](std::string_view word, uint32_t begin, TextEdit& edit) {
        if (!word.starts_with(' ')) prepend(word, begin, " ", edit);
      });
    });
  }
  if (read_bool(description, "use_regex", true, where)) {
    add_split(Matcher(Regex(kByteLevelPattern, where)), SplitBehavior::isolated);
  }
  gives_bytes_ = true;
}

void PreTokenizer::add_metaspace(const Json& description, const std::string& where) {
  allow_keys(description, where,
             {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
  const std::string mark = read_character(description, "replacement", where);
  const Json& scheme = member_or_null(description, "prepend_scheme");
  bool always = scheme.is_null(), first = false;
  if (scheme.is_string() && scheme.as_string() == "always") {
    always = true;
  } else if (scheme.is_string() && scheme.as_string() == "first") {
    first = true;
  } else if (!scheme.is_null() && !(scheme.is_string() && scheme.as_string() == "never")) {
    refuse_value(where + ".prepend_scheme", scheme);
  }
  // Older files have this key alone.
  if (!read_bool(description, "add_prefix_space", true, where)) {
    if (first || (always && !scheme.is_null())) {
      throw input_error(where + ": add_prefix_space = false contradicts prepend_scheme " +
                        quoted(scheme.as_string()));
    }
    always = false;
  }
  steps_.emplace_back([=](Words& words) {
    const AlignedText& before = words.text;
    words.edit([&](std::string_view word, uint32_t begin, TextEdit& edit) {
      const bool marked = word.starts_with(mark) || word.starts_with(' ');
      if (!marked &&
          (always || (first && words.begins_document(before.original({begin, begin + 1}).begin)))) {
        prepend(word, begin, mark, edit);
      }
      for (size_t at = word.find(' '); at != std::string_view::npos; at = word.find(' ', at + 1)) {
        const auto space = begin + static_cast<uint32_t>(at);
        edit.replace({space, space + 1}, mark);
      }
    });
  });
  if (read_bool(description, "split", true, where)) {
    add_split(Matcher(mark), SplitBehavior::merged_with_next);
  }
}

}  // namespace hearth
