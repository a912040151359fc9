// The parameter table lists every tensor once, with all its copies. Export, digests, saved state
// and the optimizer walk it; no other list of tensors exists.
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

/// A block is the unit that is placed and updated. An adapter holds the low-rank pairs (LoRA) for
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
  shared_gate,  // of the shared expert: [1, hidden]; the sigmoid of its output weighs the expert
  final_norm,   // of the head
  head,         // of the head
};

/// Of an adapter's tensor: A [rank, in] or B [out, rank]. The tensor has the slot of the base's
/// matrix.
enum class Factor : uint8_t { none, a, b };

struct Block {
  BlockKind kind = BlockKind::embedding;
  int32_t layer = -1;   // -1: outside the layers
  int32_t expert = -1;  // of an expert block
  TensorId begin = 0;   // tensors [begin, end) of the table
  TensorId end = 0;
  BlockId base = -1;         // of an adapter
  double scale = 0;          // of an adapter: the factor of B A
  Place place = kHostPlace;  // of all copies of its tensors; set before planning
  bool owned = true;         // by this rank, which updates and saves it; set before planning
  bool present = true;       // on this rank; if not, no copies of its tensors; set before planning
  /// This rank computes with it, but keeps no weights of it: they come from another rank before each use
  /// (layers/fetched_experts.h). Set before planning.
  bool fetched = false;
};

/// What a copy is for. `stored`: in the checkpoint's type (frozen tensors, reading). `master`: the
/// f32 weight that the optimizer updates. `working`: a rounded copy that products read, or what all ranks
/// have of an expert; absent if it would equal the master. `gradient`, `moment1`, `moment2`: for the optimizer.
enum class CopyRole : uint8_t { stored, master, working, gradient, moment1, moment2 };
inline constexpr int kCopyRoles = 6;

/// A copy of a tensor, in memory that the table does not own. The layout is the published layout,
/// [out, in] row-major.
struct Copy {
  View view;
  uint64_t version = 0;
  bool present() const { return view.data != nullptr; }
};

struct Tensor {
  std::string name;  // the family's name, one per expert; published_layout.h has the stored names
  BlockId block = 0;
  Slot slot = Slot::embedding;
  Factor factor = Factor::none;
  int64_t rows = 0;  // a vector of n elements is [1, n]
  int64_t cols = 0;
  bool vector = false;        // the checkpoint's tensor has one dimension
  DType stored = DType::f32;  // type in the checkpoint
  bool trainable = false;
  bool decayed = false;  // weight decay applies (not to norms and biases)
  uint64_t version = 1;  // version of its home
  Copy copies[kCopyRoles];

  int64_t size() const { return rows * cols; }

  /// The copy that holds the current weight: the master if present, else the stored copy.
  const Copy& home() const {
    const Copy& master = copies[static_cast<int>(CopyRole::master)];
    return master.present() ? master : copies[static_cast<int>(CopyRole::stored)];
  }
  Copy& home() { return const_cast<Copy&>(std::as_const(*this).home()); }
};

/// Filled in three stages:
///   1. A family adds blocks and tensors: embedding, layers, head. Experts of a layer are adjacent.
///   2. add_adapters (model/adapters.h) adds adapters, in the order of their bases. They come last,
///      so that a model's tensors have the same ids with and without adapters.
///   3. bind_parameters (model/parameter_memory.h) binds the table to memory.
///
/// A copy whose version differs from its home's is stale and never read; `weight` checks this.
/// Changes are not thread-safe. The schedule orders tasks that update a block and tasks that read
/// it.
class ParameterTable {
 public:
  BlockId add_block(BlockKind kind, int32_t layer = -1, int32_t expert = -1);
  /// Adds a tensor to the last block.
  TensorId add_tensor(std::string name, Slot slot, int64_t rows, int64_t cols, bool vector);
  /// Adds an adapter to a block that does not have an adapter.
  BlockId add_adapter(BlockId base, double scale);
  /// Adds the pair of a matrix to the last block, which must be the adapter of the matrix's block.
  /// The pair is f32 and trainable. Names: the matrix's, with `.lora_A.weight` and `.lora_B.weight`
  /// instead of `.weight`.
  void add_low_rank(TensorId matrix, int64_t rank);

  const std::vector<Tensor>& tensors() const { return tensors_; }
  std::vector<Tensor>& tensors() { return tensors_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  const Tensor& tensor(TensorId id) const { return tensors_[static_cast<size_t>(id)]; }
  Tensor& tensor(TensorId id) { return tensors_[static_cast<size_t>(id)]; }
  const Block& block(BlockId id) const { return blocks_[static_cast<size_t>(id)]; }

  std::optional<TensorId> find(std::string_view name) const;
  /// The block of this kind, layer and expert (as in Block). A bug if there is none.
  BlockId find_block(BlockKind kind, int32_t layer = -1, int32_t expert = -1) const;
  /// The tensor in a slot of a block; nullopt if the block has no such slot.
  std::optional<TensorId> find_slot(BlockId block, Slot slot) const;
  /// Whether a block has a trained tensor.
  bool is_trained(BlockId block) const;
  /// The adapter of a block; nullopt if none.
  std::optional<BlockId> adapter_of(BlockId base) const;
  /// The range of adapter blocks of blocks [begin, end), which are neighbours; {0, 0} if none.
  std::pair<BlockId, BlockId> adapters_of(BlockId begin, BlockId end) const;
  /// The largest rank of the adapters of blocks [begin, end); 0 if none.
  int64_t rank_of(BlockId begin, BlockId end) const;

  /// A copy for writing or for the optimizer; a bug if it is absent.
  View view(TensorId id, CopyRole role) const;
  /// The copy that forward and backward read: working, else master, else stored. A bug if it is
  /// stale.
  ConstView weight(TensorId id) const;
  /// The weight of a slot as a linear map, with its bias and low-rank pair if present.
  LinearView linear(BlockId block, Slot weight, std::optional<Slot> bias, Compute compute) const;
  /// The same with a weight that lies elsewhere.
  LinearView linear_with(ConstView weight, BlockId block, Slot slot, std::optional<Slot> bias,
                         Compute compute) const;
  /// Where the gradients of the parts of `linear` go.
  LinearGradient linear_gradient(BlockId block, Slot weight, std::optional<Slot> bias) const;
  /// The head's weight; the embedding's table if tied.
  TensorId head_weight() const;
  /// Where gradients go; empty if the tensor is not trained.
  View gradient(TensorId id) const;

  /// Call before planning: on a table that is bound to memory it does not move the copies
  /// (exchange_memory does).
  void set_place(BlockId id, Place place) { blocks_[static_cast<size_t>(id)].place = place; }
  void set_owned(BlockId id, bool owned) { blocks_[static_cast<size_t>(id)].owned = owned; }
  void set_present(BlockId id, bool present) { blocks_[static_cast<size_t>(id)].present = present; }
  void set_fetched(BlockId id, bool fetched) { blocks_[static_cast<size_t>(id)].fetched = fetched; }
  /// Whether this rank keeps weights of a tensor.
  bool is_present(TensorId id) const {
    const Block& of = block(tensor(id).block);
    return of.present && !of.fetched;
  }
  /// The place of a tensor and all its copies.
  Place place(TensorId id) const { return block(tensor(id).block).place; }
  /// Accesses the bytes of copies at any place. Without `set_memory`, only those on the host.
  PlaceMemory& memory() const { return *memory_; }
  /// `memory` must outlive the table's copies.
  void set_memory(PlaceMemory& memory) { memory_ = &memory; }

  /// What a copy of this table takes of the heap.
  size_t memory_bytes() const;

  /// Call after the master was written. `with_working`: the working copy was also written and stays
  /// valid; otherwise it becomes stale.
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
