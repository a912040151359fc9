#include "comm/reduce_programs.h"

#include <cmath>
#include <stdexcept>
#include <string>

#include "support/tensor.h"
#include "support/test_stream.h"

namespace hearth::test {
namespace {

constexpr int64_t kBlocks = 9;  // of them the last six are experts
constexpr int64_t kTensors = 13;

BlockId block_of(int64_t tensor) { return static_cast<BlockId>(tensor % kBlocks); }
int64_t elements_of(int64_t tensor) { return 5 + 31 * (tensor % 4) + (tensor == 3 ? 3000 : 0); }

// The gradient of a micro-batch, of magnitudes that make sums depend on their order.
Tensor gradient_of(DType dtype, int64_t tensor, int32_t shard, int32_t micro) {
  Tensor gradient(dtype, 1, elements_of(tensor));
  return gradient.fill_random("gradient " + std::to_string(tensor) + " " + std::to_string(shard) +
                                  " " + std::to_string(micro),
                              std::pow(2.0, (shard * 5 + tensor) % 9));
}

// A tensor's sums over shards of a rank, with their memory.
struct Summed {
  std::vector<Tensor> room;
  std::vector<View> mine;
};

Summed sum_shards(const OpSet& ops, Stream& stream, DType dtype, int64_t tensor, int32_t shards,
                  ShardRange range) {
  Summed summed;
  const int32_t most = most_partial_sums(shards, range);
  std::vector<View> aside;
  summed.room.reserve(static_cast<size_t>(most));
  for (int32_t i = 0; i < most; ++i)
    summed.room.emplace_back(dtype, 1, elements_of(tensor)).fill(0);
  for (int32_t i = 1; i < most; ++i) aside.push_back(summed.room[static_cast<size_t>(i)].view());
  const View at = summed.room[0].view();
  const ShardSum sum(ops, shards, range, at, aside);
  for (int32_t shard = range.begin; shard < range.end; ++shard) {
    for (int32_t micro = 0; micro < 2; ++micro) {
      const Tensor gradient = gradient_of(dtype, tensor, shard, micro);
      ops.add(stream, at, gradient.view(), at);
    }
    sum.end(stream, shard);
  }
  for (const PartialSum& partial : sum.sums()) summed.mine.push_back(partial.sum);
  return summed;
}

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.cols(); ++i) values.push_back(tensor.get(0, i));
  return values;
}

void expect_equal(const std::vector<double>& got, const std::vector<double>& expected,
                  const std::string& what) {
  if (got != expected) throw std::runtime_error(what + " has other bits");
}

double norm_of(int64_t tensor) { return 1.0 / static_cast<double>(3 + tensor); }

}  // namespace

ReduceResult reduced_on_one_rank(const OpSet& ops, DType dtype, int32_t shards) {
  ReduceResult result;
  TestStream stream(ops, 2, ops.row_scratch(1, 4000));
  for (int64_t t = 0; t < kTensors; ++t) {
    const Summed summed = sum_shards(ops, stream, dtype, t, shards, {0, shards});
    result.sums.push_back(values_of(summed.room[0]));
    Tensor in_order(dtype, 1, elements_of(t));
    in_order.fill(0);
    for (int32_t shard = 0; shard < shards; ++shard) {
      for (int32_t micro = 0; micro < 2; ++micro) {
        const Tensor gradient = gradient_of(dtype, t, shard, micro);
        ops.add(stream, in_order.view(), gradient.view(), in_order.view());
      }
    }
    result.depends_on_order |= values_of(in_order) != result.sums.back();
  }
  return result;
}

ReduceTraffic run_reduction(World& world, const OpSet& ops, DType dtype, int32_t shards,
                            const ExpertDomains& domains, const ReduceResult& expected,
                            bool wrong_owner) {
  const auto comm = world.everyone();
  const int32_t rank = comm->rank();
  TestStream test_stream(ops, 2, ops.row_scratch(1, 4000));
  Stream& stream = test_stream;
  const ShardMap map(shards, comm->size());

  std::vector<OwnedBlock> blocks;
  for (int64_t b = 0; b < kBlocks; ++b) {
    const bool is_expert = b >= kBlocks - 6 && domains.sharing() > 1;
    const auto position = static_cast<int32_t>(b) % domains.sharing();
    blocks.push_back(
        {100 + b, is_expert ? shares_of_expert(map, domains, position) : shares_of_all(map)});
  }
  Owners owners = choose_owners(map.shards(), map.ranks(), blocks);
  if (wrong_owner) owners.rank_of[1] = (owners.rank_of[1] + 1) % comm->size();

  // Two calls, for the halves of the tensors, with the staging memory of the larger one.
  std::vector<Summed> summed;  // by tensor and share
  std::vector<Tensor> sums;
  std::vector<SharedGradient> gradients;
  sums.reserve(kTensors);
  for (int64_t t = 0; t < kTensors; ++t) {
    const BlockId block = block_of(t);
    SharedGradient gradient{block, dtype, elements_of(t), {}, {}};
    for (const BlockShare& share : owners.shares(block)) {
      if (share.rank != rank) continue;
      summed.push_back(sum_shards(ops, stream, dtype, t, shards, share.shards));
      gradient.mine.insert(gradient.mine.end(), summed.back().mine.begin(),
                           summed.back().mine.end());
    }
    sums.emplace_back(dtype, 1, elements_of(t));
    // Every other sum goes where the owner's last subtree is.
    gradient.sum = t % 2 == 0 || gradient.mine.empty() ? sums.back().view() : gradient.mine.back();
    gradients.push_back(gradient);
  }
  const std::span<const SharedGradient> all = gradients;
  const std::span<const SharedGradient> first = all.first(5), second = all.subspan(5);
  const size_t bytes =
      std::max(staging_bytes(owners, rank, first), staging_bytes(owners, rank, second));
  std::vector<std::byte> memory(bytes + kArenaAlignment);
  std::byte* aligned = memory.data();
  while (reinterpret_cast<uintptr_t>(aligned) % kArenaAlignment != 0) ++aligned;
  reduce_to_owners(*comm, {1, 0}, ops, stream, owners, first, {aligned, bytes});
  reduce_to_owners(*comm, {1, 1}, ops, stream, owners, second, {aligned, bytes});

  ReduceTraffic traffic;
  std::vector<Tensor> copies;
  std::vector<SharedCopy> shared;
  std::vector<double> norms(kTensors, -1);
  std::vector<int32_t> owner_of;
  copies.reserve(kTensors);
  for (int64_t t = 0; t < kTensors; ++t) {
    const auto at = static_cast<size_t>(t);
    const BlockId block = block_of(t);
    const bool owns = owners.owner(block) == rank;
    const std::string name = "tensor " + std::to_string(t);
    if (owns) {
      const ConstView sum = gradients[at].sum;
      std::vector<double> got;
      for (int64_t i = 0; i < elements_of(t); ++i) {
        got.push_back(dtype == DType::f64 ? sum.as<double>()[i]
                                          : static_cast<double>(sum.as<float>()[i]));
      }
      expect_equal(got, expected.sums[at], "the sum of " + name);
      norms[at] = norm_of(t);
    }
    for (const View& mine : gradients[at].mine) {
      if (owns && mine.data == gradients[at].sum.data) continue;
      for (size_t i = 0; i < mine.bytes(); ++i) {
        if (static_cast<const std::byte*>(mine.data)[i] != std::byte{0}) {
          throw std::runtime_error("a gradient of " + name + " is not zero after it went away");
        }
      }
    }
    copies.emplace_back(DType::bf16, 1, elements_of(t));
    if (owns) copies.back().fill_random(name);
    shared.push_back({block, owners.uses(block, rank) ? copies.back().view() : View{}});
    owner_of.push_back(owners.owner(block));
    if (owners.uses(block, rank) && !owns) {
      traffic.least_bytes += static_cast<int64_t>(gradients[at].mine[0].bytes());
    }
    if (owns) {
      traffic.least_bytes +=
          static_cast<int64_t>(owners.shares(block).size() - 1) * 2 * elements_of(t);
      traffic.least_bytes += static_cast<int64_t>(comm->size() - 1) * 8;  // its norm
    }
  }
  give_to_users(*comm, {1, 2}, stream, owners, shared);
  for (int64_t t = 0; t < kTensors; ++t) {
    Tensor copy(DType::bf16, 1, elements_of(t));
    if (owners.uses(block_of(t), rank)) copy.fill_random("tensor " + std::to_string(t));
    if (!copy.same_bits(copies[static_cast<size_t>(t)])) {
      throw std::runtime_error("a copy of tensor " + std::to_string(t) + " has other bits");
    }
  }
  gather_norms(*comm, {1, 3}, owner_of, {norms.data(), DType::f64, 1, kTensors});
  for (int64_t t = 0; t < kTensors; ++t) {
    if (norms[static_cast<size_t>(t)] != norm_of(t)) throw std::runtime_error("a norm differs");
  }
  return traffic;
}

}  // namespace hearth::test
