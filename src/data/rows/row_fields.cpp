#include "data/rows/row_fields.h"

#include <limits>
#include <utility>

#include "base/error_format.h"
#include "base/setting.h"
#include "data/json_fields.h"
#include "data/rows/row_converter.h"

namespace hearth {
namespace {

bool has(const Json& row, std::string_view key) { return !member_or_null(row, key).is_null(); }

// A list of integers that `allowed` accepts.
template <class F>
void read_integers(const Json& list, const std::string& where, const char* key, const F& allowed,
                   std::vector<int32_t>& out) {
  if (!list.is_array()) {
    throw BadRow(
        fmt::format("{}: {}: expected an array of integers, found {}", where, key, shown(list)));
  }
  out.reserve(list.as_array().size());
  for (const Json& value : list.as_array()) {
    if (!value.is_signed() || !allowed(value.as_int())) {
      throw BadRow(fmt::format("{}: {}[{}]: expected an id of the vocabulary{}, found {}", where,
                               key, out.size(), std::string_view(key) == "labels" ? " or -100" : "",
                               shown(value)));
    }
    out.push_back(static_cast<int32_t>(value.as_int()));
  }
}

// Padding has no place in a row: it would be routed and counted.
void check_attention_mask(const Json& row, size_t length, const std::string& where) {
  const Json& mask = member_or_null(row, "attention_mask");
  if (mask.is_null()) return;
  std::vector<int32_t> ones;
  if (mask.is_array() && mask.as_array().size() == length) {
    for (const Json& value : mask.as_array()) {
      if (value.is_signed() && value.as_int() == 1) ones.push_back(1);
    }
  }
  if (ones.size() != length) {
    throw BadRow(
        where +
        ": attention_mask: expected a 1 for each of input_ids; leave padding out of the row");
  }
}

}  // namespace

RowFormat detect_format(const Json& row, const std::string& where, RowPart part) {
  if (row.is_array()) {
    throw BadRow(where +
                 ": expected a JSON object, found an array; name a file that is one array .json");
  }
  if (!row.is_object()) throw BadRow(where + ": expected a JSON object, found " + shown(row));
  struct Kind {
    const char* first;
    const char* second;  // or nullptr
    RowFormat format;
  };
  constexpr Kind kKinds[] = {
      {"input_ids", nullptr, RowFormat::tokens},    {"messages", nullptr, RowFormat::messages},
      {"text", nullptr, RowFormat::text},           {"prompt", "completion", RowFormat::completion},
      {"instruction", "output", RowFormat::alpaca}, {"conversations", nullptr, RowFormat::sharegpt},
  };
  const auto name = [](const Kind& kind) {
    return std::string(kind.first) + (kind.second ? std::string(" and ") + kind.second : "");
  };
  const Kind* found = nullptr;
  std::string half;  // of a pair that the row has one key of
  for (const Kind& kind : kKinds) {
    const bool alone = !kind.second || part == RowPart::prompt;
    const bool first = has(row, kind.first), second = alone || has(row, kind.second);
    if (first && !second) half = std::string(kind.first) + " without " + kind.second;
    if (!first || !second) continue;
    if (found != nullptr) {
      throw BadRow(fmt::format("{}: the row has both {} and {}; choose one with {}", where,
                               name(*found), name(kind), spelled(Setting::format)));
    }
    found = &kind;
  }
  if (found == nullptr) {
    throw BadRow(fmt::format(
        "{}: {}expected one of the keys text, messages, prompt and completion, "
        "instruction and output, conversations, input_ids; name others with {}",
        where, half.empty() ? "" : half + "; ", spelled(Setting::columns, "FIELD=KEY")));
  }
  return found->format;
}

bool completion_is_chat(const Json& row, const std::string& where) {
  const Json& prompt = member_or_null(row, "prompt");
  const Json& completion = member_or_null(row, "completion");
  for (const auto& [field, value] :
       {std::pair("prompt", &prompt), std::pair("completion", &completion)}) {
    if (!value->is_string() && !value->is_array()) {
      throw BadRow(where + ": " + field + ": expected a string or a list of messages, found " +
                   shown(*value));
    }
  }
  if (prompt.is_array() != completion.is_array()) {
    throw BadRow(fmt::format("{}: completion: expected {}, as prompt is one", where,
                             prompt.is_array() ? "a list of messages" : "a string"));
  }
  return prompt.is_array();
}

const std::string& read_text(const Json& row, const char* field, const std::string& where) {
  const Json& text = member_or_null(row, field);
  if (!text.is_string()) {
    throw BadRow(where + ": " + field + ": expected a string, found " + shown(text));
  }
  return text.as_string();
}

void read_tokens(const Json& row, int64_t vocabulary, const std::string& where,
                 std::vector<int32_t>& ids, std::vector<int32_t>& labels) {
  const int64_t end =
      vocabulary > 0 ? vocabulary : int64_t{std::numeric_limits<int32_t>::max()} + 1;
  const auto is_id = [&](int64_t id) { return id >= 0 && id < end; };
  read_integers(member_or_null(row, "input_ids"), where, "input_ids", is_id, ids);
  if (ids.empty()) throw BadRow(where + ": input_ids is empty");
  check_attention_mask(row, ids.size(), where);
  const Json& given = member_or_null(row, "labels");
  if (given.is_null()) {
    labels = ids;
    return;
  }
  const auto is_label = [&](int64_t label) { return label == kIgnoredLabel || is_id(label); };
  read_integers(given, where, "labels", is_label, labels);
  if (labels.size() != ids.size()) {
    throw BadRow(
        fmt::format("{}: labels: {} entries for {} input_ids", where, labels.size(), ids.size()));
  }
}

}  // namespace hearth
