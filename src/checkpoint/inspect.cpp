// Counts and digests.
#include "checkpoint/inspect.h"

#include <algorithm>
#include <set>

namespace hearth {
namespace {

constexpr const char* kGroupNames[] = {"embedding", "attention", "router", "expert",
                                       "shared",    "dense",     "head"};

}  // namespace

Inspection inspect_checkpoint(const Checkpoint& checkpoint, const ParameterTable& table) {
  const ModelSpec& spec = checkpoint.spec();
  Inspection out;
  out.spec = spec;
  out.files = static_cast<int64_t>(checkpoint.files().size());
  out.experts = checkpoint.layout().experts();
  std::vector<std::set<std::string>> types(std::size(kGroupNames));
  std::vector<ParameterGroup> groups(std::size(kGroupNames));
  int64_t idle = 0;  // parameters of the experts that a token does not visit
  for (const Block& block : table.blocks()) {
    const auto kind = static_cast<size_t>(block.kind);
    ParameterGroup& group = groups[kind];
    ++group.blocks;
    int64_t parameters = 0;
    for (TensorId id = block.begin; id < block.end; ++id) {
      const Tensor& tensor = table.tensor(id);
      parameters += tensor.size();
      if (tensor.trainable) group.trained += tensor.size();
      group.bytes += tensor.size() * static_cast<int64_t>(size_of(tensor.stored));
      types[kind].insert(safetensors_name(tensor.stored));
    }
    group.parameters += parameters;
    const bool visited = block.kind != BlockKind::expert || block.expert < spec.experts_per_token;
    if (!visited) idle += parameters;
  }
  for (const PublishedTensor& tensor : checkpoint.layout().tensors()) {
    const Tensor& first = table.tensor(tensor.parts[0]);
    ++groups[static_cast<size_t>(table.block(first.block).kind)].tensors;
    out.tensors.push_back(
        {tensor.name, safetensors_name(first.stored), tensor.shape, first.trainable});
  }
  for (size_t kind = 0; kind < groups.size(); ++kind) {
    ParameterGroup& group = groups[kind];
    if (group.blocks == 0) continue;
    group.name = kGroupNames[kind];
    for (const std::string& type : types[kind]) {
      group.types += (group.types.empty() ? "" : ", ") + type;
    }
    out.parameters += group.parameters;
    out.trained_parameters += group.trained;
    out.bytes += group.bytes;
    out.groups.push_back(group);
  }
  out.active_parameters = out.parameters - idle;
  return out;
}

Hasher tensor_hasher(const std::string& name, const std::string& type,
                     const std::vector<int64_t>& shape) {
  Hasher hasher;
  hasher.update_field(name);
  hasher.update_field(type);
  hasher.update_u64(shape.size());
  for (const int64_t size : shape) hasher.update_u64(static_cast<uint64_t>(size));
  return hasher;
}

ContentDigest content_digest(std::vector<std::pair<std::string, Digest>> tensors) {
  ContentDigest out;
  out.tensors = std::move(tensors);
  std::sort(out.tensors.begin(), out.tensors.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  Hasher root;
  for (const auto& [name, digest] : out.tensors) {
    root.update_field(name);
    root.update_u64(digest.high);
    root.update_u64(digest.low);
  }
  out.root = root.digest();
  return out;
}

ContentDigest digest_checkpoint(const Checkpoint& checkpoint) {
  std::vector<std::byte> buffer(size_t{4} << 20);
  std::vector<std::pair<std::string, Digest>> tensors;
  for (const auto& file : checkpoint.files()) {
    for (const SafetensorsEntry& entry : file->header().entries) {
      Hasher hasher = tensor_hasher(entry.name, entry.dtype, entry.shape);
      const uint64_t size = entry.end - entry.begin;
      for (uint64_t at = 0; at < size; at += buffer.size()) {
        const auto bytes = static_cast<size_t>(std::min<uint64_t>(buffer.size(), size - at));
        file->read(entry, buffer.data(), bytes, at);
        hasher.update(buffer.data(), bytes);
      }
      tensors.emplace_back(entry.name, hasher.digest());
    }
  }
  return content_digest(std::move(tensors));
}

Json digest_json(const ContentDigest& digest) {
  JsonObject tensors;
  for (const auto& [name, value] : digest.tensors) tensors.emplace_back(name, value.hex());
  return JsonObject{{"digest", std::move(tensors)}, {"root", digest.root.hex()}};
}

std::string digest_text(const ContentDigest& digest) {
  std::string out;
  for (const auto& [name, value] : digest.tensors) out += value.hex() + "  " + name + "\n";
  return out + digest.root.hex() + "  root\n";
}

}  // namespace hearth
