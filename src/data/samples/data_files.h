// Data files on the command line: FILE or FILE:weight.
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

/// Input error that names the option: a directory, or several files in one argument.
void check_data_files(const std::vector<DataFile>& files, const std::string& option);

}  // namespace hearth
