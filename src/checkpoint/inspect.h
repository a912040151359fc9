// The data that `inspect` shows of a checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/json.h"
#include "checkpoint/checkpoint.h"

namespace hearth {

/// Tensors of one block kind: "embedding", "attention", "router", "expert", "dense", "head".
struct ParameterGroup {
  std::string name;
  int64_t blocks = 0;
  int64_t tensors = 0;
  int64_t parameters = 0;
  int64_t trained = 0;  // of the parameters
  int64_t bytes = 0;    // as stored
  std::string types;    // "BF16" or "BF16, F32"
};

/// Digests of tensors, sorted by name, and one digest over all of them.
struct ContentDigest {
  std::vector<std::pair<std::string, Digest>> tensors;
  Digest root;
};

/// A tensor of the model as stored.
struct StoredTensorInfo {
  std::string name;
  std::string type;  // "BF16"
  std::vector<int64_t> shape;
  bool trained = false;
};

struct Inspection {
  ModelSpec spec;
  int64_t parameters = 0;
  int64_t active_parameters = 0;  // per token: without the experts that it does not visit
  int64_t trained_parameters = 0;
  int64_t bytes = 0;
  int64_t files = 0;
  ExpertLayout experts = ExpertLayout::per_expert;
  std::vector<ParameterGroup> groups;
  std::vector<StoredTensorInfo> tensors;  // in the order of the table
};

/// `table` is the checkpoint's table, with trained tensors marked.
Inspection inspect_checkpoint(const Checkpoint& checkpoint, const ParameterTable& table);

/// One digest per stored tensor: XXH3-128 of name, type, shape and bytes. Independent of the
/// directory, the shards and the order in a file. Reads every tensor.
ContentDigest digest_checkpoint(const Checkpoint& checkpoint);
/// A hasher that has the header entry of a tensor; the caller adds the bytes. Saved states and
/// adapters use the same rule.
Hasher tensor_hasher(const std::string& name, const std::string& type,
                     const std::vector<int64_t>& shape);
/// Sorts by name and sets the root.
ContentDigest content_digest(std::vector<std::pair<std::string, Digest>> tensors);

/// {"digest": {name: hex, ...}, "root": hex}
Json digest_json(const ContentDigest& digest);
/// "HEX  NAME" per line, the root last.
std::string digest_text(const ContentDigest& digest);

}  // namespace hearth
