#include "data/rows/row_fields.h"

#include <limits>
#include <optional>

#include "data/json_fields.h"
#include "data/rows/row_converter.h"

namespace hearth {
namespace {

bool has(const Json& row, std::string_view key) { return !member_or_null(row, key).is_null(); }

std::string shown(const Json& value) {
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  return quoted(value.is_string() ? value.as_string() : value.dump());
}

// A list of integers that `allowed` accepts.
template <class F>
void read_integers(const Json& list, const std::string& where, const char* key, const F& allowed,
                   std::vector<int32_t>& out) {
  if (!list.is_array()) {
    throw BadRow(where + ": " + key + ": an array of integers expected, not " + shown(list));
  }
  out.reserve(list.as_array().size());
  for (const Json& value : list.as_array()) {
    if (!value.is_signed() || !allowed(value.as_int())) {
      throw BadRow(where + ": " + key + "[" + std::to_string(out.size()) + "]: " + shown(value) +
                   " is no " +
                   (std::string_view(key) == "labels" ? "id of the vocabulary and not -100"
                                                      : "id of the vocabulary"));
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
    throw BadRow(where +
                 ": attention_mask: only ones, as many as input_ids, are read; leave "
                 "padding out of the row");
  }
}

}  // namespace

RowFormat detect_format(const Json& row, const std::string& where) {
  if (row.is_array()) {
    throw BadRow(where +
                 ": a JSON array; this version reads one object a line "
                 "(jq -c '.[]' FILE > rows.jsonl)");
  }
  if (!row.is_object()) throw BadRow(where + ": a JSON object expected, not " + shown(row));
  struct Kind {
    bool present;
    const char* name;
    std::optional<RowFormat> format;
  };
  const Kind kinds[] = {
      {has(row, "input_ids"), "input_ids", RowFormat::tokens},
      {has(row, "messages"), "messages", RowFormat::messages},
      {has(row, "text"), "text", RowFormat::text},
      {has(row, "prompt") && has(row, "completion"), "prompt and completion", {}},
      {has(row, "instruction") && has(row, "output"), "instruction and output", {}},
      {has(row, "conversations"), "conversations", {}},
  };
  const Kind* found = nullptr;
  for (const Kind& kind : kinds) {
    if (!kind.present) continue;
    if (found != nullptr) {
      throw BadRow(where + ": the row has " + found->name + " and " + kind.name +
                   "; --format says which counts");
    }
    found = &kind;
  }
  if (found == nullptr) {
    throw BadRow(where + ": none of the keys text, messages, input_ids: not a row that is known");
  }
  if (!found->format) {
    throw BadRow(where + ": rows with " + found->name +
                 " are not in this version (text, "
                 "messages and input_ids are)");
  }
  return *found->format;
}

const std::string& read_text(const Json& row, const std::string& where) {
  const Json& text = member_or_null(row, "text");
  if (!text.is_string()) throw BadRow(where + ": text: a string expected, not " + shown(text));
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
    throw BadRow(where + ": labels: " + std::to_string(labels.size()) + " entries for " +
                 std::to_string(ids.size()) + " input_ids");
  }
}

}  // namespace hearth
