// A file that appears complete: it is written under a temporary name and published by one rename.
#pragma once

#include <string>

namespace hearth {

class NewFile {
 public:
  /// For the target PARENT/NAME the path is PARENT/.tmp-NAME; makes PARENT if missing and removes
  /// what an earlier attempt left. Usage error if the target exists.
  explicit NewFile(const std::string& target);
  /// Removes the file if it was not published.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// Where to write. The writer syncs the file.
  const std::string& path() const { return temporary_; }
  /// Renames the file to the target (never over another) and syncs the parent.
  void publish();

 private:
  std::string parent_, target_, temporary_;
  bool published_ = false;
};

}  // namespace hearth
