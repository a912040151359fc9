// A directory that appears whole: written under a temporary name, published by one rename.
#pragma once

#include <string>
#include <string_view>

namespace hearth {

class NewDirectory {
 public:
  /// Makes PARENT/.tmp-NAME for the target PARENT/NAME (and PARENT), in place of what an earlier
  /// try left. Usage error if the target exists.
  explicit NewDirectory(const std::string& target);
  /// Removes what was not published.
  ~NewDirectory();
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  /// Where to write; files must be synced by their writers.
  const std::string& path() const { return temporary_; }
  /// Copies the file `from` to `name`, which may stand in a folder (`folder/name`); synced.
  void copy(const std::string& from, const std::string& name) const;
  /// Writes a file of this content to `name`, as `copy` does.
  void write(const std::string& name, std::string_view content) const;
  /// Syncs the directory, renames it to the target (never over another), syncs the parent.
  void publish();

 private:
  /// Makes the folder of `name`, if it has one, around `make`; synced afterwards.
  template <typename Make>
  void in_folder(const std::string& name, const Make& make) const;

  std::string parent_, target_, temporary_;
  bool published_ = false;
};

}  // namespace hearth
