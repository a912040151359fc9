// The manifest: written last, so that its presence says that everything else is there. Its own hash
// is its last member, over all bytes before it; so it is checked before anything in it is believed.
#include <set>

#include "base/planted.h"
#include "state/state_files.h"

namespace hearth {
namespace {

constexpr int64_t kVersion = 1;
constexpr char kFormat[] = "hearth-state";
// What follows the hashed bytes: seal, 32 digits, end.
constexpr std::string_view kSeal = ",\n  \"manifest_digest\": \"";
constexpr std::string_view kEnd = "\"\n}\n";
constexpr size_t kTail = kSeal.size() + 32 + kEnd.size();

Json digests_to_json(const std::vector<Digest>& digests) {
  JsonArray array;
  for (const Digest& d : digests) array.emplace_back(d.hex());
  return array;
}

bool is_component_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") == std::string::npos;
}

// Members of known type; what is missing or of another type is refused by name.
class Reader {
 public:
  Reader(const Json& object, const std::string& source) : object_(object), source_(source) {
    if (!object.is_object()) refuse("a value that should be an object");
  }
  const Json& member(std::string_view key) const {
    const Json* value = object_.find(key);
    if (!value) refuse("no " + std::string(key));
    return *value;
  }
  uint64_t number(std::string_view key) const {
    const Json& value = member(key);
    if (!value.is_signed() || value.as_int() < 0) refuse(std::string(key) + " is no count");
    return value.as_uint();
  }
  std::string text(std::string_view key) const {
    const Json& value = member(key);
    if (!value.is_string()) refuse(std::string(key) + " is no string");
    return value.as_string();
  }
  const JsonArray& array(std::string_view key) const {
    const Json& value = member(key);
    if (!value.is_array()) refuse(std::string(key) + " is no array");
    return value.as_array();
  }
  Digest digest(std::string_view key) const { return digest_in(member(key), key); }
  Digest digest_in(const Json& value, std::string_view key) const {
    const auto digest = value.is_string() ? Digest::from_hex(value.as_string()) : std::nullopt;
    if (!digest) refuse(std::string(key) + " is no digest");
    return *digest;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw input_error(source_ + ": " + what);
  }

 private:
  const Json& object_;
  const std::string& source_;
};

StateFile read_file_entry(const Json& entry, const std::string& source) {
  const Reader reader(entry, source);
  StateFile file;
  file.component = reader.text("component");
  if (!is_component_name(file.component)) reader.refuse("component is no plain name");
  if (reader.text("file") != file.name()) reader.refuse("file has not the name of its component");
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

}  // namespace

std::string manifest_text(const StateManifest& manifest) {
  JsonArray files;
  for (const StateFile& file : manifest.files) {
    HEARTH_CHECK(is_component_name(file.component), "state: a component that cannot name a file");
    Json entry;
    entry["component"] = file.component;
    entry["file"] = file.name();
    entry["bytes"] = file.bytes;
    entry["digest"] = file.digest.hex();
    entry["chunks"] = digests_to_json(file.chunks);
    files.push_back(std::move(entry));
  }
  Json json;
  json["format"] = kFormat;
  json["version"] = kVersion;
  json["step"] = manifest.step;
  json["chunk_bytes"] = kStateChunk;
  json["files"] = std::move(files);
  json["root"] = manifest.root.hex();
  json["extra"] = manifest.extra;
  std::string text = json.dump(2);
  text.resize(text.size() - std::string_view("\n}").size());
  const std::string hash = digest_of(text).hex();
  return text.append(kSeal).append(hash).append(kEnd);
}

StateManifest parse_manifest(std::string_view text, const std::string& source) {
  const auto damaged = [&] {
    return input_error(source + ": its bytes have not the digest it names");
  };
  // The text that is written back has the digest, too: leaving out the one check alone is no fault.
  const bool unchecked = planted("unchecked-manifest");
  if (text.size() < kTail) throw input_error(source + ": is cut short");
  const std::string_view body = text.substr(0, text.size() - kTail);
  const std::string_view tail = text.substr(body.size());
  if (tail != std::string(kSeal) + digest_of(body).hex() + std::string(kEnd) && !unchecked) {
    throw damaged();
  }

  const Json json = parse_json(text, source);
  const Reader reader(json, source);
  if (reader.text("format") != kFormat) reader.refuse("is no manifest of saved state");
  if (reader.number("version") != kVersion) {
    reader.refuse("has format version " + std::to_string(reader.number("version")) +
                  ", this program reads " + std::to_string(kVersion));
  }
  if (reader.number("chunk_bytes") != kStateChunk) reader.refuse("chunk_bytes is not 64 MiB");
  StateManifest manifest;
  manifest.step = static_cast<int64_t>(reader.number("step"));
  std::set<std::string> components;
  for (const Json& entry : reader.array("files")) {
    manifest.files.push_back(read_file_entry(entry, source));
    if (!components.insert(manifest.files.back().component).second) {
      reader.refuse("names a component twice");
    }
  }
  manifest.root = reader.digest("root");
  manifest.extra = reader.member("extra");
  if (!manifest.extra.is_object()) reader.refuse("extra is no object");
  if (manifest_text(manifest) != text && !unchecked) {
    reader.refuse("is not written as this format says");
  }
  return manifest;
}

}  // namespace hearth
