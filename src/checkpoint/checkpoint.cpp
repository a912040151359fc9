// Opening a checkpoint: everything that can be checked without reading tensor data.
#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/paths.h"
#include "checkpoint/model_files.h"
#include "checkpoint/mtp_layers.h"
#include "checkpoint/weight_index.h"
#include "model/config_reader.h"

namespace hearth {
namespace {

constexpr const char* kConfig = "config.json";
constexpr const char* kGeneration = "generation_config.json";
constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

// What a result carries along, where the base has it.
constexpr const char* kCompanions[] = {
    kGeneration,
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "added_tokens.json",
    "chat_template.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "LICENSE",
    "LICENSE.txt",
    "LICENSE.md",
    "NOTICE",
};

}  // namespace

Checkpoint::Checkpoint(const std::string& directory, bool follow_links)
    : directory_(without_trailing_slashes(directory)), follow_links_(follow_links) {
  if (file_info(directory_).kind != FileKind::directory) {
    throw input_error(directory_ + ": expected the directory of a checkpoint");
  }
  read_configs();
  open_weight_files(find_weight_files());
  if (!index_text_.empty()) check_index();
  check_tensors();
}

void Checkpoint::read_configs() {
  const std::string config_path = model_file(directory_, kConfig, follow_links_);
  config_ = read_json_file(config_path, kMaxConfigBytes);
  family_ = &family_of(config_, config_path);
  spec_ = family_->read_config(config_, config_path);
  config_dtype(config_, config_path);  // refused if it is none
  std::vector<std::string> names(std::begin(kCompanions), std::end(kCompanions));
  for (std::string& name : template_files(directory_)) names.push_back(std::move(name));
  for (const std::string& name : names) {
    if (!has_model_file(directory_, name)) continue;
    const std::string path = model_file(directory_, name, follow_links_);
    refuse_foreign(read_head(path), path);
    companions_.push_back(name);
  }
  if (!has_model_file(directory_, kGeneration)) return;
  // Decoding stops where generation_config.json says, if it does; else where config.json does.
  const std::string path = directory_ + "/" + kGeneration;
  const Json generation = read_json_file(path, kMaxConfigBytes);
  const std::vector<int64_t> eos = read_eos_ids(generation, path);
  if (!eos.empty()) spec_.eos_ids = eos;
}

std::vector<std::string> Checkpoint::find_weight_files() {
  if (!has_model_file(directory_, kIndex)) {
    if (has_model_file(directory_, kSingle)) return {kSingle};
    for (const std::string& name : list_directory(directory_)) {
      if (name.ends_with(".bin") || name.ends_with(".bin.index.json") || name.ends_with(".pth")) {
        throw input_error(directory_ + ": its weights are pickles (" + quoted(name) +
                          "), which can run code when they are read; convert the checkpoint with "
                          "save_pretrained(..., safe_serialization=True)");
      }
    }
    throw input_error(directory_ + ": has neither " + kSingle + " nor " + kIndex);
  }
  const std::string path = model_file(directory_, kIndex, follow_links_);
  index_text_ = read_text_file(path, kMaxIndexBytes);
  std::set<std::string> names;
  weight_map_ = parse_weight_index(index_text_, path);
  for (const auto& [tensor, file] : weight_map_) names.insert(file);
  if (has_model_file(directory_, kSingle) && !names.contains(kSingle)) {
    throw input_error(directory_ + ": holds " + kSingle +
                      " and an index that does not name it; remove one of the two");
  }
  return {names.begin(), names.end()};
}

void Checkpoint::open_weight_files(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!index_text_.empty() && !has_model_file(directory_, name)) {
      throw input_error(directory_ + "/" + kIndex + ": names " + quoted(name) +
                        ", which does not exist");
    }
    files_.push_back(
        std::make_unique<SafetensorsFile>(model_file(directory_, name, follow_links_)));
    for (const SafetensorsEntry& entry : files_.back()->header().entries) {
      const int file = static_cast<int>(files_.size()) - 1;
      const auto [at, is_new] = locations_.emplace(entry.name, TensorLocation{file, entry});
      if (!is_new) {
        throw input_error(files_.back()->path() + ": tensor " + quoted(entry.name) +
                          " is also in " + files_[static_cast<size_t>(at->second.file)]->path());
      }
    }
  }
}

void Checkpoint::check_index() const {
  const std::string path = directory_ + "/" + kIndex;
  std::set<std::string> listed;
  for (const auto& [tensor, file] : weight_map_) {
    const auto found = locations_.find(tensor);
    if (found == locations_.end()) {
      throw input_error(path + ": tensor " + quoted(tensor) + " is not in " + quoted(file) +
                        " nor in another shard");
    }
    const std::string& holder = files_[static_cast<size_t>(found->second.file)]->path();
    if (holder != directory_ + "/" + file) {
      throw input_error(path + ": tensor " + quoted(tensor) + " is not in " + quoted(file) +
                        " but in " + holder);
    }
    listed.insert(tensor);
  }
  for (const auto& [tensor, location] : locations_) {
    if (!listed.contains(tensor)) {
      throw input_error(files_[static_cast<size_t>(location.file)]->path() + ": tensor " +
                        quoted(tensor) + " is not in the index " + path);
    }
  }
}

void Checkpoint::check_tensors() {
  // Far too few tensors: say so before a table of the config's sizes takes memory.
  int64_t found = 0;
  for (const auto& [name, at] : locations_) {
    found += parts_bound(name, at.entry.shape, at.entry.end - at.entry.begin);
  }
  const int64_t expected = family_->tensor_count(spec_);
  if (expected / 2 > found) {
    throw input_error(directory_ + ": config.json describes " + std::to_string(expected) +
                      " tensors, experts counted one by one; the weight files hold " +
                      std::to_string(found));
  }
  const ParameterTable table = family_->make_table(spec_);
  const auto stored = [&](const std::string& name) { return locations_.contains(name); };
  layout_ = PublishedLayout(table, *family_, stored, directory_);
  for (const PublishedTensor& tensor : layout_.tensors()) check_tensor(tensor.name, tensor.shape);
  for (const auto& [name, location] : locations_) {
    if (layout_.find(name) != nullptr || family_->ignores(name) ||
        is_of_mtp_layer(name, config_, directory_ + "/" + kConfig, spec_, stored)) {
      continue;
    }
    const std::string source = family_->tied_source(spec_, name);
    if (source.empty()) {
      throw input_error(files_[static_cast<size_t>(location.file)]->path() + ": unknown tensor " +
                        quoted(name) + ", which no key of config.json explains");
    }
    check_tensor(name, this->location(source).entry.shape);
  }
}

void Checkpoint::check_tensor(const std::string& name, const std::vector<int64_t>& shape) const {
  const auto found = locations_.find(name);
  if (found == locations_.end()) {
    throw input_error(directory_ + ": tensor " + quoted(name) + " of shape " + shape_text(shape) +
                      " is missing from " +
                      (files_.size() == 1 ? files_[0]->path() : "all weight files"));
  }
  const SafetensorsEntry& entry = found->second.entry;
  const auto where = [&] {
    return files_[static_cast<size_t>(found->second.file)]->path() + ": tensor " + quoted(name);
  };
  if (entry.shape != shape) {
    throw input_error(where() + " has shape " + shape_text(entry.shape) +
                      ", config.json asks for " + shape_text(shape));
  }
  if (entry.dtype != "F32" && entry.dtype != "BF16" && entry.dtype != "F16") {
    throw input_error(where() + " is stored as " + entry.dtype + "; expected F32, BF16 or F16");
  }
}

const TensorLocation& Checkpoint::location(const std::string& tensor) const {
  const auto found = locations_.find(tensor);
  HEARTH_CHECK(found != locations_.end(), "checkpoint: no such tensor: " + tensor);
  return found->second;
}

ParameterTable Checkpoint::make_table() const {
  ParameterTable table = family_->make_table(spec_);
  for (const PublishedTensor& published : layout_.tensors()) {
    const DType stored = *safetensors_dtype(location(published.name).entry.dtype);
    for (const TensorId id : published.parts) table.tensor(id).stored = stored;
  }
  return table;
}

}  // namespace hearth
