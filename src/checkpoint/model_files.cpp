#include "checkpoint/model_files.h"

#include <algorithm>

#include "base/error_format.h"
#include "base/file_failure.h"
#include "base/file_ops.h"
#include "base/setting.h"

namespace hearth {
namespace {

// Paths are real ones here: absolute, without links.
bool is_below(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder == "/" ? folder : folder + "/");
}

/// For .../snapshots/REVISION...: the folder .../blobs; empty elsewhere.
std::string blobs_of(const std::string& directory) {
  for (std::string at = parent_of(directory); at != "/"; at = parent_of(at)) {
    if (name_of_file(at) != "snapshots") continue;
    const std::string parent = parent_of(at);
    return (parent == "/" ? "" : parent) + "/blobs";
  }
  return {};
}

bool link_allowed(const std::string& target, const std::string& directory) {
  if (is_below(target, directory)) return true;
  const std::string blobs = blobs_of(directory);
  return !blobs.empty() && is_below(target, blobs);
}

bool is_plain(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name != "." && name != "..";
}

}  // namespace

std::string model_file(const std::string& directory, const std::string& name, bool follow_links) {
  const size_t slash = name.find('/');
  const bool in_folder = slash != std::string::npos;
  HEARTH_CHECK(in_folder ? is_plain(name.substr(0, slash)) && is_plain(name.substr(slash + 1))
                         : is_plain(name),
               "model file: not a plain name");
  const std::string path = directory + "/" + name;
  // The folder may be a link, too.
  if (follow_links || (!in_folder && !file_info(path).is_link)) return path;
  const FileInfo info = file_info(path);
  if (info.is_link && info.kind == FileKind::none) {
    throw input_error("{}: a link to a file that does not exist", path);
  }
  const std::string target = real_path(path);
  if (!link_allowed(target, real_path(directory))) {
    throw input_error("{}: a link out of the model directory, to {}; to read it, pass {}", path,
                      quoted(target), spelled(Setting::follow_links));
  }
  return path;
}

bool has_model_file(const std::string& directory, const std::string& name) {
  const FileInfo info = file_info(directory + "/" + name);
  return info.is_link || info.kind != FileKind::none;
}

std::vector<std::string> template_files(const std::string& directory) {
  const std::string folder = "additional_chat_templates";
  std::vector<std::string> names;
  if (file_info(directory + "/" + folder).kind != FileKind::directory) return names;
  for (const std::string& name : list_directory(directory + "/" + folder)) {
    if (name.ends_with(".jinja")) names.push_back(folder + "/" + name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void refuse_foreign(std::string_view head, const std::string& path) {
  if (head.starts_with("version https://git-lfs.github.com/spec/")) {
    throw input_error(path + ": an un-pulled Git LFS pointer, not the file itself; " +
                      "run 'git lfs pull' in the repository it came from");
  }
  // The ninth byte of a safetensors file is '{', whatever its length field looks like.
  const bool safetensors = head.size() > 8 && head[8] == '{';
  const bool zip = head.starts_with("PK\x03\x04");
  const bool pickle = head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
  if (!safetensors && (zip || pickle)) {
    throw input_error(path + ": a pickle (torch.save), which can run code when it is read; " +
                      "convert it with save_pretrained(..., safe_serialization=True)");
  }
}

std::string read_head(const std::string& path) {
  const InputFile file(path);
  std::string head(static_cast<size_t>(std::min<uint64_t>(file.size(), 64)), '\0');
  file.read(head.data(), head.size(), 0);
  return head;
}

std::string read_text_file(const std::string& path, uint64_t max_bytes) {
  refuse_foreign(read_head(path), path);
  return read_file(path, max_bytes);
}

Json read_json_file(const std::string& path, uint64_t max_bytes) {
  return parse_json(read_text_file(path, max_bytes), path);
}

}  // namespace hearth
