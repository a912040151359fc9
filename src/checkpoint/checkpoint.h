// A Hugging Face checkpoint directory: config.json, safetensors in one file or in shards, and what
// else is copied into a result.
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

/// Where a tensor lies.
struct TensorLocation {
  int file = 0;  // index into files()
  SafetensorsEntry entry;
};

/// Which tensors of a table are read.
enum class WeightSet : uint8_t { all, trained };

/// Opened and checked: names against shards, every tensor of the table present with its shape in
/// one layout, no unknown one. Reads no tensor data.
class Checkpoint {
 public:
  /// Input errors name file, tensor or key. `follow_links`: links may lead anywhere
  /// (else only to files in the directory or, in a hub cache, to its blobs).
  explicit Checkpoint(const std::string& directory, bool follow_links = false);

  const std::string& directory() const { return directory_; }
  const Family& family() const { return *family_; }
  const ModelSpec& spec() const { return spec_; }
  const std::vector<std::unique_ptr<SafetensorsFile>>& files() const { return files_; }
  /// The text of model.safetensors.index.json; empty for a checkpoint of one file.
  const std::string& index_text() const { return index_text_; }
  /// The table of this checkpoint, with the stored types.
  ParameterTable make_table() const;
  /// How the table's tensors are stored; its ids are those of `make_table`.
  const PublishedLayout& layout() const { return layout_; }
  /// Of a published tensor.
  const TensorLocation& location(const std::string& tensor) const;

  /// Fills the home copy (master if present, else stored) of every tensor of the table, converting,
  /// in pieces through a small buffer a worker; also working copies. Their versions become the
  /// home's. A weight that is not finite is an input error naming tensor and index. So is a tied
  /// head that is stored and differs from the embedding: transformers would then not tie them. Ends
  /// with the error of base/stop.h when the process is asked to stop, as `digests` does. Of `trained`
  /// tensors alone the homes are filled, nothing else changes.
  void read_weights(ParameterTable& table, const Pool& pool, WeightSet set = WeightSet::all) const;

  /// Reads every weight and raises the input error of `read_weights` for one that is not finite.
  void check_finite() const;
  /// Memory that reading weights takes besides the copies, on so many workers; `staged`: where the
  /// host does not reach all of them.
  static uint64_t read_buffer_bytes(int workers, bool staged = false);

  /// Identity of the content: XXH3 of config.json, of every weight file and of every
  /// companion file (a changed tokenizer is another run), by file name.
  std::vector<std::pair<std::string, Digest>> digests() const;
  /// Tokenizer files, generation_config.json and others that a result carries along (names). They
  /// were opened and checked (regular files, links, no Git LFS pointers) by the constructor.
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
  std::vector<std::pair<std::string, std::string>> weight_map_;  // of the index: tensor, file
  std::vector<std::string> companions_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, TensorLocation> locations_;  // by published name
  PublishedLayout layout_;
};

}  // namespace hearth
