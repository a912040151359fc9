// A header of a safetensors file; the first byte of the input is the number of bytes that follow it.
// A second reader, slow and written apart from the first, has the same verdict and reads the same
// tensors; every byte of the data belongs to exactly one of them.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_header.h"
#include "support/bounded.h"
#include "support/json_grammar.h"
#include "support/json_mutator.h"

namespace {

using namespace hearth;

__extension__ typedef unsigned __int128 Wide;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Tensor {
  std::string name, dtype;
  std::vector<uint64_t> shape;
  uint64_t begin = 0, end = 0;
};

std::optional<std::vector<uint64_t>> counts(const Json* list) {
  if (list == nullptr || !list->is_array()) return std::nullopt;
  std::vector<uint64_t> result;
  for (const Json& value : list->as_array()) {
    if (!value.is_integer() || (value.is_signed() && value.as_int() < 0)) return std::nullopt;
    result.push_back(value.as_uint());
  }
  return result;
}

std::optional<Tensor> tensor_of(const std::string& name, const Json& json) {
  if (!json.is_object() || json.as_object().size() != 3) return std::nullopt;
  const Json* dtype = json.find("dtype");
  const auto shape = counts(json.find("shape")), offsets = counts(json.find("data_offsets"));
  if (dtype == nullptr || !dtype->is_string() || !shape || !offsets) return std::nullopt;
  const auto bits = safetensors_bits(dtype->as_string());
  if (!bits || offsets->size() != 2 || shape->size() > 64) return std::nullopt;
  Wide total = static_cast<unsigned>(*bits);
  for (const uint64_t size : *shape) {
    if (size >> 63 != 0) return std::nullopt;
    total *= size;
    if (total >> 64 != 0) return std::nullopt;
  }
  Tensor tensor{name, dtype->as_string(), *shape, (*offsets)[0], (*offsets)[1]};
  if (tensor.begin > tensor.end || total != static_cast<Wide>(tensor.end - tensor.begin) * 8) {
    return std::nullopt;
  }
  return tensor;
}

bool all_text(const Json& metadata) {
  if (!metadata.is_object()) return false;
  const JsonObject& members = metadata.as_object();
  return std::all_of(members.begin(), members.end(), [](auto& m) { return m.second.is_string(); });
}

// Each byte in one tensor; a tensor of no bytes stands inside of none.
bool fills(const std::vector<Tensor>& tensors, uint64_t data) {
  std::vector<int> owners(data, 0);
  for (const Tensor& tensor : tensors) {
    if (tensor.end > data) return false;
    for (uint64_t i = tensor.begin; i < tensor.end; ++i) ++owners[i];
    const auto inside = [&](const Tensor& t) {
      return t.begin < tensor.begin && tensor.begin < t.end;
    };
    if (std::any_of(tensors.begin(), tensors.end(), inside)) return false;
  }
  return std::all_of(owners.begin(), owners.end(), [](int n) { return n == 1; });
}

// Of JSON: a number below zero, or -0, which its value does not show: the official reader takes
// neither for a size.
bool has_minus(std::string_view text) {
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && text[i] == '-') {
      return true;
    }
  }
  return false;
}

std::optional<std::vector<Tensor>> read_slowly(std::string_view text, uint64_t data) {
  if (text.empty() || text[0] != '{' || !test::is_json(text) || has_minus(text)) {
    return std::nullopt;
  }
  std::vector<Tensor> tensors;
  const Json json = parse_json(text, "slow");
  for (const auto& [name, value] : json.as_object()) {
    if (name == "__metadata__") {
      if (!all_text(value)) return std::nullopt;
      continue;
    }
    const auto tensor = tensor_of(name, value);
    if (!tensor) return std::nullopt;
    tensors.push_back(*tensor);
  }
  if (!fills(tensors, data)) return std::nullopt;
  return tensors;
}

void compare(const SafetensorsHeader& header, const std::vector<Tensor>& slow) {
  require(header.entries.size() == slow.size());
  for (const SafetensorsEntry& entry : header.entries) {
    const auto same = std::find_if(slow.begin(), slow.end(),
                                   [&](const Tensor& t) { return t.name == entry.name; });
    require(same != slow.end() && same->dtype == entry.dtype);
    require(same->begin == entry.begin && same->end == entry.end);
    require(std::equal(entry.shape.begin(), entry.shape.end(), same->shape.begin(),
                       same->shape.end(),
                       [](int64_t a, uint64_t b) { return static_cast<uint64_t>(a) == b; }));
  }
}

std::string change_header(std::string_view input, uint32_t seed) {
  if (input.empty()) return {};
  return input[0] + test::mutate_json(input.substr(1), seed);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return test::mutate_input(data, size, most, seed, change_header);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const uint64_t follows = size == 0 ? 0 : data[0];
  const std::string_view text(reinterpret_cast<const char*>(data) + (size > 0 ? 1 : 0),
                              size > 0 ? size - 1 : 0);
  std::optional<SafetensorsHeader> header;
  try {
    const test::Bounded bound(size, {.times = 16});  // [0,0,...] is 8 bytes a dimension
    header = parse_safetensors_header(text, 8 + text.size() + follows, "fuzz");
  } catch (const Error& error) {
    require(error.code() == ExitCode::input);
  }
  const auto slow = read_slowly(text, follows);
  require(header.has_value() == slow.has_value());
  if (header) compare(*header, *slow);
  return 0;
}
