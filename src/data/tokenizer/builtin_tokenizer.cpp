#include "data/tokenizer/builtin_tokenizer.h"

#include "base/error.h"
#include "base/file_ops.h"
#include "base/json.h"
#include "data/tokenizer/byte_alphabet.h"

namespace hearth {
namespace {

constexpr int kFirstSpecial = 256;
constexpr const char* kSpecials[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};

constexpr const char* kChatTemplate =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}";

Json byte_level() {
  return JsonObject{{"type", "ByteLevel"},
                    {"add_prefix_space", false},
                    {"trim_offsets", false},
                    {"use_regex", false}};
}

Json special_token(int id, const char* content) {
  return JsonObject{{"id", id},        {"content", content}, {"single_word", false},
                    {"lstrip", false}, {"rstrip", false},    {"normalized", false},
                    {"special", true}};
}

Json tokenizer() {
  JsonObject vocabulary;
  for (int byte = 0; byte < kFirstSpecial; ++byte) {
    vocabulary.emplace_back(alphabet_character(static_cast<uint8_t>(byte)), byte);
  }
  JsonArray added;
  for (int i = 0; i < 3; ++i) added.push_back(special_token(kFirstSpecial + i, kSpecials[i]));
  const Json model = JsonObject{{"type", "BPE"},
                                {"dropout", nullptr},
                                {"unk_token", nullptr},
                                {"continuing_subword_prefix", nullptr},
                                {"end_of_word_suffix", nullptr},
                                {"fuse_unk", false},
                                {"byte_fallback", false},
                                {"ignore_merges", false},
                                {"vocab", std::move(vocabulary)},
                                {"merges", JsonArray{}}};
  return JsonObject{{"version", "1.0"},
                    {"truncation", nullptr},
                    {"padding", nullptr},
                    {"added_tokens", std::move(added)},
                    {"normalizer", nullptr},
                    {"pre_tokenizer", byte_level()},
                    {"post_processor", nullptr},
                    {"decoder", byte_level()},
                    {"model", model}};
}

Json config() {
  return JsonObject{{"tokenizer_class", "PreTrainedTokenizerFast"},
                    {"eos_token", "<|im_end|>"},
                    {"pad_token", "<|endoftext|>"},
                    {"clean_up_tokenization_spaces", false},
                    {"chat_template", kChatTemplate}};
}

void write_new(const std::string& path, const Json& content) {
  if (file_info(path).kind != FileKind::none) throw storage_error(path + " exists already");
  write_file_atomically(path, content.dump(1) + "\n");
}

}  // namespace

void write_builtin_tokenizer(const std::string& directory) {
  write_new(directory + "/tokenizer.json", tokenizer());
  write_new(directory + "/tokenizer_config.json", config());
}

}  // namespace hearth
