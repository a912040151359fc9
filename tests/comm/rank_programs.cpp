#include "comm/rank_programs.h"

#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "base/random.h"

namespace hearth::test {
namespace {

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("not as expected: " + what);
}

// Byte i of message `number` from rank `from` to rank `to`.
std::byte byte_of(int32_t from, int32_t to, int64_t number, size_t i) {
  return std::byte(static_cast<unsigned char>(from * 61 + to * 17 + number * 101 +
                                              static_cast<int64_t>(i) * 7 + 3));
}

using Memory = std::vector<std::byte>;

Memory filled(int32_t from, int32_t to, int64_t number, size_t bytes) {
  Memory memory(bytes);
  for (size_t i = 0; i < bytes; ++i) memory[i] = byte_of(from, to, number, i);
  return memory;
}

ConstBytes of(const Memory& memory) { return {memory.data(), memory.size()}; }
Bytes of(Memory& memory) { return {memory.data(), memory.size()}; }

// A multiple of it is a size; zero is one as well.
size_t size_between(int32_t from, int32_t to, int64_t number) {
  return static_cast<size_t>((from * 5 + to * 3 + number) % 4) * 37;
}

// An exchange or gather under way with its memory.
struct Moving {
  std::vector<Memory> to, from;
  std::unique_ptr<Pending> pending;
  int64_t number = 0;
  bool gathers = false;
};

using Sizes = size_t (*)(int32_t from, int32_t to, int64_t number);

Moving issue(Communicator& comm, CommLabel label, bool gathers, Sizes sizes) {
  Moving moving;
  moving.number = label.number;
  moving.gathers = gathers;
  const int32_t me = comm.rank();
  std::vector<ConstBytes> to;
  std::vector<Bytes> from;
  for (int32_t r = 0; r < comm.size(); ++r) {
    // What a rank gathers has no receiver of its own: it is the message to rank 0.
    moving.to.push_back(
        filled(me, gathers ? 0 : r, label.number, sizes(me, gathers ? 0 : r, label.number)));
    moving.from.emplace_back(sizes(r, gathers ? 0 : me, label.number), std::byte{0xee});
  }
  for (int32_t r = 0; r < comm.size(); ++r) {
    to.push_back(of(std::as_const(moving.to[static_cast<size_t>(r)])));
    from.push_back(of(moving.from[static_cast<size_t>(r)]));
  }
  moving.pending = gathers ? comm.gather(label, to[0], from) : comm.exchange(label, to, from);
  return moving;
}

void finish(Communicator& comm, Moving& moving) {
  moving.pending->wait();
  expect(moving.pending->reached(), "what was waited for is reached");
  for (int32_t r = 0; r < comm.size(); ++r) {
    const Memory& got = moving.from[static_cast<size_t>(r)];
    expect(got == filled(r, moving.gathers ? 0 : comm.rank(), moving.number, got.size()),
           "the bytes of operation " + std::to_string(moving.number) + " from rank " +
               std::to_string(r));
  }
}

void exchanges(World& world) {
  const auto comm = world.everyone();
  for (int32_t n = 0; n < 20; ++n) {
    Moving moving = issue(*comm, {1, n}, false, size_between);
    finish(*comm, moving);
  }
}

void gathers(World& world) {
  const auto comm = world.everyone();
  for (int32_t n = 0; n < 20; ++n) {
    Moving moving = issue(*comm, {1, n}, true, size_between);
    finish(*comm, moving);
  }
}

// Nobody has a byte: all the same every rank waits for every other.
void empty_operations(World& world) {
  const auto comm = world.everyone();
  const Sizes none = [](int32_t, int32_t, int64_t) { return size_t{0}; };
  for (int32_t n = 0; n < 6; ++n) {
    Moving moving = issue(*comm, {1, n}, n % 2 == 0, none);
    finish(*comm, moving);
  }
}

// Several operations are under way; they are waited for in another order, or asked.
void overlapping(World& world) {
  const auto comm = world.everyone();
  std::vector<Moving> moving;
  for (int32_t n = 0; n < 8; ++n) moving.push_back(issue(*comm, {2, n}, n % 3 == 0, size_between));
  while (!moving[3].pending->reached()) std::this_thread::yield();
  for (const size_t n : {6u, 1u, 0u, 7u, 2u, 5u, 4u, 3u}) finish(*comm, moving[n]);
}

// Messages around the ring, one way with and one way without bytes.
void ring(World& world) {
  const auto comm = world.everyone();
  const int32_t n = comm->size(), me = comm->rank();
  if (n == 1) return;
  const int32_t next = (me + 1) % n, before = (me + n - 1) % n;
  for (int64_t step = 0; step < 5; ++step) {
    const Memory out = filled(me, next, step, 1000), none;
    Memory in(1000), empty;
    // The even ranks send first: labels name the operation of a pair, and rise.
    std::unique_ptr<Pending> all[4];
    const auto label = [&](int32_t from) { return CommLabel{step, from}; };
    const bool first = me < before;
    const auto sends = [&] { all[0] = comm->send(label(me), next, of(out)); };
    const auto receives = [&] { all[1] = comm->receive(label(before), before, of(in)); };
    if (first) {
      sends(), receives();
    } else {
      receives(), sends();
    }
    // Back without bytes.
    const auto sends_back = [&] { all[2] = comm->send(label(n + me), before, of(none)); };
    const auto receives_back = [&] { all[3] = comm->receive(label(n + next), next, of(empty)); };
    if (me < next) {
      sends_back(), receives_back();
    } else {
      receives_back(), sends_back();
    }
    for (const auto& one : all) one->wait();
    expect(in == filled(before, me, step, 1000), "what went around the ring");
  }
}

// Rank r sends r + s messages to rank s, which differ in size; none is copied together.
void transfers(World& world) {
  const auto comm = world.everyone();
  const int32_t me = comm->rank();
  for (int32_t n = 0; n < 4; ++n) {
    std::vector<Memory> sent, got;
    std::vector<Outgoing> to;
    std::vector<Incoming> from;
    const auto count = [](int32_t a, int32_t b) { return (a + b) % 4; };
    for (int32_t r = 0; r < comm->size(); ++r) {
      for (int32_t k = 0; k < count(me, r); ++k) {
        sent.push_back(filled(me, r, n * 10 + k, static_cast<size_t>(k) * 20));
      }
      for (int32_t k = 0; k < count(r, me); ++k) got.emplace_back(static_cast<size_t>(k) * 20);
    }
    size_t next_sent = 0, next_got = 0;
    for (int32_t r = 0; r < comm->size(); ++r) {
      for (int32_t k = 0; k < count(me, r); ++k) {
        to.push_back({r, of(std::as_const(sent[next_sent++]))});
      }
      for (int32_t k = 0; k < count(r, me); ++k) from.push_back({r, of(got[next_got++])});
    }
    comm->transfer({3, n}, std::move(to), std::move(from))->wait();
    next_got = 0;
    for (int32_t r = 0; r < comm->size(); ++r) {
      for (int32_t k = 0; k < count(r, me); ++k, ++next_got) {
        expect(got[next_got] == filled(r, me, n * 10 + k, got[next_got].size()),
               "message " + std::to_string(k) + " of a transfer");
      }
    }
  }
}

// Even and odd ranks, all backwards, and all once more: groups do not mix.
void groups(World& world) {
  std::vector<int32_t> even, odd, backwards;
  for (int32_t r = 0; r < world.size(); ++r) {
    (r % 2 == 0 ? even : odd).push_back(r);
    backwards.insert(backwards.begin(), r);
  }
  const auto of_even = world.group(even);
  const auto of_odd = odd.empty() ? nullptr : world.group(odd);
  const auto turned = world.group(backwards);
  const auto again = world.group(backwards);
  expect((of_even != nullptr) == (world.rank() % 2 == 0), "members have a communicator");
  Communicator& half = of_even != nullptr ? *of_even : *of_odd;
  expect(turned->rank() == world.size() - 1 - world.rank(), "ranks of a group have its order");
  for (int32_t n = 0; n < 5; ++n) {
    Moving a = issue(*turned, {1, n}, false, size_between);
    Moving b = issue(half, {1, n}, true, size_between);
    Moving c = issue(*again, {1, n}, false, size_between);
    finish(*again, c);
    finish(half, b);
    finish(*turned, a);
  }
}

// Two threads of each rank, each with a communicator of its own.
void two_threads(World& world) {
  const auto one = world.everyone(), two = world.everyone();
  const auto work = [](Communicator& comm) {
    for (int32_t n = 0; n < 30; ++n) {
      Moving moving = issue(comm, {1, n}, n % 2 == 0, size_between);
      finish(comm, moving);
    }
  };
  std::string problem;
  std::thread other([&] {
    try {
      work(*two);
    } catch (const std::exception& error) {
      problem = error.what();
    }
  });
  std::string own;
  try {
    work(*one);
  } catch (const std::exception& error) {
    own = error.what();
  }
  other.join();
  expect(own.empty() && problem.empty(), own + problem);
}

size_t sizes_of_counts(int32_t from, int32_t to, int64_t number) {
  return static_cast<size_t>(from * 100 + to * 10 + number);
}

// The counters have what went over each ordered pair, and nothing that stays.
void counted_bytes(World& world) {
  const auto comm = world.everyone();
  const std::vector<int64_t> before = world.sent_bytes();
  Moving a = issue(*comm, {1, 0}, false, sizes_of_counts);
  finish(*comm, a);
  Moving b = issue(*comm, {1, 1}, true, sizes_of_counts);
  finish(*comm, b);
  const std::vector<int64_t> after = world.sent_bytes();
  for (int32_t r = 0; r < world.size(); ++r) {
    const size_t expected =
        sizes_of_counts(world.rank(), r, 0) + sizes_of_counts(world.rank(), 0, 1);
    const auto at = static_cast<size_t>(r);
    expect(after[at] - before[at] == (r == world.rank() ? 0 : static_cast<int64_t>(expected)),
           "bytes to rank " + std::to_string(r) + ": " + std::to_string(after[at]));
  }
}

// Larger than what a world may move in one piece (tests lower it).
void large_messages(World& world) {
  const auto comm = world.everyone();
  const Sizes sizes = [](int32_t from, int32_t to, int64_t) {
    return static_cast<size_t>(100000 * (from + 1) + 1000 * to);
  };
  Moving moving = issue(*comm, {1, 0}, false, sizes);
  finish(*comm, moving);
}

// 150 operations of random kinds, groups and sizes, each rank with its own delays and with up to
// four operations under way.
void random_program(World& world) {
  std::vector<int32_t> all, most;
  for (int32_t r = 0; r < world.size(); ++r) {
    all.insert(all.begin(), r);
    if (r != world.size() / 2) most.push_back(r);
  }
  std::vector<std::unique_ptr<Communicator>> comms;
  comms.push_back(world.group(all));
  if (!most.empty()) comms.push_back(world.group(most));
  const Random program(7, RandomSite::sample),
      delays(8, RandomSite::sample, static_cast<uint32_t>(world.rank()));
  std::vector<std::pair<Communicator*, Moving>> moving;
  for (int32_t n = 0; n < 150; ++n) {
    const auto draw = static_cast<uint64_t>(n) * 4;
    Communicator* comm = comms[program.below(draw, comms.size())].get();
    if (delays.below(draw, 8) == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(delays.below(draw + 1, 2000)));
    }
    if (comm == nullptr) continue;  // not of this group
    const Sizes sizes = [](int32_t from, int32_t to, int64_t number) {
      const Random draws(9, RandomSite::sample, static_cast<uint32_t>(from),
                         static_cast<uint32_t>(to));
      const auto at = static_cast<uint64_t>(number) * 2;
      return draws.below(at, 3) == 0 ? 0 : static_cast<size_t>(draws.below(at + 1, 3000));
    };
    moving.emplace_back(comm, issue(*comm, {n / 10, n}, program.below(draw + 1, 2) == 0, sizes));
    if (moving.size() > delays.below(draw + 2, 5)) {
      const auto which = static_cast<size_t>(delays.below(draw + 3, moving.size()));
      finish(*moving[which].first, moving[which].second);
      moving.erase(moving.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  for (auto& rest : moving) finish(*rest.first, rest.second);
}

// A few operations, after which the last rank does what `fails` does; the others go on.
template <class Fails>
void until_one_fails(World& world, const Fails& fails) {
  const auto comm = world.everyone();
  for (int32_t n = 0; n < 10; ++n) {
    if (n == 4 && world.rank() == world.size() - 1) fails();
    Moving moving = issue(*comm, {3, n}, n % 2 == 0, size_between);
    finish(*comm, moving);
  }
  throw std::runtime_error("a run that lost a rank went on");
}

void own_error(World& world) {
  until_one_fails(world, [] { throw numeric_error("step 3: the loss is not finite"); });
}

void leaves(World& world) {
  until_one_fails(world, [] { throw storage_error("not said to anybody"); });
}

}  // namespace

const std::vector<NamedProgram>& rank_programs() {
  static const std::vector<NamedProgram> programs = {
      {"exchanges", exchanges},
      {"gathers", gathers},
      {"empty operations", empty_operations},
      {"overlapping", overlapping},
      {"ring", ring},
      {"transfers", transfers},
      {"groups", groups},
      {"two threads", two_threads},
      {"counted bytes", counted_bytes},
      {"large messages", large_messages},
      {"random program", random_program},
  };
  return programs;
}

std::vector<FailingProgram> failing_programs(int32_t ranks) {
  const int32_t last = ranks - 1;
  const std::string name = "rank " + std::to_string(last) + " (host ";
  return {
      {"own error", own_error, true, ExitCode::numeric, "step 3: the loss is not finite", last},
      {"leaves", leaves, false, ExitCode::device, "died, in gather 4 of step 3", last},
  };
}

}  // namespace hearth::test
