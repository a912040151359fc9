#include "data/tokenizer/gguf_vocabulary.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "checkpoint/model_files.h"
#include "data/json_fields.h"
#include "data/tokenizer/tokenizer.h"

namespace hearth {
namespace {

/// Token types of the format.
enum GgufToken : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUser = 4,
  kUnused = 5,
  kByte = 6
};

struct NamedPattern {
  const char* pattern;
  const char* name;
};

constexpr NamedPattern kPatterns[] = {
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "qwen2"},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "llama-bpe"},
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", "gpt-2"},
};

bool flag_of_object(const Json& object, std::string_view key) {
  const Json& value = member_or_null(object, key);
  return value.is_bool() && value.as_bool();
}

std::string text_of(const Json& object, std::string_view key) {
  const Json& value = member_or_null(object, key);
  return value.is_string() ? value.as_string() : "";
}

/// The components of a description: a Sequence's, or the one.
std::vector<Json> components(const Json& description, std::string_view list) {
  if (description.is_null()) return {};
  const Json& inner = member_or_null(description, list);
  if (text_of(description, "type") == "Sequence" && inner.is_array()) return inner.as_array();
  return {description};
}

/// A token as "content" or an object with it.
std::string special_text(const Json& config, const std::string& key) {
  const Json& value = member_or_null(config, key);
  return value.is_object() ? text_of(value, "content") : value.is_string() ? value.as_string() : "";
}

/// Added tokens that look like control tokens although they are not marked as special.
bool looks_special(std::string_view text) {
  return text == "<pad>" || text == "<mask>" || (text.starts_with("<|") && text.ends_with("|>")) ||
         (text.starts_with("<\uff5c") && text.ends_with("\uff5c>")) ||
         (text.starts_with("<unused") && text.ends_with(">"));
}

bool is_byte_token(std::string_view text) {
  const auto digit = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  };
  return text.size() == 6 && text.starts_with("<0x") && text[5] == '>' && digit(text[3]) &&
         digit(text[4]);
}

std::string with_spaces(std::string text) {
  for (size_t at; (at = text.find("\u2581")) != std::string::npos;) text.replace(at, 3, " ");
  return text;
}

class VocabularyWriter {
 public:
  VocabularyWriter(const TokenizerFiles& files, int64_t vocabulary, GgufMetadata& metadata)
      : files_(files),
        model_(member(files.tokenizer, "model", files.source)),
        metadata_(metadata),
        tokens_(static_cast<size_t>(vocabulary)),
        types_(static_cast<size_t>(vocabulary), kUnused) {
    for (size_t i = 0; i < tokens_.size(); ++i) tokens_[i] = "[PAD" + std::to_string(i) + "]";
  }

  void write(const std::string& architecture) {
    const bool falls_back = flag_of_object(model_, "byte_fallback");
    const std::string pre = falls_back ? "default" : pre_tokenizer(architecture);
    read_merges();
    read_tokens(falls_back);
    metadata_.add_text("tokenizer.ggml.model", falls_back ? "llama" : "gpt2");
    metadata_.add_text("tokenizer.ggml.pre", pre);
    metadata_.add_texts("tokenizer.ggml.tokens", tokens_);
    if (falls_back) metadata_.add_f32s("tokenizer.ggml.scores", scores());
    metadata_.add_i32s("tokenizer.ggml.token_type", types_);
    if (!falls_back) add_merges();
    add_special_ids();
    add_first_and_last();
    if (falls_back) add_space_prefix();
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw input_error(files_.source + ": " + what +
                      ", which has no GGUF form here; no GGUF file was written");
  }

  std::string pre_tokenizer(const std::string& architecture) const {
    const std::string plain = architecture == "olmoe" ? "olmo" : "gpt-2";
    std::string found;
    bool byte_level = false;
    for (const Json& part :
         components(member_or_null(files_.tokenizer, "pre_tokenizer"), "pretokenizers")) {
      const std::string type = text_of(part, "type");
      if (type == "ByteLevel") {
        byte_level = true;
        const Json& splits = member_or_null(part, "use_regex");
        if (!splits.is_bool() || splits.as_bool()) {
          if (!found.empty()) refuse("two patterns that split words");
          found = plain;
        }
        if (flag_of_object(part, "add_prefix_space")) refuse("ByteLevel with add_prefix_space");
        continue;
      }
      const std::string pattern = text_of(member_or_null(part, "pattern"), "Regex");
      const auto* known =
          std::find_if(std::begin(kPatterns), std::end(kPatterns),
                       [&](const NamedPattern& one) { return pattern == one.pattern; });
      if (type != "Split" || known == std::end(kPatterns) || !found.empty()) {
        refuse("the pre-tokenizer " + quoted(type) +
               (pattern.empty() ? "" : " with the pattern " + quoted(pattern)));
      }
      found = known->name == std::string_view("gpt-2") ? plain : known->name;
    }
    if (!byte_level) refuse("a tokenizer that is neither byte-level nor falls back to bytes");
    const Json& merges = member_or_null(model_, "merges");
    const bool has_merges = merges.is_array() && !merges.as_array().empty();
    // Without merges every byte is a token, however words are split.
    if (found.empty() && has_merges) refuse("a byte-level tokenizer without a pattern");
    return found.empty() ? plain : found;
  }

  void read_merges() {
    const Json& merges = member_or_null(model_, "merges");
    if (!merges.is_array()) return;
    for (const Json& merge : merges.as_array()) {
      if (merge.is_string()) {
        merges_.push_back(merge.as_string());
      } else {
        // A space inside of a part would read as the one between parts.
        const auto part = [&](size_t i) {
          std::string text = merge.as_array().at(i).as_string();
          for (size_t at; (at = text.find(' ')) != std::string::npos;)
            text.replace(at, 1, "\u0120");
          return text;
        };
        merges_.push_back(part(0) + " " + part(1));
      }
    }
  }

  size_t index_of(const Json& id, std::string_view token) const {
    if (!id.is_integer() || id.as_int() < 0 ||
        id.as_int() >= static_cast<int64_t>(tokens_.size())) {
      refuse("the id of " + quoted(token) + " is beyond vocab_size, " +
             std::to_string(tokens_.size()));
    }
    return static_cast<size_t>(id.as_int());
  }

  void read_tokens(bool falls_back) {
    const std::string unknown = text_of(model_, "unk_token");
    for (const auto& [text, id] : member(model_, "vocab", files_.source).as_object()) {
      const size_t at = index_of(id, text);
      tokens_[at] = text;
      types_[at] = falls_back && is_byte_token(text) ? kByte
                   : falls_back && text == unknown   ? kUnknown
                                                     : kNormal;
    }
    const Json& added = member_or_null(files_.tokenizer, "added_tokens");
    if (!added.is_array()) return;
    for (const Json& token : added.as_array()) {
      const std::string text = text_of(token, "content");
      const size_t at = index_of(member_or_null(token, "id"), text);
      const bool control = flag_of_object(token, "special") || looks_special(text);
      types_[at] = control ? kControl : kUser;
      tokens_[at] = control ? text : with_spaces(text);
      added_.emplace(text, static_cast<uint32_t>(at));
    }
  }

  std::vector<float> scores() const {
    std::unordered_map<std::string_view, size_t> ids;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (types_[i] == kNormal) ids.emplace(tokens_[i], i);
    }
    std::vector<float> scores(tokens_.size(), 0.0f);
    std::vector<bool> ranked(tokens_.size());
    int64_t rank = 0;
    const auto give = [&](size_t at) {
      if (ranked[at]) return;
      ranked[at] = true;
      scores[at] = static_cast<float>(-rank++);
    };
    for (std::string merge : merges_) {
      merge.erase(merge.find(' '), 1);
      if (const auto at = ids.find(merge); at != ids.end()) give(at->second);
    }
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (types_[i] == kNormal) give(i);
      if (types_[i] == kControl || types_[i] == kUser) scores[i] = -1000.0f;
      if (types_[i] == kUnused) scores[i] = -10000.0f;
    }
    return scores;
  }

  void add_merges() { metadata_.add_texts("tokenizer.ggml.merges", merges_); }

  /// By text in tokenizer_config.json, else by id in config.json.
  void add_special_ids() {
    const std::pair<const char*, const char*> names[] = {
        {"bos", "bos"},       {"eos", "eos"},     {"unk", "unknown"},
        {"sep", "seperator"}, {"pad", "padding"}, {"mask", "mask"}};  // spelled as the format does
    for (const auto& [name, key] : names) {
      std::optional<uint32_t> id;
      const auto found = added_.find(special_text(files_.config, std::string(name) + "_token"));
      if (found != added_.end()) id = found->second;
      const Json& given = member_or_null(files_.model_config, std::string(name) + "_token_id");
      if (!id && given.is_integer() && given.as_int() >= 0 &&
          given.as_int() < static_cast<int64_t>(tokens_.size())) {
        id = static_cast<uint32_t>(given.as_int());
      }
      if (id) metadata_.add_u32(std::string("tokenizer.ggml.") + key + "_token_id", *id);
    }
  }

  /// What tokenizer_config.json says, else what the post-processor adds.
  void add_first_and_last() {
    std::optional<bool> first, last;
    const Json& processor = member_or_null(files_.tokenizer, "post_processor");
    for (const Json& part : components(processor, "processors")) {
      const Json& single = member_or_null(part, "single");
      if (text_of(part, "type") != "TemplateProcessing" || !single.is_array()) continue;
      if (single.as_array().size() < 2) continue;
      const auto id = [](const Json& piece) {
        return text_of(member_or_null(piece, "SpecialToken"), "id");
      };
      const std::string before = id(single.as_array().front()),
                        after = id(single.as_array().back());
      if (!before.empty()) first = before == special_text(files_.config, "bos_token");
      if (!after.empty()) last = after == special_text(files_.config, "eos_token");
    }
    const auto add = [&](const char* name, std::optional<bool> found) {
      const Json& given = member_or_null(files_.config, name);
      if (given.is_bool()) found = given.as_bool();
      if (found) metadata_.add_bool(std::string("tokenizer.ggml.") + name, *found);
    };
    add("add_bos_token", first);
    add("add_eos_token", last);
  }

  /// llama.cpp puts a space before a text unless the file says otherwise.
  void add_space_prefix() {
    const Json& given = member_or_null(files_.config, "add_prefix_space");
    if (given.is_bool())
      return metadata_.add_bool("tokenizer.ggml.add_space_prefix", given.as_bool());
    for (const Json& part :
         components(member_or_null(files_.tokenizer, "normalizer"), "normalizers")) {
      if (text_of(part, "type") == "Prepend") return;
    }
    for (const Json& part :
         components(member_or_null(files_.tokenizer, "pre_tokenizer"), "pretokenizers")) {
      if (text_of(part, "type") == "Metaspace" && text_of(part, "prepend_scheme") != "never")
        return;
    }
    metadata_.add_bool("tokenizer.ggml.add_space_prefix", false);
  }

  const TokenizerFiles& files_;
  const Json& model_;
  GgufMetadata& metadata_;
  std::vector<std::string> tokens_;
  std::vector<int32_t> types_;
  std::vector<std::string> merges_;
  std::unordered_map<std::string, uint32_t> added_;
};

Json read_if_there(const std::string& directory, const char* name, uint64_t limit, bool follow) {
  if (!has_model_file(directory, name)) return {};
  return read_json_file(model_file(directory, name, follow), limit);
}

}  // namespace

TokenizerFiles read_tokenizer_files(const std::string& directory, bool follow_links) {
  TokenizerFiles files;
  files.source = directory + "/tokenizer.json";
  files.model_config = read_if_there(directory, "config.json", kMaxConfigBytes, follow_links);
  files.tokenizer = read_if_there(directory, "tokenizer.json", kMaxTokenizerBytes, follow_links);
  files.config = read_if_there(directory, "tokenizer_config.json", kMaxConfigBytes, follow_links);
  if (!files.tokenizer.is_null()) Tokenizer(files.tokenizer, files.config, directory);  // checked
  return files;
}

void add_gguf_vocabulary(const TokenizerFiles& files, int64_t vocabulary,
                         const std::string& architecture, GgufMetadata& metadata) {
  if (files.tokenizer.is_null()) {
    metadata.add_text("tokenizer.ggml.model", "none");
    const std::string key = architecture + ".vocab_size";
    if (!metadata.has(key)) metadata.add_u32(key, static_cast<uint32_t>(vocabulary));
    return;
  }
  VocabularyWriter(files, vocabulary, metadata).write(architecture);
}

}  // namespace hearth
