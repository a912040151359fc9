// The names of data files as they are given: FILE or FILE:weight.
#pragma once

#include <string>
#include <vector>

namespace hearth {

struct DataFile {
  std::string path;   // "-" is standard input
  double passes = 1;  // an epoch
};

/// A name that exists as it stands is a file; else what follows the last colon is its weight, if it is
/// a number. Usage errors, naming the option: a weight that is not above 0 (and at most 1000), a
/// weight where none is allowed, standard input twice.
std::vector<DataFile> parse_data_files(const std::vector<std::string>& given,
                                       const std::string& option, bool weights_allowed);

/// Input error, naming the option: a directory, or what looks like several files in one name.
void check_data_files(const std::vector<DataFile>& files, const std::string& option);

}  // namespace hearth
