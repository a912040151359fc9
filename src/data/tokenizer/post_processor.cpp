#include "data/tokenizer/post_processor.h"

#include "base/error.h"
#include "data/json_fields.h"

namespace hearth {

PostProcessor::PostProcessor(const Json& description, const std::string& source) {
  if (!description.is_null()) add(description, source + ": post_processor");
}

void PostProcessor::add(const Json& description, const std::string& where) {
  if (!description.is_object()) refuse_value(where, description);
  const std::string& type = read_string(description, "type", where);
  if (type == "ByteLevel") {  // settings of offsets, which are found another way here
    allow_keys(description, where, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  } else if (type == "TemplateProcessing") {
    add_template(description, where);
  } else if (type == "BertProcessing") {
    allow_keys(description, where, {"type", "sep", "cls"});
    add_pair(description, where);
  } else if (type == "RobertaProcessing") {
    allow_keys(description, where, {"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
    add_pair(description, where);
  } else if (type == "Sequence") {
    allow_keys(description, where, {"type", "processors"});
    const Json& list = member(description, "processors", where);
    if (!list.is_array()) refuse_value(where + ".processors", list);
    for (size_t i = 0; i < list.as_array().size(); ++i) {
      add(list.as_array()[i], where + ".processors[" + std::to_string(i) + "]");
    }
  } else {
    refuse_value(where + ".type", Json(type));
  }
}

void PostProcessor::add_pair(const Json& description, const std::string& where) {
  const auto id_in = [&](const char* key) {
    const Json& pair = member(description, key, where);
    if (!pair.is_array() || pair.as_array().size() != 2 || !pair.as_array()[0].is_string()) {
      throw input_error(where + "." + key + ": expected a token and its id");
    }
    return read_id(pair.as_array()[1], where + "." + key + "[1]");
  };
  before.insert(before.begin(), id_in("cls"));
  behind.push_back(id_in("sep"));
}

void PostProcessor::add_template(const Json& description, const std::string& where) {
  allow_keys(description, where, {"type", "single", "pair", "special_tokens"});
  const Json& single = member(description, "single", where);
  const Json& specials = member(description, "special_tokens", where);
  if (!single.is_array()) refuse_value(where + ".single", single);
  if (!specials.is_object()) refuse_value(where + ".special_tokens", specials);
  std::vector<int32_t> new_before;
  int texts = 0;
  for (size_t i = 0; i < single.as_array().size(); ++i) {
    const Json& piece = single.as_array()[i];
    const std::string at = where + ".single[" + std::to_string(i) + "]";
    allow_keys(piece, at, {"SpecialToken", "Sequence"});
    if (const Json* text = piece.find("Sequence")) {
      allow_keys(*text, at + ".Sequence", {"id", "type_id"});
      if (read_string(*text, "id", at + ".Sequence") != "A") {
        refuse_value(at + ".Sequence.id", member(*text, "id", at));
      }
      ++texts;
      continue;
    }
    const Json& token = member(piece, "SpecialToken", at);
    allow_keys(token, at + ".SpecialToken", {"id", "type_id"});
    const std::string name = read_string(token, "id", at + ".SpecialToken");
    const std::string of = where + ".special_tokens." + quoted(name);
    const Json* special = specials.find(name);
    if (special == nullptr) throw input_error(of + " is missing");
    allow_keys(*special, of, {"id", "ids", "tokens"});
    const Json& ids = member(*special, "ids", of);
    if (!ids.is_array()) refuse_value(of + ".ids", ids);
    for (const Json& id : ids.as_array()) {
      (texts == 0 ? new_before : behind).push_back(read_id(id, of + ".ids"));
    }
  }
  if (texts != 1) {
    throw input_error(where + ".single: the text (Sequence A) comes " + std::to_string(texts) +
                      " times, not once");
  }
  before.insert(before.begin(), new_before.begin(), new_before.end());
}

}  // namespace hearth
