#include "comm/reduce.h"

#include <algorithm>
#include <utility>

namespace hearth {
namespace {

size_t bytes_of(const SharedGradient& gradient) {
  return static_cast<size_t>(gradient.elements) * size_of(gradient.dtype);
}

View flat(const View& view) {
  HEARTH_CHECK(view.contiguous(), "reduce: memory that is not contiguous");
  return view.reshape(1, view.size());
}

ConstBytes read_of(const View& view) {
  return {static_cast<const std::byte*>(view.data), view.bytes()};
}
Bytes write_of(const View& view) { return {static_cast<std::byte*>(view.raw()), view.bytes()}; }

// What the owner has or is sent of a gradient, in the order of shards.
std::vector<PartialSum> partial_sums(const Owners& owners, int32_t rank,
                                     const SharedGradient& gradient, std::byte*& staged) {
  std::vector<PartialSum> sums;
  size_t own = 0;
  for (const BlockShare& subtree : owners.subtrees(gradient.block)) {
    if (subtree.rank == rank) {
      sums.push_back({subtree.shards, flat(gradient.mine[own++])});
    } else {
      sums.push_back({subtree.shards, {staged, gradient.dtype, 1, gradient.elements}});
      staged += align_up(bytes_of(gradient));
    }
  }
  return sums;
}

void check_gradient(const Owners& owners, int32_t rank, const SharedGradient& gradient) {
  size_t subtrees = 0;
  for (const BlockShare& subtree : owners.subtrees(gradient.block)) {
    subtrees += subtree.rank == rank ? 1 : 0;
  }
  HEARTH_CHECK(gradient.mine.size() == subtrees, "reduce: a view for each subtree of this rank");
  const auto fits = [&](const View& view) {
    return view.dtype == gradient.dtype && view.size() == gradient.elements;
  };
  HEARTH_CHECK(std::all_of(gradient.mine.begin(), gradient.mine.end(), fits) &&
                   (owners.owner(gradient.block) != rank || fits(gradient.sum)),
               "reduce: a view of another size or type");
}

}  // namespace

size_t staging_bytes(const Owners& owners, int32_t rank,
                     std::span<const SharedGradient> gradients) {
  size_t bytes = 0;
  for (const SharedGradient& gradient : gradients) {
    if (owners.owner(gradient.block) != rank) continue;
    for (const BlockShare& subtree : owners.subtrees(gradient.block)) {
      if (subtree.rank != rank) bytes += align_up(bytes_of(gradient));
    }
  }
  return bytes;
}

void reduce_to_owners(Communicator& comm, CommLabel label, const OpSet& ops, Stream& stream,
                      const Owners& owners, std::span<const SharedGradient> gradients,
                      Bytes staging) {
  const int32_t rank = comm.rank();
  HEARTH_CHECK(staging.bytes >= staging_bytes(owners, rank, gradients),
               "reduce: too little staging memory");
  std::vector<Outgoing> to;
  std::vector<Incoming> from;
  std::vector<std::vector<PartialSum>> sums;  // of the owned gradients
  std::byte* staged = staging.data;
  for (const SharedGradient& gradient : gradients) {
    check_gradient(owners, rank, gradient);
    const int32_t owner = owners.owner(gradient.block);
    if (owner != rank) {
      for (const View& mine : gradient.mine) to.push_back({owner, read_of(flat(mine))});
      continue;
    }
    sums.push_back(partial_sums(owners, rank, gradient, staged));
    const std::vector<BlockShare> subtrees = owners.subtrees(gradient.block);
    for (size_t i = 0; i < subtrees.size(); ++i) {
      if (subtrees[i].rank != rank) {
        from.push_back({subtrees[i].rank, write_of(sums.back()[i].sum)});
      }
    }
  }

  stream.synchronize();
  comm.wait_for(comm.transfer(label, std::move(to), std::move(from)));

  size_t next = 0;
  for (const SharedGradient& gradient : gradients) {
    View sum;
    if (owners.owner(gradient.block) == rank) {
      sum = flat(gradient.sum);
      std::vector<PartialSum> stack;
      for (const PartialSum& partial : sums[next++]) {
        push_partial_sum(ops, stream, owners.shards, stack, partial, sum);
      }
    }
    for (const View& mine : gradient.mine) {
      if (mine.data != sum.data && !gradient.copied) ops.clear(stream, flat(mine));
    }
  }
}

void give_to_users(Communicator& comm, CommLabel label, Stream& stream, const Owners& owners,
                   std::span<const SharedCopy> copies, const KeepsBlock& keeps) {
  const int32_t rank = comm.rank();
  const auto is_kept = [&](BlockId block, int32_t at) { return !keeps || keeps(block, at); };
  std::vector<Outgoing> to;
  std::vector<Incoming> from;
  for (const SharedCopy& shared : copies) {
    const int32_t owner = owners.owner(shared.block);
    if (owner != rank) {
      if (owners.uses(shared.block, rank) && is_kept(shared.block, rank))
        from.push_back({owner, write_of(flat(shared.copy))});
      continue;
    }
    for (const int32_t user : owners.users(shared.block)) {
      if (user != rank && is_kept(shared.block, user))
        to.push_back({user, read_of(flat(shared.copy))});
    }
  }
  stream.synchronize();
  comm.wait_for(comm.transfer(label, std::move(to), std::move(from)));
}

void gather_norms(Communicator& comm, CommLabel label, std::span<const int32_t> owner_of,
                  View norms) {
  HEARTH_CHECK(norms.dtype == DType::f64 && norms.size() == static_cast<int64_t>(owner_of.size()),
               "norms: one f64 for each tensor");
  auto* values = norms.as<double>();
  std::vector<std::vector<double>> of_rank(static_cast<size_t>(comm.size()));
  for (size_t t = 0; t < owner_of.size(); ++t) {
    of_rank[static_cast<size_t>(owner_of[t])].push_back(values[t]);
  }
  const std::vector<double> own = of_rank[static_cast<size_t>(comm.rank())];
  std::vector<Bytes> from;
  for (std::vector<double>& one : of_rank) {
    from.push_back({reinterpret_cast<std::byte*>(one.data()), one.size() * sizeof(double)});
  }
  comm.wait_for(comm.gather(
      label, {reinterpret_cast<const std::byte*>(own.data()), own.size() * sizeof(double)}, from));
  std::vector<size_t> next(of_rank.size());
  for (size_t t = 0; t < owner_of.size(); ++t) {
    const auto owner = static_cast<size_t>(owner_of[t]);
    values[t] = of_rank[owner][next[owner]++];
  }
}

}  // namespace hearth
