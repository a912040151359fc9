#include "hostile/saved_state.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/hash.h"

namespace hearth::test {
namespace {

namespace fs = std::filesystem;

constexpr size_t kChunk = size_t{64} << 20;

std::string sealed(const std::string& text) {
  return text + ",\n  \"manifest_digest\": \"" + digest_of(text).hex() + "\"\n}\n";
}

/// Before the comma that precedes the seal.
std::string unsealed(const std::string& text) {
  return text.substr(0, text.rfind(",\n  \"manifest_digest\""));
}

Json members_of(const Place& place) {
  return parse_json(unsealed(place.read(kManifest)) + "\n}", "manifest");
}

void write_members(const Place& place, const Json& members) {
  const std::string text = members.dump(2);
  place.write(kManifest, sealed(text.substr(0, text.rfind("\n}"))));
}

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data(), 8);
  return value;
}

/// The digest of a component's content; of nothing where the file cannot be read.
Digest content_digest(const std::string& name, std::string_view file) {
  Hasher hasher;
  hasher.update_field(name);
  try {
    const uint64_t length = little_endian(file);
    const Json header = parse_json(file.substr(8, length), "header");
    std::map<std::string, const Json*> tensors;
    for (const auto& [tensor, entry] : header.as_object()) {
      if (tensor != "__metadata__") tensors[tensor] = &entry;
    }
    hasher.update_u64(tensors.size());
    for (const auto& [tensor, entry] : tensors) {
      const JsonArray& shape = entry->find("shape")->as_array();
      const JsonArray& offsets = entry->find("data_offsets")->as_array();
      hasher.update_field(tensor);
      hasher.update_field(entry->find("dtype")->as_string());
      hasher.update_u64(shape.size());
      for (const Json& n : shape) hasher.update_u64(n.as_uint());
      const uint64_t begin = offsets[0].as_uint(), size = offsets[1].as_uint() - begin;
      hasher.update_field(digest_of(file.substr(8 + length + begin, size)).hex());
    }
  } catch (const std::exception&) {
  }
  return hasher.digest();
}

Digest root_of(const Json& members) {
  std::map<std::string, std::string> components;
  for (const Json& entry : members.find("files")->as_array()) {
    components[entry.find("component")->as_string()] = entry.find("digest")->as_string();
  }
  Hasher hasher;
  hasher.update_u64(components.size());
  for (const auto& [name, digest] : components) {
    hasher.update_field(name);
    hasher.update_field(digest);
  }
  return hasher.digest();
}

/// The state of a run, made once.
const Place& trained() {
  static const Place place;
  static const bool done = [] {
    const Outcome outcome = run_in(place, {"train", "--quiet", "run.yaml"});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    return true;
  }();
  static_cast<void>(done);
  return place;
}

}  // namespace

void with_state(const Place& place) {
  const std::string from = trained().path("run/state");
  fs::create_directory(place.path("run"));
  fs::copy(from, place.path("run/state"), fs::copy_options::recursive);
}

std::function<void(const Place&)> state(std::function<void(const Place&)> change) {
  return [change = std::move(change)](const Place& place) {
    with_state(place);
    change(place);
  };
}

std::function<void(const Place&)> manifest(std::function<void(Json&)> change) {
  return state([change = std::move(change)](const Place& place) {
    Json members = members_of(place);
    change(members);
    write_members(place, members);
  });
}

std::function<void(const Place&)> manifest_text(std::function<void(std::string&)> change) {
  return state([change = std::move(change)](const Place& place) {
    std::string text = unsealed(place.read(kManifest));
    change(text);
    place.write(kManifest, sealed(text));
  });
}

std::function<void(const Place&)> component(const std::string& name,
                                            std::function<void(std::string&)> change) {
  return state([name, change = std::move(change)](const Place& place) {
    const std::string path = kState + "/" + name + ".safetensors";
    std::string file = place.read(path);
    change(file);
    place.write(path, file);
    Json members = members_of(place);
    for (Json& entry : members["files"].as_array()) {
      if (entry.find("component")->as_string() != name) continue;
      JsonArray chunks;
      for (size_t at = 0; at < file.size(); at += kChunk) {
        chunks.emplace_back(digest_of(std::string_view(file).substr(at, kChunk)).hex());
      }
      entry["bytes"] = uint64_t{file.size()};
      entry["chunks"] = std::move(chunks);
      entry["digest"] = content_digest(name, file).hex();
    }
    members["root"] = root_of(members).hex();
    write_members(place, members);
  });
}

std::string progress_file(std::string_view text) {
  std::string header =
      "{\"__metadata__\":{\"component\":\"progress\",\"format\":\"pt\"},\"text\":"
      "{\"dtype\":\"U8\",\"shape\":[" +
      std::to_string(text.size()) + "],\"data_offsets\":[0," + std::to_string(text.size()) + "]}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return raw_safetensors(header, text);
}

}  // namespace hearth::test
