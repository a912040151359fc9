// A Hugging Face checkpoint directory: config.json, safetensors in one file or in shards, and
// companion files that are copied into a result.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/json.h"
#include "base/pool.h"
#include "checkpoint/companion_files.h"
#include "checkpoint/safetensors.h"
#include "model/family.h"
#include "model/parameter_table.h"
#include "model/published_layout.h"

namespace hearth {

/// Where a tensor is stored.
struct TensorLocation {
  int file = 0;  // index into files()
  SafetensorsEntry entry;
};

/// Which tensors of a table to read.
enum class WeightSet : uint8_t { all, trained };

/// An opened and checked checkpoint. The index matches the shards, every tensor of the table is
/// present with its shape in one layout, and no tensor is unknown. Reads no tensor data.
class Checkpoint {
 public:
  /// Input errors name file, tensor or key. With `follow_links`, links may lead anywhere. Otherwise
  /// they may lead only to files in the directory or, in a hub cache, to its blobs.
  explicit Checkpoint(const std::string& directory, bool follow_links = false);

  const std::string& directory() const { return directory_; }
  const Family& family() const { return *family_; }
  const ModelSpec& spec() const { return spec_; }
  const std::vector<std::unique_ptr<SafetensorsFile>>& files() const { return files_; }
  /// The text of model.safetensors.index.json; empty for a checkpoint of one file.
  const std::string& index_text() const { return index_text_; }
  /// The table of this checkpoint, with the stored types.
  ParameterTable make_table() const;
  /// How the table's tensors are stored. Its ids are the ids in `make_table`'s result.
  const PublishedLayout& layout() const { return layout_; }
  /// By published name.
  const TensorLocation& location(const std::string& tensor) const;

  /// Fills the home copy (master if present, else stored) and the working copy of every tensor of
  /// the table. Converts in pieces, through a small buffer per worker. Working copies get the
  /// home's version. Input error, naming tensor and index, for a weight that is not finite. Input
  /// error for a tied head that is stored and differs from the embedding, because transformers
  /// would not tie it. Stops on a signal with the error of base/stop.h, like `digests`.
  /// WeightSet::trained fills only the homes of trained tensors.
  void read_weights(ParameterTable& table, const Pool& pool, WeightSet set = WeightSet::all) const;

  /// Reads every weight, and raises the input error of `read_weights` if one is not finite.
  void check_finite() const;
  /// Memory of the buffers of `read_weights`. `staged`: the host cannot access all copies.
  static uint64_t read_buffer_bytes(int workers, bool staged = false);
  /// All memory that it takes besides the copies: the buffers, and a list of what to read.
  static uint64_t reading_bytes(const ParameterTable& table, int workers, bool staged = false);

  /// Identity of the content: XXH3 of config.json, every weight file and every companion file, by
  /// file name. (A changed tokenizer makes a different run.)
  std::vector<std::pair<std::string, Digest>> digests() const;
  /// Names of the files that a result also contains, such as tokenizer files and
  /// generation_config.json. The constructor opened and checked them (regular files, links, no Git
  /// LFS pointers).
  const std::vector<std::string>& companion_files() const { return companions_; }

 private:
  void read_configs();
  std::vector<std::string> find_weight_files();
  void open_weight_files(const std::vector<std::string>& names);
  void check_index() const;
  void check_tensors();
  void check_tensor(const std::string& name, const std::vector<int64_t>& shape) const;
  void check_tied_copies() const;

  std::string directory_;
  bool follow_links_ = false;
  Json config_;
  const Family* family_ = nullptr;
  ModelSpec spec_;
  std::string index_text_;
  std::vector<std::pair<std::string, std::string>> weight_map_;  // from the index: tensor, file
  std::vector<std::string> companions_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, TensorLocation> locations_;  // by published name
  PublishedLayout layout_;
};

}  // namespace hearth
