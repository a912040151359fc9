// gather: the sums of squares of the gradients, of which each rank has those of the tensors that it
// owns, to all ranks. So all of them clip alike. Like clip, it runs on the host.
#include "layers/kinds.h"

namespace hearth {

namespace {

class Gather final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    return norm_ports(s, Access::update);
  }

  std::vector<BlockUse> blocks(const TaskShape&) const override { return {}; }
  ScratchNeed scratch(const TaskShape&, const OpSet&) const override { return {}; }
  size_t lists(const TaskShape& s) const override {
    return list_bytes<double>(std::ssize(s.table.tensors())) + 2 * each_norm_bytes(s.table);
  }

  void run(const BodyContext& c) const override {
    auto norms = list_of<double>(c, std::ssize(c.table.tensors()));
    each_norm(c, [&](double& norm) { norms.push_back(norm); });
    c.ranks->gather_norms({norms.data(), DType::f64, 1, std::ssize(norms)});
    size_t next = 0;
    each_norm(c, [&](double& norm) { norm = norms[next++]; });
  }
};

}  // namespace

const Body& gather_body() {
  static const Gather body;
  return body;
}

}  // namespace hearth
