// Reads the files of a model directory: which links it follows, and which common mistakes it
// refuses with advice.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace hearth {

/// The checked path of a file in a model directory. `name` is a plain name or `folder/name`, and
/// the file is regular or a link. A link may lead to a file in the directory. If the directory is
/// below the snapshots/ of a hub cache, a link may also lead to that cache's blobs/. With
/// `follow_links` it may lead anywhere. Otherwise raises an input error naming link and target. The
/// directory itself may be a link.
std::string model_file(const std::string& directory, const std::string& name, bool follow_links);

/// Whether the directory has such a file, or a link of that name, even a broken link.
bool has_model_file(const std::string& directory, const std::string& name);

/// Chat templates beside chat_template.jinja: additional_chat_templates/*.jinja, sorted.
std::vector<std::string> template_files(const std::string& directory);

/// Raises an input error if a file that begins with `head` is an unfetched Git LFS pointer or a
/// pickle (bare or in torch's zip).
void refuse_foreign(std::string_view head, const std::string& path);

/// Up to the first 64 bytes of a regular file.
std::string read_head(const std::string& path);

/// The content of a text file, checked by `refuse_foreign`. Input error if it is larger than
/// max_bytes.
std::string read_text_file(const std::string& path, uint64_t max_bytes);
Json read_json_file(const std::string& path, uint64_t max_bytes);

/// Size limits of files that are read whole. Published files are far smaller.
inline constexpr uint64_t kMaxConfigBytes = uint64_t{4} << 20;
inline constexpr uint64_t kMaxIndexBytes = uint64_t{32} << 20;

}  // namespace hearth
