#include "checkpoint/hub_cache.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/file_ops.h"

namespace hearth {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string hub_cache() {
  if (const std::string cache = environment("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const std::string home = environment("HF_HOME"); !home.empty()) return home + "/hub";
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) {
    return cache + "/huggingface/hub";
  }
  return environment("HOME") + "/.cache/huggingface/hub";
}

/// A name as the hub has them: it can be part of a path.
bool is_plain(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= 128 && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), allowed);
}

/// The snapshot's name that a reference holds; empty if there is no such reference.
std::string commit_of(const std::string& reference) {
  if (file_info(reference).kind != FileKind::regular) return "";
  std::string commit = read_file(reference, 4096);
  while (!commit.empty() && (commit.back() == '\n' || commit.back() == '\r')) commit.pop_back();
  if (!is_plain(commit)) {
    throw input_error(reference + ": expected the name of a snapshot, found " + quoted(commit));
  }
  return commit;
}

struct HubKind {
  const char* folder;   // before the names of its folders in the cache
  const char* missing;  // what the user may have meant instead
  const char* type;     // option of hf download
};

/// nullopt for a name of another form than ORG/NAME or ORG/NAME@REVISION.
std::optional<std::string> find_snapshot(const std::string& name, const HubKind& kind) {
  const size_t at = std::min(name.find('@'), name.size());
  const std::string repository = name.substr(0, at);
  const std::string revision = at < name.size() ? name.substr(at + 1) : "main";
  const size_t slash = std::min(repository.find('/'), repository.size());
  const std::string organisation = repository.substr(0, slash);
  const std::string own = slash < repository.size() ? repository.substr(slash + 1) : "";
  if (!is_plain(organisation) || !is_plain(own) || !is_plain(revision)) return std::nullopt;

  const std::string folder = hub_cache() + "/" + kind.folder + "--" + organisation + "--" + own;
  const std::string commit = commit_of(folder + "/refs/" + revision);
  const std::string snapshot = folder + "/snapshots/" + (commit.empty() ? revision : commit);
  if (file_info(snapshot).kind == FileKind::directory) return snapshot;
  throw input_error(quoted(name) + ": neither " + kind.missing + " nor in the hub cache (" +
                    folder + (revision == "main" ? "" : ", revision " + revision) +
                    "); hearth downloads nothing, so run 'hf download " + kind.type + repository +
                    (revision == "main" ? "" : " --revision " + revision) + "' first");
}

}  // namespace

std::string find_model(const std::string& name) {
  const FileInfo info = file_info(name);
  if (info.kind != FileKind::none || info.is_link) return name;
  return find_snapshot(name, {"models", "a directory", ""}).value_or(name);
}

std::optional<std::string> find_cached_data_set(const std::string& name) {
  return find_snapshot(name, {"datasets", "a file or directory", "--repo-type dataset "});
}

ModelName name_of_model(const std::string& given, const std::string& directory) {
  const size_t at = given.find('@');
  if (given == directory || at == std::string::npos) return {given, ""};
  return {given.substr(0, at), given.substr(at + 1)};
}

}  // namespace hearth
