// Data sets by name in the hub cache: which of their files are meant.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

/// The split that a file of a data set belongs to, by its path in the snapshot: SPLIT of
/// SPLIT-00000-of-00001.parquet; else train, validation (also dev, val, valid) or test (also eval)
/// where one of these is a word of the file's name, or of its folder's; else empty.
std::string split_of_file(std::string_view path);

/// The files of ORG/NAME, ORG/NAME@REVISION or ORG/NAME:SPLIT, sorted by path; nullopt if `name` is of
/// another form, or ends as files of rows do. The default split is train; with an option for
/// evaluation data, validation or else test. If no file names a split, all files are train. Input
/// error if the data set or the split is not there, and if its files lie in several folders, which
/// are subsets.
std::optional<std::vector<std::string>> find_hub_data(const std::string& name,
                                                      const std::string& option);

}  // namespace hearth
