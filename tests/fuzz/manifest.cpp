// The manifest of a saved state. What is accepted is written back as the same bytes, and with any one
// byte changed it is refused. Mutations are sealed again, so that they pass the digest and reach what
// stands behind it.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "state/state_manifest.h"
#include "support/bounded.h"
#include "support/json_mutator.h"

namespace {

using namespace hearth;

// The form of the end, as docs/checkpoint-format.md has it.
constexpr std::string_view kSeal = ",\n  \"manifest_digest\": \"";
constexpr std::string_view kEnd = "\"\n}\n";
constexpr size_t kTail = kSeal.size() + 32 + kEnd.size();

void check(bool condition) {
  if (!condition) std::abort();
}

bool accepted(std::string_view text) {
  try {
    parse_manifest(text, "fuzz");
    return true;
  } catch (const Error& error) {
    // A version that is not known yet is told as such: newer states are no damage.
    const bool newer = dynamic_cast<const NewerState*>(&error) != nullptr;
    check(error.code() == (newer ? ExitCode::storage : ExitCode::input));
    return false;
  }
}

// The invariants again, by slow independent code.
void check_content(const StateManifest& manifest) {
  check(manifest.step >= 0);
  std::set<std::string> names;
  std::set<std::pair<std::string, std::string>> tensors;
  bool has_parts = false;
  for (const StateFile& file : manifest.files) {
    check(names.insert(file.name()).second);
    check(!file.rank || *file.rank >= 0);
    check(file.rank || file.tensors.empty());
    if (file.rank) check(!names.contains(file.component + ".safetensors"));
    for (const std::string& tensor : file.tensors) {
      check(tensors.insert({file.component, tensor}).second);
    }
    has_parts = has_parts || file.rank;
    check(file.component.find_first_of("/.\\ \n") == std::string::npos && !file.component.empty());
    uint64_t left = file.bytes;
    for (size_t i = 0; i < file.chunks.size(); ++i) {
      check(left > 0);
      left -= std::min<uint64_t>(left, kStateChunk);
    }
    check(left == 0);
  }
  check(manifest.version == (has_parts ? 2 : 1));
}

void check_changed_byte(std::string text, size_t at, int change) {
  text[at] = static_cast<char>(text[at] ^ change);
  check(!accepted(text));
}

// Changes fields, and seals what comes of it.
std::string change_sealed(std::string_view text, uint32_t seed) {
  std::string body(text);
  if (text.size() > kTail && text.ends_with(kEnd)) {
    body = std::string(text.substr(0, text.size() - kTail)) + "\n}";
  }
  std::string changed;
  try {
    changed = parse_json(test::mutate_json(body, seed), "fuzz").dump(2);
  } catch (const Error&) {
    return body;
  }
  if (changed.ends_with("\n}")) changed.resize(changed.size() - 2);
  const std::string hash = digest_of(changed).hex();
  return changed.append(kSeal).append(hash).append(kEnd);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return test::mutate_input(data, size, most, seed, change_sealed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  StateManifest manifest;
  {
    const test::Bounded bound(size, {.times = 64});  // a value of 2 bytes of text is one of 40
    if (!accepted(text)) return 0;
  }
  manifest = parse_manifest(text, "fuzz");
  check_content(manifest);
  check(manifest_text(manifest) == text);
  const uint64_t draw = digest_of(text).low;
  for (size_t i = 0; i < 8; ++i) {
    check_changed_byte(std::string(text), (draw >> 8 * i) * 2654435761u % size, 1 << i);
  }
  static const bool all_bytes = [&] {  // of the first one that is accepted
    for (size_t at = 0; at < size; ++at) check_changed_byte(std::string(text), at, 0x20);
    return true;
  }();
  check(all_bytes);
  return 0;
}
