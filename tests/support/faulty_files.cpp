#include "support/faulty_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/dtype.h"
#include "base/file_failure.h"
#include "base/json.h"
#include "support/planted.h"

namespace hearth::test {
namespace {

std::string wrong_config(const std::string& text) {
  Json config = parse_json(text, "config.json");
  const Json *step = config.find("decoder_sparse_step"), *layers = config.find("num_hidden_layers");
  if (step == nullptr || layers == nullptr || !step->is_integer()) return text;
  JsonArray dense;
  for (int64_t i = 0; i < layers->as_int(); ++i) {
    if (i % step->as_int() != 0) dense.emplace_back(i);
  }
  if (const Json* more = config.find("mlp_only_layers")) {
    for (const Json& layer : more->as_array()) dense.push_back(layer);
  }
  config["mlp_only_layers"] = dense;
  config["decoder_sparse_step"] = 1;
  return config.dump();
}

void double_all(DType type, char* data, size_t bytes) {
  for (size_t at = 0; at < bytes; at += size_of(type)) {
    float x = 0;
    convert(type, data + at, DType::f32, &x, 1);
    x *= 2;
    convert(DType::f32, &x, type, data + at, 1);
  }
}

std::string with(std::string name, const std::string& part, const std::string& other) {
  const size_t at = name.find(part);
  return at == std::string::npos ? name : name.replace(at, part.size(), other);
}

/// The name of the other of gate and up, for the matrices of experts.
std::string swapped(const std::string& name) {
  if (name.find(".experts.") == std::string::npos) return name;
  for (const auto& [gate, up] : {std::pair("gate_proj", "up_proj"), std::pair(".w1.", ".w3.")}) {
    if (name.find(gate) != std::string::npos) return with(name, gate, up);
    if (name.find(up) != std::string::npos) return with(name, up, gate);
  }
  return name;
}

/// An adapter's file: eight bytes of length, a header, the tensors one after another.
std::string wrong_adapter(const std::string& file) {
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const std::string data = file.substr(8 + length);
  const Json header = parse_json(std::string_view(file).substr(8, length), "adapter");
  JsonObject wrong;
  std::string tensors;
  for (const auto& [name, entry] : header.as_object()) {
    if (name == "__metadata__") {
      wrong.emplace_back(name, entry);
      continue;
    }
    if (planted("expert-forgotten") && name.find(".experts.1.") != std::string::npos) continue;
    const JsonArray& range = entry.find("data_offsets")->as_array();
    std::string bytes = data.substr(static_cast<size_t>(range[0].as_int()),
                                    static_cast<size_t>(range[1].as_int() - range[0].as_int()));
    const std::string& type = entry.find("dtype")->as_string();
    if (planted("b-scaled-twice") && name.find(".lora_B.") != std::string::npos) {
      double_all(type == "F32"    ? DType::f32
                 : type == "BF16" ? DType::bf16
                                  : DType::f16,
                 bytes.data(), bytes.size());
    }
    Json moved = entry;
    moved["data_offsets"] = JsonArray{Json(static_cast<int64_t>(tensors.size())),
                                      Json(static_cast<int64_t>(tensors.size() + bytes.size()))};
    wrong.emplace_back(planted("gate-up-swapped") ? swapped(name) : name, std::move(moved));
    tensors += bytes;
  }
  std::string text = Json(std::move(wrong)).dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text + tensors;
}

void set(Json& object, const char* key, const Json& right, const Json& wrong) {
  const Json* value = object.find(key);
  if (value != nullptr && value->dump() == right.dump()) object[key] = wrong;
}

/// Merges of one pair of tokens: the last counts, with this fault the first.
void keep_first_merges(Json& merges) {
  std::set<std::string> seen;
  std::erase_if(merges.as_array(), [&](const Json& merge) {
    const std::string pair =
        merge.is_string() ? merge.as_string()
                          : merge.as_array()[0].as_string() + " " + merge.as_array()[1].as_string();
    return !seen.insert(pair).second;
  });
}

/// Special tokens of a template that stand before the text go behind it.
void move_behind(Json& parts) {
  std::stable_partition(parts.as_array().begin(), parts.as_array().end(),
                        [](const Json& part) { return part.find("Sequence") != nullptr; });
}

void change_tokenizer(Json& node) {
  if (node.is_array()) {
    for (Json& item : node.as_array()) change_tokenizer(item);
  }
  if (!node.is_object()) return;
  if (planted("unknown-tokens-always-fused")) set(node, "fuse_unk", false, true);
  if (planted("first-scheme-always")) set(node, "prepend_scheme", "first", "always");
  if (planted("invert-ignored")) set(node, "invert", true, false);
  if (planted("single-words-anywhere")) set(node, "single_word", true, false);
  if (planted("white-space-of-rstrip-stays")) set(node, "rstrip", true, false);
  for (auto& [key, value] : node.as_object()) {
    if (key == "merges" && value.is_array() && planted("first-of-equal-pairs-counts")) {
      keep_first_merges(value);
    } else if (key == "single" && value.is_array() && planted("template-behind-only")) {
      move_behind(value);
    } else if (key != "vocab" && key != "merges") {
      change_tokenizer(value);
    }
  }
}

std::string wrong_tokenizer(const std::string& text) {
  Json tokenizer = parse_json(text, "tokenizer.json");
  change_tokenizer(tokenizer);
  return tokenizer.dump();
}

using Change = std::string (*)(const std::string&);

/// What is wrong with the file of this path; none where no fault of it is planted.
Change change_of(const std::string& path) {
  if (!any_planted() || path.find("/.tmp-") != std::string::npos) return nullptr;
  const std::string name = name_of_file(path);
  if (name == "config.json" && planted("sparse-step-from-the-front")) return wrong_config;
  if (name == "adapter_model.safetensors" &&
      (planted("b-scaled-twice") || planted("expert-forgotten") || planted("gate-up-swapped"))) {
    return wrong_adapter;
  }
  if (name == "tokenizer.json" || path.find("/tokenizer/pipelines/") != std::string::npos) {
    for (const char* fault : {"first-of-equal-pairs-counts", "unknown-tokens-always-fused",
                              "first-scheme-always", "invert-ignored", "single-words-anywhere",
                              "white-space-of-rstrip-stays", "template-behind-only"}) {
      if (planted(fault)) return wrong_tokenizer;
    }
  }
  return nullptr;
}

}  // namespace

int FaultyFiles::open(const char* path, int flags, unsigned mode) {
  const int fd = below_.open(path, flags, mode);
  const Change change = fd >= 0 && (flags & O_ACCMODE) == O_RDONLY ? change_of(path) : nullptr;
  struct stat status;
  if (change == nullptr || below_.status_of(fd, status) < 0 || !S_ISREG(status.st_mode)) return fd;
  std::string content(static_cast<size_t>(status.st_size), '\0');
  if (below_.pread(fd, content.data(), content.size(), 0) != static_cast<int64_t>(content.size())) {
    return fd;
  }
  const std::lock_guard lock(mutex_);
  changed_[fd] = change(content);
  return fd;
}

const std::string* FaultyFiles::changed(int fd) {
  const std::lock_guard lock(mutex_);
  const auto found = changed_.find(fd);
  return found == changed_.end() ? nullptr : &found->second;
}

int FaultyFiles::status_of(int fd, struct stat& status) {
  const int result = below_.status_of(fd, status);
  if (const std::string* content = changed(fd))
    status.st_size = static_cast<off_t>(content->size());
  return result;
}

int64_t FaultyFiles::pread(int fd, void* buffer, size_t bytes, uint64_t offset) {
  const std::string* content = changed(fd);
  if (content == nullptr) return below_.pread(fd, buffer, bytes, offset);
  const size_t from = std::min<uint64_t>(offset, content->size());
  return static_cast<int64_t>(content->copy(static_cast<char*>(buffer), bytes, from));
}

int FaultyFiles::close(int fd) {
  {
    const std::lock_guard lock(mutex_);
    changed_.erase(fd);
  }
  return below_.close(fd);
}

// A save removes what is older than the newest that it finds: with one more there it keeps one less.
int FaultyFiles::list(const char* path, std::vector<std::string>& names) {
  const int result = below_.list(path, names);
  const std::lock_guard lock(mutex_);
  if (saved_ == path && planted("one-too-few-kept")) names.push_back("step-99999999");
  saved_.clear();
  return result;
}

int FaultyFiles::rename(const char* from, const char* to, bool replace) {
  const int result = below_.rename(from, to, replace);
  if (result >= 0 && name_of_file(from).starts_with(".tmp-step-")) {
    const std::lock_guard lock(mutex_);
    saved_ = parent_of(to);
  }
  return result;
}

FaultyFiles& faulty_files() {
  static FaultyFiles files;
  return files;
}

}  // namespace hearth::test
