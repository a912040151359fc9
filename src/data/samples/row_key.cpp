#include "data/samples/row_key.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/file_ops.h"
#include "checkpoint/model_files.h"
#include "data/chat/chat_template.h"
#include "data/tokenizer/tokenizer.h"

namespace hearth {
namespace {

Digest digest_of_this_program() {
  static const Digest digest = digest_of_file("/proc/self/exe", [](uint64_t) {});
  return digest;
}

void add_tokenizer(const std::string& directory, bool follow_links, Hasher& hasher) {
  const auto add = [&](const char* name, uint64_t most) {
    if (!has_model_file(directory, name)) return;
    hasher.update_field(name);
    hasher.update_field(read_file(model_file(directory, name, follow_links), most));
  };
  add("tokenizer.json", kMaxTokenizerBytes);
  add("tokenizer_config.json", kMaxConfigBytes);
}

// Data without chats needs no template: one that cannot be used is told by its error.
std::string template_identity(const TemplateOptions& options) {
  try {
    return ChatTemplate(options).identity();
  } catch (const Error& error) {
    return options.date + error.what();
  }
}

}  // namespace

Digest digest_of_file(const std::string& path, const std::function<void(uint64_t)>& piece) {
  const InputFile file(path);
  std::vector<std::byte> bytes(std::min<uint64_t>(file.size(), uint64_t{4} << 20));
  Hasher hasher;
  for (uint64_t at = 0; at < file.size(); at += bytes.size()) {
    bytes.resize(std::min<uint64_t>(bytes.size(), file.size() - at));
    file.read(bytes.data(), bytes.size(), at);
    hasher.update(bytes.data(), bytes.size());
    piece(at + bytes.size());
  }
  return hasher.digest();
}

Digest conversion_key(const RowOptions& options) {
  // By name, so that an option that is added does not compile until it is counted here or left out.
  const auto& [model, format, train_on, follow_links, chat_template, template_date, adapter,
               template_args, no_special_in_content, columns, max_samples, skip_bad_rows, seq_len,
               overflow, vocabulary] = options;
  Hasher hasher;
  const Digest program = digest_of_this_program();
  hasher.update_u64(program.high);
  hasher.update_u64(program.low);
  hasher.update_u64(static_cast<uint64_t>(format));
  hasher.update_u64(static_cast<uint64_t>(train_on));
  hasher.update_u64(no_special_in_content ? 1 : 0);
  hasher.update_u64(static_cast<uint64_t>(vocabulary));
  hasher.update_u64(static_cast<uint64_t>(max_samples));
  hasher.update_u64(columns.size());
  for (const std::string& column : columns) hasher.update_field(column);
  hasher.update_field(template_identity(
      {model, chat_template, template_date, follow_links, adapter, template_args}));
  add_tokenizer(model, follow_links, hasher);
  static_cast<void>(skip_bad_rows);  // an entry lists its bad rows
  static_cast<void>(seq_len);        // rows are kept whole
  static_cast<void>(overflow);
  return hasher.digest();
}

Digest row_key(const Digest& conversion, const Digest& content, const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  size_t dot = name.rfind('.');  // of .jsonl, or the one before: .jsonl.gz
  if (dot != std::string::npos && dot > 0) dot = std::min(dot, name.rfind('.', dot - 1));
  std::string ending = dot == std::string::npos ? "" : name.substr(dot);
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  Hasher hasher;
  for (const Digest& digest : {conversion, content}) {
    hasher.update_u64(digest.high);
    hasher.update_u64(digest.low);
  }
  hasher.update_field(ending);
  return hasher.digest();
}

}  // namespace hearth
