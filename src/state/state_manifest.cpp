// The manifest is written last, so its presence says that everything else is there. Its last member
// is the hash of all bytes before it, which a reader checks before it trusts anything else.
#include "state/state_manifest.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/planted.h"

namespace hearth {
namespace {

constexpr char kFormat[] = "hearth-state";
// A member that a later version adds gets a row here: {name, version, JSON that older ones mean}.
constexpr ManifestMember kMembers[] = {
    {"format"}, {"version"}, {"step"}, {"chunk_bytes"}, {"files"}, {"root"}, {"extra"},
};
// What follows the hashed bytes: seal, 32 digits, end.
constexpr std::string_view kSeal = ",\n  \"manifest_digest\": \"";
constexpr std::string_view kEnd = "\"\n}\n";
constexpr uint64_t kMostRank = (uint64_t{1} << 31) - 1;
constexpr size_t kTail = kSeal.size() + 32 + kEnd.size();

Json digests_to_json(const std::vector<Digest>& digests) {
  JsonArray array;
  for (const Digest& d : digests) array.emplace_back(d.hex());
  return array;
}

Json texts_to_json(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

bool is_component_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") == std::string::npos;
}

// Reads members of a known type. Refuses by name a member that is missing or has another type.
class Reader {
 public:
  Reader(const Json& object, const std::string& source) : object_(object), source_(source) {
    if (!object.is_object()) refuse("expected an object");
  }
  const Json& member(std::string_view key) const {
    const Json* value = object_.find(key);
    if (!value) refuse(std::string(key) + " is missing");
    return *value;
  }
  uint64_t number(std::string_view key) const {
    const Json& value = member(key);
    if (!value.is_signed() || value.as_int() < 0) refuse(std::string(key) + ": expected a count");
    return value.as_uint();
  }
  std::string text(std::string_view key) const {
    const Json& value = member(key);
    if (!value.is_string()) refuse(std::string(key) + ": expected a string");
    return value.as_string();
  }
  const JsonArray& array(std::string_view key) const {
    const Json& value = member(key);
    if (!value.is_array()) refuse(std::string(key) + ": expected an array");
    return value.as_array();
  }
  Digest digest(std::string_view key) const { return digest_in(member(key), key); }
  Digest digest_in(const Json& value, std::string_view key) const {
    const auto digest = value.is_string() ? Digest::from_hex(value.as_string()) : std::nullopt;
    if (!digest) refuse(std::string(key) + ": expected a digest of 32 hexadecimal digits");
    return *digest;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw input_error(source_ + ": " + what);
  }

 private:
  const Json& object_;
  const std::string& source_;
};

StateFile read_file_entry(const Json& entry, int64_t version, const std::string& source) {
  const Reader reader(entry, source);
  StateFile file;
  file.component = reader.text("component");
  if (!is_component_name(file.component))
    reader.refuse("component: expected a name of a-z, 0-9, - and _");
  if (version >= 2 && entry.find("rank") != nullptr) {
    const uint64_t rank = reader.number("rank");
    if (rank > kMostRank) reader.refuse("rank: too large");
    file.rank = static_cast<int32_t>(rank);
    for (const Json& tensor : reader.array("tensors")) {
      if (!tensor.is_string()) reader.refuse("tensors: expected strings");
      file.tensors.push_back(tensor.as_string());
    }
  }
  if (reader.text("file") != file.name()) reader.refuse("file: expected the name of its component");
  file.bytes = reader.number("bytes");
  file.digest = reader.digest("digest");
  for (const Json& chunk : reader.array("chunks")) {
    file.chunks.push_back(reader.digest_in(chunk, "chunks"));
  }
  if (file.chunks.size() != file.bytes / kStateChunk + (file.bytes % kStateChunk != 0)) {
    reader.refuse("chunks do not fit bytes");
  }
  return file;
}

// Files of a component in several parts stand together, by rank, and no tensor is in two of them.
void check_parts(const std::vector<StateFile>& files, const Reader& reader) {
  std::set<std::string_view> components, tensors;
  const StateFile* last = nullptr;
  for (const StateFile& file : files) {
    const bool goes_on = last != nullptr && last->component == file.component && last->rank &&
                         file.rank && *last->rank < *file.rank;
    if (!goes_on && !components.insert(file.component).second) {
      reader.refuse("files: a component appears twice");
    }
    if (!goes_on) tensors.clear();
    for (const std::string& tensor : file.tensors) {
      if (tensors.insert(tensor).second) continue;
      reader.refuse("files: tensor " + quoted(tensor) + " of " + file.component + " appears twice");
    }
    last = &file;
  }
}

// An older reader cannot know what else a newer version means, so it must not guess.
void check_version(const Reader& reader, const std::string& source) {
  const uint64_t version = reader.number("version");
  if (version == 0) reader.refuse("version: expected 1 or more");
  if (version <= static_cast<uint64_t>(kStateVersion)) return;
  throw NewerState(source + ": saved state of format version " + std::to_string(version) +
                   ", this program reads versions up to " + std::to_string(kStateVersion) +
                   "; use the newer version of the program that saved it");
}

}  // namespace

void add_newer_members(Json& manifest, int64_t version, std::span<const ManifestMember> members) {
  for (const ManifestMember& member : members) {
    if (member.since <= version) continue;
    manifest[member.name] = parse_json(member.if_older, std::string(member.name));
  }
}

int64_t lowest_version(std::span<const StateFile> files) {
  return std::ranges::any_of(files, [](const StateFile& f) { return f.rank.has_value(); }) ? 2 : 1;
}

std::string manifest_text(const StateManifest& manifest) {
  JsonArray files;
  for (const StateFile& file : manifest.files) {
    HEARTH_CHECK(is_component_name(file.component), "state: a component that cannot name a file");
    Json entry;
    entry["component"] = file.component;
    entry["file"] = file.name();
    if (file.rank) entry["rank"] = int64_t{*file.rank};
    entry["bytes"] = file.bytes;
    entry["digest"] = file.digest.hex();
    entry["chunks"] = digests_to_json(file.chunks);
    if (file.rank) entry["tensors"] = texts_to_json(file.tensors);
    files.push_back(std::move(entry));
  }
  Json json;
  json["format"] = kFormat;
  json["version"] = manifest.version;
  json["step"] = manifest.step;
  json["chunk_bytes"] = kStateChunk;
  json["files"] = std::move(files);
  json["root"] = manifest.root.hex();
  json["extra"] = manifest.extra;
  std::erase_if(json.as_object(), [&](const auto& member) {
    const auto known = std::find_if(std::begin(kMembers), std::end(kMembers),
                                    [&](const auto& m) { return m.name == member.first; });
    HEARTH_CHECK(known != std::end(kMembers), "state: a member without a version");
    return known->since > manifest.version;
  });
  std::string text = json.dump(2);
  text.resize(text.size() - std::string_view("\n}").size());
  const std::string hash = digest_of(text).hex();
  return text.append(kSeal).append(hash).append(kEnd);
}

StateManifest parse_manifest(std::string_view text, const std::string& source) {
  const auto damaged = [&] {
    return input_error(source + ": digest mismatch: the file does not match its manifest_digest");
  };
  // The text that is written back has the digest, too: leaving out the one check alone is no fault.
  const bool unchecked = planted("unchecked-manifest");
  if (text.size() < kTail) throw input_error(source + ": is cut short");
  const std::string_view body = text.substr(0, text.size() - kTail);
  const std::string_view tail = text.substr(body.size());
  if (tail != std::string(kSeal) + digest_of(body).hex() + std::string(kEnd) && !unchecked) {
    throw damaged();
  }

  Json json = parse_json(text, source);
  const Reader reader(json, source);
  if (reader.text("format") != kFormat) reader.refuse("not a manifest of saved state");
  check_version(reader, source);
  StateManifest manifest;
  manifest.version = static_cast<int64_t>(reader.number("version"));
  add_newer_members(json, manifest.version, kMembers);
  if (reader.number("chunk_bytes") != kStateChunk) reader.refuse("chunk_bytes: expected 67108864");
  manifest.step = static_cast<int64_t>(reader.number("step"));
  for (const Json& entry : reader.array("files")) {
    manifest.files.push_back(read_file_entry(entry, manifest.version, source));
  }
  check_parts(manifest.files, reader);
  if (manifest.version != lowest_version(manifest.files)) {
    reader.refuse("version: 2, but no rank has a file of its own");
  }
  manifest.root = reader.digest("root");
  manifest.extra = reader.member("extra");
  if (!manifest.extra.is_object()) reader.refuse("extra: expected an object");
  if (manifest_text(manifest) != text && !unchecked) {
    reader.refuse("not in the form of format version " + std::to_string(manifest.version));
  }
  return manifest;
}

}  // namespace hearth
