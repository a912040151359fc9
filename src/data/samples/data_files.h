// Data files on the command line: a file, a directory or a glob, with or without :weight.
#pragma once

#include <string>
#include <vector>

namespace hearth {

struct DataFile {
  std::string path;   // "-" is standard input
  double passes = 1;  // per epoch
};

/// If the whole text is an existing path, it is a file without weight. Else a number after the last
/// colon is the weight. Usage errors that name the option: a weight outside (0, 1000], a weight
/// where none is allowed, standard input twice.
std::vector<DataFile> parse_data_files(const std::vector<std::string>& given,
                                       const std::string& option, bool weights_allowed);

/// Replaces each directory by its data files, and each glob that is no file by the files that it
/// matches, sorted by name; each has the weight of the whole. The data files of a directory are those
/// with the endings of docs/text.md, not hidden ones, and not those of directories in it. `*` and `?`
/// match any characters and one character, but no `/`. Input error that names the option for a
/// directory without data files; usage error for a glob that matches nothing.
std::vector<DataFile> expand_data_files(const std::vector<DataFile>& files,
                                        const std::string& option);

/// Both in one.
std::vector<DataFile> find_data_files(const std::vector<std::string>& given,
                                      const std::string& option, bool weights_allowed);
/// The paths alone.
std::vector<std::string> paths_of(const std::vector<DataFile>& files);

}  // namespace hearth
