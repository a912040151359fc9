// A directory that appears complete: it is written under a temporary name and published by one
// rename.
#pragma once

#include <string>
#include <string_view>

namespace hearth {

class NewDirectory {
 public:
  /// Makes PARENT/.tmp-NAME for the target PARENT/NAME, and PARENT if missing. Removes the
  /// leftovers of an earlier attempt. Usage error if the target exists.
  explicit NewDirectory(const std::string& target);
  /// Removes the directory if it was not published.
  ~NewDirectory();
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  /// Where to write. The writers sync their files.
  const std::string& path() const { return temporary_; }
  /// Copies the file `from` to `name`, which may be `folder/name`, and syncs it.
  void copy(const std::string& from, const std::string& name) const;
  /// Writes a file with this content to `name`, like `copy`.
  void write(const std::string& name, std::string_view content) const;
  /// Syncs the directory, renames it to the target (never over another), syncs the parent.
  void publish();

 private:
  /// Makes the folder of `name`, if it has one, calls `make`, and syncs the folder.
  template <typename Make>
  void in_folder(const std::string& name, const Make& make) const;

  std::string parent_, target_, temporary_;
  bool published_ = false;
};

}  // namespace hearth
