// The parameter table: every tensor once, with all its copies. Export, digest, saved state,
// optimizer and residency walk it; no other list of tensors exists.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/place_memory.h"
#include "model/spec.h"
#include "ops/view.h"

namespace hearth {

using TensorId = int32_t;
using BlockId = int32_t;

/// A block is what is placed, moved and updated as one. An adapter is the low-rank pairs (LoRA) of
/// the matrices of another block, its base.
enum class BlockKind : uint8_t {
  embedding,
  attention,
  router,
  expert,
  shared,
  dense,
  head,
  adapter
};

/// Which tensor of its block.
enum class Slot : uint8_t {
  embedding,    // of the embedding
  input_norm,   // of attention: before q, k and v
  q,            // of attention
  k,            // of attention
  v,            // of attention
  o,            // of attention
  q_bias,       // of attention
  k_bias,       // of attention
  v_bias,       // of attention
  o_bias,       // of attention
  q_norm,       // of attention
  k_norm,       // of attention
  post_norm,    // of attention: after its residual
  router,       // of the router
  gate,         // of an expert, the shared expert or a dense MLP
  up,           // of an expert, the shared expert or a dense MLP
  down,         // of an expert, the shared expert or a dense MLP
  shared_gate,  // of the shared expert: [1, hidden], its sigmoid weighs the expert
  final_norm,   // of the head
  head,         // of the head
};

/// Of a tensor of an adapter: A [rank, in] or B [out, rank]; its slot is that of the base's matrix.
enum class Factor : uint8_t { none, a, b };

struct Block {
  BlockKind kind = BlockKind::embedding;
  int32_t layer = -1;   // -1: not of a layer
  int32_t expert = -1;  // of an expert block
  TensorId begin = 0;   // tensors [begin, end) of the table
  TensorId end = 0;
  BlockId base = -1;         // of an adapter
  double scale = 0;          // of an adapter: what B A is multiplied by
  Place place = kHostPlace;  // of all copies of its tensors; set before planning
};

/// What a copy is for. `stored`: as the checkpoint has it (frozen tensors, reading). `master`: the
/// f32 weight that the optimizer updates. `working`: a rounded copy that products read; where it
/// would equal the master it does not exist. `gradient`, `moment1`, `moment2`: of the optimizer.
enum class CopyRole : uint8_t { stored, master, working, gradient, moment1, moment2 };
inline constexpr int kCopyRoles = 6;

/// A copy of a tensor in some memory that the table does not own. Layout is the published one,
/// [out, in] row-major.
struct Copy {
  View view;
  uint64_t version = 0;
  bool present() const { return view.data != nullptr; }
};

struct Tensor {
  std::string name;  // the family's, experts one by one; model/published_layout.h: as stored
  BlockId block = 0;
  Slot slot = Slot::embedding;
  Factor factor = Factor::none;
  int64_t rows = 0;  // a vector of n is [1, n]
  int64_t cols = 0;
  bool vector = false;        // published as one dimension
  DType stored = DType::f32;  // type in the checkpoint
  bool trainable = false;
  bool decayed = false;  // weight decay applies (not to norms and biases)
  uint64_t version = 1;  // of its home: master if present, else stored
  Copy copies[kCopyRoles];

  int64_t size() const { return rows * cols; }

  /// Where the weight lives: the master if present, else what is stored.
  const Copy& home() const {
    const Copy& master = copies[static_cast<int>(CopyRole::master)];
    return master.present() ? master : copies[static_cast<int>(CopyRole::stored)];
  }
  Copy& home() { return const_cast<Copy&>(std::as_const(*this).home()); }
};

/// Filled by a family (blocks and tensors in table order: embedding, layers, head; the experts of a
/// layer follow each other), then by adapters in the order of their bases (model/adapters.h), then
/// bound to memory (model/parameter_memory.h). Adapters stand last, so that a model's tensors have
/// the same ids with and without them.
///
/// A copy whose version is not its home's is never read: `weight` checks it. Not thread-safe for
/// changes; tasks that update a block and tasks that read it are ordered by the schedule.
class ParameterTable {
 public:
  BlockId add_block(BlockKind kind, int32_t layer = -1, int32_t expert = -1);
  /// Adds a tensor to the last block.
  TensorId add_tensor(std::string name, Slot slot, int64_t rows, int64_t cols, bool vector);
  /// Adds the adapter of a block that has none.
  BlockId add_adapter(BlockId base, double scale);
  /// Adds the pair of a matrix of the base to the last block, an adapter: f32, trainable. Names are
  /// the matrix's with `.lora_A.weight` and `.lora_B.weight` for `.weight`.
  void add_low_rank(TensorId matrix, int64_t rank);

  const std::vector<Tensor>& tensors() const { return tensors_; }
  std::vector<Tensor>& tensors() { return tensors_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  const Tensor& tensor(TensorId id) const { return tensors_[static_cast<size_t>(id)]; }
  Tensor& tensor(TensorId id) { return tensors_[static_cast<size_t>(id)]; }
  const Block& block(BlockId id) const { return blocks_[static_cast<size_t>(id)]; }

  std::optional<TensorId> find(std::string_view name) const;
  /// The block of a kind; layer and expert as in Block. A bug if there is none.
  BlockId find_block(BlockKind kind, int32_t layer = -1, int32_t expert = -1) const;
  /// The tensor of a block, nullopt if the block has no such slot.
  std::optional<TensorId> find_slot(BlockId block, Slot slot) const;
  /// The adapter of a block.
  std::optional<BlockId> adapter_of(BlockId base) const;
  /// The adapters of blocks [begin, end): blocks that follow each other; empty ranges are {0, 0}.
  std::pair<BlockId, BlockId> adapters_of(BlockId begin, BlockId end) const;
  /// The largest rank of these adapters, 0 where there are none.
  int64_t rank_of(BlockId begin, BlockId end) const;

  /// A copy for writing or for the optimizer; a bug if it is absent.
  View view(TensorId id, CopyRole role) const;
  /// What forward and backward read: working, else master, else stored; of the home's version.
  ConstView weight(TensorId id) const;
  /// The weight of a slot as a linear map with its bias slot and low-rank pair, if any.
  LinearView linear(BlockId block, Slot weight, std::optional<Slot> bias, Compute compute) const;
  /// Where the gradients of its parts go.
  LinearGradient linear_gradient(BlockId block, Slot weight, std::optional<Slot> bias) const;
  /// The head's weight: its own, or the embedding's table when tied.
  TensorId head_weight() const;
  /// Where gradients go; empty if the tensor is not trained.
  View gradient(TensorId id) const;

  /// Before planning: a table that is bound to memory keeps its copies where they are.
  void set_place(BlockId id, Place place) { blocks_[static_cast<size_t>(id)].place = place; }
  /// Where a tensor lives, with all its copies.
  Place place(TensorId id) const { return block(tensor(id).block).place; }
  /// Reaches the bytes of copies at any place; of a table that nobody gave one, the host's alone.
  PlaceMemory& memory() const { return *memory_; }
  /// Must outlive the table's copies.
  void set_memory(PlaceMemory& memory) { memory_ = &memory; }

  /// After the master was written: its copies that were written with it (`with_working`) stay
  /// valid, others become stale.
  void mark_updated(TensorId id, bool with_working);

 private:
  std::optional<TensorId> find_factor(BlockId base, Slot slot, Factor factor) const;

  std::vector<Block> blocks_;
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string, TensorId> by_name_;
  std::unordered_map<uint64_t, BlockId> by_key_;
  std::unordered_map<BlockId, BlockId> adapters_;  // by base
  PlaceMemory* memory_ = &host_memory();
};

}  // namespace hearth
