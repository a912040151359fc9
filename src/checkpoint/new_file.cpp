#include "checkpoint/new_file.h"

#include <exception>

#include "base/error_format.h"
#include "base/file_ops.h"

namespace hearth {

NewFile::NewFile(const std::string& target) : target_(target) {
  const size_t slash = target.rfind('/');
  parent_ = slash == std::string::npos ? "." : slash == 0 ? "/" : target.substr(0, slash);
  const std::string name = slash == std::string::npos ? target : target.substr(slash + 1);
  if (name.empty() || name == "." || name == "..") {
    throw usage_error("{}: expected the name of a new file", quoted(target));
  }
  const FileInfo info = file_info(target);
  if (info.is_link || info.kind != FileKind::none) {
    throw usage_error("{}: exists already, nothing was written; choose another name", target);
  }
  make_directory(parent_);
  temporary_ = parent_ + "/.tmp-" + name;
  remove_file(temporary_);
}

NewFile::~NewFile() {
  if (published_) return;
  try {
    remove_file(temporary_);
  } catch (const std::exception&) {
    // The error that led here is the one to report; a later start removes what is left.
  }
}

void NewFile::publish() {
  rename_no_replace(temporary_, target_);
  published_ = true;
  sync_directory(parent_);
}

}  // namespace hearth
