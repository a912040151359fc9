#include "checkpoint/new_directory.h"

#include <exception>

#include "base/error_format.h"
#include "base/file_ops.h"
#include "base/paths.h"

namespace hearth {

NewDirectory::NewDirectory(const std::string& target) : target_(without_trailing_slashes(target)) {
  const size_t slash = target_.rfind('/');
  parent_ = slash == std::string::npos ? "." : slash == 0 ? "/" : target_.substr(0, slash);
  const std::string name = slash == std::string::npos ? target_ : target_.substr(slash + 1);
  if (name.empty() || name == "." || name == "..") {
    throw usage_error("{}: expected the name of a new directory", quoted(target));
  }
  const FileInfo info = file_info(target_);
  if (info.is_link || info.kind != FileKind::none) {
    throw usage_error("{}: exists already, nothing was written; choose another name", target_);
  }
  make_directory(parent_);
  temporary_ = parent_ + "/.tmp-" + name;
  remove_tree(temporary_);
  make_directory(temporary_);
}

NewDirectory::~NewDirectory() {
  if (published_) return;
  try {
    remove_tree(temporary_);
  } catch (const std::exception&) {
    // The error that led here is the one to report; a later start removes what is left.
  }
}

template <typename Make>
void NewDirectory::in_folder(const std::string& name, const Make& make) const {
  const size_t slash = name.find('/');
  const std::string folder = temporary_ + "/" + name.substr(0, slash);
  if (slash != std::string::npos) make_directory(folder);
  make(temporary_ + "/" + name);
  if (slash != std::string::npos) sync_directory(folder);
}

void NewDirectory::copy(const std::string& from, const std::string& name) const {
  in_folder(name, [&](const std::string& path) { copy_file(from, path); });
}

void NewDirectory::write(const std::string& name, std::string_view content) const {
  in_folder(name, [&](const std::string& path) {
    OutputFile file(path);
    file.write(content.data(), content.size());
    file.close();
  });
}

void NewDirectory::publish() {
  sync_directory(temporary_);
  rename_no_replace(temporary_, target_);
  published_ = true;
  sync_directory(parent_);
}

}  // namespace hearth
