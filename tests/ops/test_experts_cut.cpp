// Any cut of the experts' work gives the same bits: which experts a call has and in which order,
// which segments and whether they lie apart, what lies around its rows, whether x and dy are read
// through an index, whether the backward is one call or two, and the number of workers. Held to one
// call with all of it.
#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "base/sanitized.h"
#include "op_test.h"

using namespace hearth;
using namespace hearth::test;

namespace {

struct Shape {
  int64_t hidden, width;
  DType stored;
  int64_t rank;
  double dropout;
};

constexpr int64_t kExperts = 5, kSegments = 3, kTokens = 60, kCutChoices = 2, kBetween = 4;
constexpr const char* kCutMaps[] = {"gate", "up", "down"};
constexpr uint64_t kKeys[3][kSegments] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};

class Draw {
 public:
  explicit Draw(uint32_t seed) : engine_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  bool coin() { return below(2) == 0; }
  void shuffle(std::vector<int64_t>& list) {
    for (size_t i = list.size(); i > 1; --i) {
      std::swap(list[i - 1], list[static_cast<size_t>(below(static_cast<int64_t>(i)))]);
    }
  }

 private:
  std::mt19937 engine_;
};

/// One call: some experts in some order, of each the segments [first, last).
struct Call {
  std::vector<int64_t> experts;
  int64_t first = 0, last = kSegments;
  int64_t before = 0, behind = 0;
  bool apart = false, indexed = false, halves = false;
  int workers = 1;
  int64_t segments() const { return last - first; }
};

std::string name_of(const std::string& what, int map, int64_t expert) {
  return what + kCutMaps[map] + std::to_string(expert);
}

/// The rows of all experts and segments, and what is computed of them.
class Whole {
 public:
  Whole(const Shape& shape, Compute compute, std::span<const int64_t> lengths, Draw& draw)
      : shape_(shape), compute_(compute) {
    begin_ = {0};
    for (const int64_t n : lengths) begin_.push_back(begin_.back() + n);
    for (int64_t row = 0; row < rows(); ++row) {
      choice_.push_back(draw.below(kTokens * kCutChoices));
      id_.push_back(draw.below(1000));
    }
    add("x", kTokens, shape.hidden);
    add("dy", kTokens, shape.hidden);
    add("weight", 1, rows());
    for (const char* name : {"y", "dx"}) add(name, rows(), shape.hidden);
    for (const char* name : {"gate", "up", "dgate", "dup"}) add(name, rows(), shape.width);
    add("dweight", 1, rows());
    for (int64_t e = 0; e < kExperts; ++e) {
      for (int map = 0; map < 3; ++map) {
        const int64_t out = map == 2 ? shape.hidden : shape.width;
        const int64_t in = map == 2 ? shape.width : shape.hidden;
        add(name_of("", map, e), out, in, shape.stored);
        add(name_of("d", map, e), out, in);
        if (shape.rank == 0) continue;
        add(name_of("a ", map, e), shape.rank, in);
        add(name_of("b ", map, e), out, shape.rank);
        add(name_of("da ", map, e), shape.rank, in);
        add(name_of("db ", map, e), out, shape.rank);
      }
    }
  }

  int64_t rows() const { return begin_.back(); }
  const Tensors& tensors() const { return tensors_; }

  void run(const OpSet& ops, const Call& call) {
    Tensors t;
    const Layout layout = call.apart ? apart(call) : together(call);
    const int64_t all = layout.stride > 0 ? layout.stride * call.segments() : layout.end;
    std::vector<int64_t> which(static_cast<size_t>(all), -1);  // rows of the whole
    for (const auto& [row, to] : layout.rows) which[static_cast<size_t>(to)] = row;
    t["offsets"] = Tensor(DType::i32, call.apart ? call.segments() : 1,
                          std::ssize(layout.offsets) / (call.apart ? call.segments() : 1))
                       .assign(layout.offsets);
    for (const char* name : {"source", "ids"}) t[name] = Tensor(DType::i32, 1, all);
    for (const char* name : {"weight", "dweight"}) t[name] = Tensor(DType::f32, 1, all);
    for (const char* name : {"x", "dy", "y", "dx"}) {
      t[name] = Tensor(DType::f32, all, shape_.hidden, 4);
    }
    for (const char* name : {"gate", "up", "h"}) t[name] = Tensor(DType::f32, all, shape_.width);
    for (const auto& [of_whole, to] : layout.rows) {
      const auto row = static_cast<size_t>(of_whole);
      t["source"].set(0, to, static_cast<double>(choice_[row]));
      t["ids"].set(0, to, static_cast<double>(id_[row]));
      t["weight"].set(0, to, tensors_["weight"].get(0, of_whole));
      for (const char* name : {"x", "dy"}) {
        for (int64_t c = 0; c < shape_.hidden; ++c) {
          t[name].set(to, c, tensors_[name].get(choice_[row] / kCutChoices, c));
        }
      }
    }
    int64_t most = 1;  // a subset needs no more scratch than its own sizes
    most = std::max(most, std::ssize(call.experts) * (call.last - call.first));
    TestStream stream(ops, call.workers,
                      ops.experts_scratch(all, most, shape_.hidden, shape_.width, shape_.rank,
                                          Compute::bf16, all / 2));
    Stream& s = stream;
    ExpertRows rows = call.apart ? ExpertRows::apart(t["offsets"].view(), layout.stride)
                                 : ExpertRows(t["offsets"].view(), call.segments());
    if (call.indexed && call.apart) {
      for (const char* name : {"x", "dy"}) t[name] = tokens_apart(name, call.segments());
      const ConstView source = t["source"].view();
      rows = rows.indexed(source.reshape(call.segments(), layout.stride), kCutChoices,
                          kTokens + kBetween);
    } else if (call.indexed) {
      rows = rows.indexed(t["source"].view(), kCutChoices);
    }
    const bool own = !call.indexed || call.apart;
    const ConstView x = (own ? t : tensors_)["x"].view();
    const ConstView dy = (own ? t : tensors_)["dy"].view();
    std::vector<ExpertView> experts;
    std::vector<ExpertGradient> gradients;
    for (const int64_t e : call.experts) {
      experts.push_back({map(t, call, 0, e), map(t, call, 1, e), map(t, call, 2, e)});
      gradients.push_back({gradient(0, e), gradient(1, e), gradient(2, e)});
    }
    const auto view = [&](const char* name) { return t[name].view(); };
    ops.experts_forward(s, x, rows, experts, view("gate"), view("up"), view("y"));
    s.synchronize();
    for (const char* name : {"gate", "up", "y"}) take(t, name, name, which);
    if (call.halves) {
      ops.experts_dgrad(s, dy, view("weight"), rows, experts, view("gate"), view("up"), view("h"),
                        view("dx"), view("dweight"));
      ops.experts_wgrad(s, dy, x, rows, experts, view("gate"), view("up"), view("h"), gradients);
    } else {
      ops.experts_backward(s, dy, view("weight"), x, rows, experts, view("gate"), view("up"),
                           view("dx"), view("dweight"), gradients);
    }
    s.synchronize();
    take(t, "gate", "dgate", which);
    take(t, "up", "dup", which);
    take(t, "dx", "dx", which);
    for (const auto& [row, to] : layout.rows) {
      tensors_["dweight"].set(0, row, t["dweight"].get(0, to));
    }
    for (const auto& [name, tensor] : t) {
      INFO(name);
      CHECK(tensor.canaries_alive());
    }
  }

 private:
  /// Where a call has its rows.
  struct Layout {
    std::vector<std::pair<int64_t, int64_t>> rows;  // of the whole, of the call
    std::vector<double> offsets;
    int64_t end = 0;     // rows of the call's views
    int64_t stride = 0;  // if segments lie apart
  };
  Layout together(const Call& call) const {
    Layout layout;
    layout.end = call.before;
    layout.offsets = {static_cast<double>(layout.end)};
    for (const int64_t e : call.experts) {
      for (int64_t s = call.first; s < call.last; ++s) {
        const auto at = static_cast<size_t>(e * kSegments + s);
        for (int64_t row = begin_[at]; row < begin_[at + 1]; ++row) {
          layout.rows.emplace_back(row, layout.end++);
        }
        layout.offsets.push_back(static_cast<double>(layout.end));
      }
    }
    layout.end += call.behind;
    return layout;
  }
  Layout apart(const Call& call) const {
    Layout layout;
    for (int64_t s = call.first; s < call.last; ++s) {
      int64_t length = 0;
      for (const int64_t e : call.experts) {
        const auto at = static_cast<size_t>(e * kSegments + s);
        length += begin_[at + 1] - begin_[at];
      }
      layout.stride = std::max(layout.stride, call.before + length + call.behind);
    }
    layout.stride = std::max<int64_t>(1, layout.stride);
    for (int64_t s = call.first; s < call.last; ++s) {
      const int64_t begin = (s - call.first) * layout.stride;
      int64_t to = begin + call.before;
      layout.offsets.push_back(static_cast<double>(to - begin));
      for (const int64_t e : call.experts) {
        const auto at = static_cast<size_t>(e * kSegments + s);
        for (int64_t row = begin_[at]; row < begin_[at + 1]; ++row) {
          layout.rows.emplace_back(row, to++);
        }
        layout.offsets.push_back(static_cast<double>(to - begin));
      }
    }
    return layout;
  }
  /// The tokens of each segment, all of them equal, with rows in between that nobody reads.
  Tensor tokens_apart(const char* name, int64_t segments) {
    const int64_t stride = kTokens + kBetween;
    Tensor apart(DType::f32, segments * stride - kBetween, shape_.hidden);
    for (int64_t row = 0; row < apart.rows(); ++row) {
      for (int64_t c = 0; c < shape_.hidden; ++c) {
        const int64_t token = row % stride;
        apart.set(row, c, token < kTokens ? tensors_[name].get(token, c) : NAN);
      }
    }
    return apart;
  }
  void add(const std::string& name, int64_t r, int64_t c, DType type = DType::f32) {
    tensors_[name] = Tensor(type, r, c).fill_random(name);
  }
  LinearView map(Tensors& t, const Call& call, int i, int64_t e) {
    LinearView w{tensors_[name_of("", i, e)].view(), {}, compute_};
    if (shape_.rank == 0) return w;
    w.low_rank.a = tensors_[name_of("a ", i, e)].view();
    w.low_rank.b = tensors_[name_of("b ", i, e)].view();
    w.low_rank.scale = 0.75;
    if (shape_.dropout == 0) return w;
    const auto keys = std::span(kKeys[i]).subspan(static_cast<size_t>(call.first),
                                                  static_cast<size_t>(call.last - call.first));
    w.low_rank.dropout = {shape_.dropout, keys[0], t["ids"].view(), 0, keys};
    return w;
  }
  LinearGradient gradient(int i, int64_t e) {
    LinearGradient g{.weight = tensors_[name_of("d", i, e)].view()};
    if (shape_.rank == 0) return g;
    g.a = tensors_[name_of("da ", i, e)].view();
    g.b = tensors_[name_of("db ", i, e)].view();
    return g;
  }
  /// The call's rows of `from` to the whole's rows of `to`. All others are as they were.
  void take(Tensors& t, const char* from, const char* to, const std::vector<int64_t>& which) {
    Tensor &part = t[from], &all = tensors_[to];
    for (int64_t row = 0; row < part.rows(); ++row) {
      const int64_t of_whole = which[static_cast<size_t>(row)];
      for (int64_t c = 0; c < part.cols(); ++c) {
        if (of_whole >= 0) {
          all.set(of_whole, c, part.get(row, c));
        } else if (!std::isnan(part.get(row, c))) {
          FAIL("row " << row << " of " << from << " is of no expert, and was written");
        }
      }
    }
  }

  Shape shape_;
  Compute compute_;
  std::vector<int64_t> begin_, choice_, id_;
  Tensors tensors_;
};

/// Calls that together compute everything once: experts in groups, each in its own cut of segments.
std::vector<Call> random_cut(Draw& draw) {
  std::vector<int64_t> experts(kExperts);
  std::iota(experts.begin(), experts.end(), 0);
  draw.shuffle(experts);
  std::vector<Call> calls;
  for (size_t at = 0; at < experts.size();) {
    const auto count =
        static_cast<size_t>(1 + draw.below(static_cast<int64_t>(experts.size() - at)));
    std::vector<int64_t> some(experts.begin() + static_cast<int64_t>(at),
                              experts.begin() + static_cast<int64_t>(at + count));
    for (int64_t first = 0; first < kSegments;) {
      draw.shuffle(some);
      Call call;
      call.experts = some;
      call.first = first;
      call.last = first = first + 1 + draw.below(kSegments - first);
      call.before = draw.coin() ? draw.below(20) : 0;
      call.behind = draw.coin() ? draw.below(20) : 0;
      call.apart = draw.coin();
      call.indexed = draw.coin();
      call.halves = draw.coin();
      call.workers = static_cast<int>(1 + draw.below(8));
      calls.push_back(call);
    }
    at += count;
  }
  return calls;
}

std::vector<int64_t> random_lengths(Draw& draw, std::span<const int64_t> sizes) {
  std::vector<int64_t> lengths(kExperts * kSegments);
  for (int64_t& n : lengths) {
    n = sizes[static_cast<size_t>(draw.below(static_cast<int64_t>(sizes.size())))];
  }
  return lengths;
}

void check_cuts(const Shape& shape, std::span<const int64_t> sizes, int cuts, uint32_t seed) {
  for (const OpSet* ops : all_op_sets()) {
    for (const Compute compute : {Compute::f32, Compute::bf16}) {
      if (!ops->supports(DType::f32, compute)) continue;
      Draw draw(seed);
      const std::vector<int64_t> lengths = random_lengths(draw, sizes);
      const Whole begin(shape, compute, lengths, draw);
      Whole expected = begin;
      Call all;
      all.experts.resize(kExperts);
      std::iota(all.experts.begin(), all.experts.end(), 0);
      expected.run(*ops, all);
      for (int i = 0; i < (kSanitized ? 1 : cuts); ++i) {
        Whole actual = begin;
        for (const Call& call : random_cut(draw)) actual.run(*ops, call);
        for (const auto& [name, tensor] : actual.tensors()) {
          INFO(name << " on " << ops->name() << ", " << (compute == Compute::bf16 ? "bf16" : "f32")
                    << ", cut " << i << " of seed " << seed);
          CHECK(tensor.same_bits(expected.tensors().at(name)));
        }
      }
    }
  }
}

constexpr int64_t kFew[] = {0, 1, 2, 3, 7, 16, 17, 33};
constexpr int64_t kMany[] = {0, 1, 130, 270, 540};

}  // namespace

TEST_CASE("experts: any cut gives the same bits, few rows") {
  uint32_t seed = 1;
  for (const DType stored : {DType::f32, DType::bf16}) {
    if (!kSanitized || stored == DType::f32) {
      check_cuts({33, 20, stored, 0, 0}, kFew, 6, seed++);
      check_cuts({70, 36, stored, 4, 0}, kFew, 4, seed++);
    }
    if (!kSanitized || stored == DType::bf16) {
      check_cuts({40, 72, stored, 5, 0.4}, kFew, 4, seed++);
      check_cuts({72, 64, stored, 0, 0}, kFew, 2, seed++);  // what a GPU's library takes
    }
  }
}

TEST_CASE("experts: any cut gives the same bits, several blocks of rows and columns") {
  if (!kSanitized) check_cuts({40, 24, DType::f32, 0, 0}, kMany, 2, 11);
  check_cuts({24, 20, DType::bf16, 3, 0.4}, kMany, 2, 12);
  check_cuts({400, 270, DType::f32, 0, 0}, kFew, 2, 13);
}
