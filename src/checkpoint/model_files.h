// Reading the files of a model directory: which links may be followed, and what is refused with a
// sentence of help because users bring it by mistake.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace hearth {

/// The path of a file of a model directory, checked: `name` is a plain name or one in a folder
/// (`folder/name`), a regular file or a link. A link may lead to a file in the directory or, when the directory lies below the
/// snapshots/ of a hub cache, in that cache's blobs/; anywhere only with `follow_links`. Otherwise
/// an input error naming link and target. The directory itself may be a link.
std::string model_file(const std::string& directory, const std::string& name, bool follow_links);

/// Whether the directory has such a file (or a link of that name, even one that leads nowhere).
bool has_model_file(const std::string& directory, const std::string& name);

/// Chat templates beside chat_template.jinja: additional_chat_templates/*.jinja, in order.
std::vector<std::string> template_files(const std::string& directory);

/// Raises an input error if a file that begins so is an un-pulled Git LFS pointer or a pickle (bare
/// or in torch's zip).
void refuse_foreign(std::string_view head, const std::string& path);

/// Up to the first 64 bytes of a regular file.
std::string read_head(const std::string& path);

/// A whole text file, checked by `refuse_foreign`; input error when larger than max_bytes.
std::string read_text_file(const std::string& path, uint64_t max_bytes);
Json read_json_file(const std::string& path, uint64_t max_bytes);

/// Limits of what is read whole: memory stays far below the machine's, published files far below
/// the limits.
inline constexpr uint64_t kMaxConfigBytes = uint64_t{4} << 20;
inline constexpr uint64_t kMaxIndexBytes = uint64_t{32} << 20;

}  // namespace hearth
