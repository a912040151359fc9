#include "peft/check.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/error_format.h"
#include "base/stop.h"
#include "checkpoint/model_files.h"
#include "model/weight_copy.h"
#include "peft/config.h"
#include "peft/modules.h"
#include "peft/names.h"
#include "peft/tensors.h"

namespace hearth {
namespace {

/// Calls f(bytes, count, first element) for the tensor in pieces.
void each_piece(const SafetensorsFile& file, const SafetensorsEntry& entry,
                std::vector<std::byte>& buffer,
                const std::function<void(const void*, size_t, uint64_t)>& f) {
  buffer.resize(size_t{4} << 20);
  const uint64_t size = entry.end - entry.begin;
  for (uint64_t at = 0; at < size; at += buffer.size()) {
    leave_if_stopped("the adapter was read");
    const auto bytes = static_cast<size_t>(std::min<uint64_t>(buffer.size(), size - at));
    file.read(entry, buffer.data(), bytes, at);
    f(buffer.data(), bytes, at);
  }
}

}  // namespace

bool is_adapter(const std::string& directory) { return has_model_file(directory, kAdapterConfig); }

void check_adapter_names(const SafetensorsFile& file) {
  std::map<std::string, std::vector<int64_t>> first;  // A's, by the name of the module
  const auto& entries = file.header().entries;
  const auto stem = [](const std::string& name) {
    return name.substr(0, name.size() - kLoraA.size());
  };
  for (const SafetensorsEntry& entry : entries) {
    require_adapter_type(file, entry);
    const bool pair = entry.name.ends_with(kLoraA) || entry.name.ends_with(kLoraB);
    if (!entry.name.starts_with(kAdapterPrefix) || (pair && entry.shape.size() != 2)) {
      throw input_error(file.path() + ": unknown tensor " + quoted(entry.name) + " of shape " +
                        shape_text(entry.shape));
    }
    if (entry.name.ends_with(kLoraA)) first[stem(entry.name)] = entry.shape;
  }
  for (const SafetensorsEntry& entry : entries) {
    if (!entry.name.ends_with(kLoraB)) continue;
    const auto found = first.find(stem(entry.name));
    if (found == first.end() || found->second[0] != entry.shape[1]) {
      throw input_error(file.path() + ": tensor " + quoted(entry.name) + " of shape " +
                        shape_text(entry.shape) + " has no lora_A of its rank");
    }
    first.erase(found);
  }
  if (first.empty()) return;
  throw input_error(file.path() + ": tensor " + quoted(first.begin()->first + std::string(kLoraA)) +
                    " has no lora_B");
}

namespace {

/// What settings ask of a file, as far as it can be said without the base: ranks of pairs, and that
/// the modules which are kept whole are there.
void check_against_settings(const AdapterConfig& config, const SafetensorsFile& file) {
  std::set<std::string> saved = config.saved();
  for (const SafetensorsEntry& entry : file.header().entries) {
    const std::string name = name_in_transformers_5(entry.name.substr(kAdapterPrefix.size()));
    if (!name.ends_with(kLoraA)) {
      std::erase_if(saved, [&](const std::string& of) { return module_of(name).ends_with(of); });
      continue;
    }
    const std::string_view module = std::string_view(name).substr(0, name.size() - kLoraA.size());
    if (config.may_have_rank(module, entry.shape[0])) continue;
    throw input_error("{}: tensor {} has rank {}, which neither r nor rank_pattern of {} gives",
                      file.path(), quoted(entry.name), entry.shape[0], config.source());
  }
  if (saved.empty()) return;
  throw input_error(config.source() + ": modules_to_save selects " + quoted(*saved.begin()) +
                    ", which " + file.path() + " does not have");
}

/// One digest a tensor and one over all; with `finite` an input error for a value that is not.
ContentDigest digest_of(const SafetensorsFile& file, bool finite) {
  std::vector<std::byte> buffer;
  std::vector<std::pair<std::string, Digest>> tensors;
  for (const SafetensorsEntry& entry : file.header().entries) {
    const DType type = *safetensors_dtype(entry.dtype);
    Hasher hasher = tensor_hasher(entry.name, entry.dtype, entry.shape);
    each_piece(file, entry, buffer, [&](const void* data, size_t bytes, uint64_t at) {
      hasher.update(data, bytes);
      const auto n = static_cast<int64_t>(bytes / size_of(type));
      const int64_t bad = finite ? find_not_finite(type, data, n) : n;
      if (bad == n) return;
      throw input_error(file.path() + ": tensor " + quoted(entry.name) + ": element " +
                        std::to_string(static_cast<int64_t>(at / size_of(type)) + bad) +
                        " is not finite (NaN or infinity)");
    });
    tensors.emplace_back(entry.name, hasher.digest());
  }
  return content_digest(std::move(tensors));
}

}  // namespace

ContentDigest check_adapter(const std::string& directory, bool follow_links) {
  const AdapterConfig config = open_adapter_config(directory, follow_links);
  const SafetensorsFile file = open_adapter_weights(directory, follow_links);
  check_adapter_names(file);
  check_against_settings(config, file);
  const AdapterNotes notes(file.header(), file.path());
  ContentDigest digest = digest_of(file, true);
  if (notes.content && *notes.content != digest.root) {
    throw input_error(
        "{}: content digest mismatch: written with {}, now {}; the file is damaged, or another "
        "program "
        "changed it",
        file.path(), notes.content->hex(), digest.root.hex());
  }
  return digest;
}

ContentDigest digest_adapter(const std::string& directory, bool follow_links) {
  const SafetensorsFile file = open_adapter_weights(directory, follow_links);
  check_adapter_names(file);
  return digest_of(file, false);
}

}  // namespace hearth
