#include "gpu_kernels/libraries/cudnn/attention_graph.h"

#include <cudnn_frontend.h>

#include <unordered_map>
#include <vector>

#include "base/error.h"

namespace hearth::HEARTH_GPU {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Tensor_attributes;
using Tensor = std::shared_ptr<Tensor_attributes>;

// Names of tensors for run().
enum Uid : int64_t {
  kQ = 1,
  kK,
  kV,
  kOut,
  kSum,
  kDout,
  kDq,
  kDk,
  kDv,
  kQueries,
  kKeys,
  kQueryBegin,
  kKeyBegin,
  kSumBegin
};

// Tensors of a graph. Rows of heads side by side are dimensions sequence, head, row, column.
class Builder {
 public:
  Builder(fe::graph::Graph& graph, const AttentionGraphShape& shape) : graph_(graph), s_(shape) {
    queries_ = integers(kQueries, s_.sequences, fe::DataType_t::INT32);
    keys_ = integers(kKeys, s_.sequences, fe::DataType_t::INT32);
    query_begin_ = integers(kQueryBegin, s_.sequences + 1, fe::DataType_t::INT64);
    key_begin_ = integers(kKeyBegin, s_.sequences + 1, fe::DataType_t::INT64);
    sum_begin_ = integers(kSumBegin, s_.sequences + 1, fe::DataType_t::INT64);
  }

  void forward() {
    auto options = common(fe::graph::SDPA_attributes()).set_generate_stats(true);
    auto [out, sum] = graph_.sdpa(input(query(kQ)), input(key(kK)), input(key(kV)), options);
    output(out, query(kOut));
    output(sum, sums());
  }

  void backward() {
    auto options = common(fe::graph::SDPA_backward_attributes())
                       .set_max_total_seq_len_q(s_.rows)
                       .set_max_total_seq_len_kv(s_.key_rows)
                       .set_deterministic_algorithm(true);
    auto [dq, dk, dv] =
        graph_.sdpa_backward(input(query(kQ)), input(key(kK)), input(key(kV)), input(query(kOut)),
                             input(query(kDout)), input(sums()), options);
    output(dq, query(kDq));
    output(dk, key(kDk));
    output(dv, key(kDv));
  }

 private:
  // A query sees the keys up to its own, both counted from their sequence's end.
  template <class Options>
  Options common(Options options) {
    options.set_attn_scale(s_.scale)
        .set_padding_mask(true)
        .set_seq_len_q(queries_)
        .set_seq_len_kv(keys_)
        .set_diagonal_alignment(fe::DiagonalAlignment_t::BOTTOM_RIGHT)
        .set_diagonal_band_right_bound(0);
    if (s_.window > 0) options.set_diagonal_band_left_bound(static_cast<int>(s_.window));
    return options;
  }

  Tensor integers(Uid uid, int64_t count, fe::DataType_t type) {
    return graph_.tensor(Tensor_attributes()
                             .set_uid(uid)
                             .set_dim({count, 1, 1, 1})
                             .set_stride({1, 1, 1, 1})
                             .set_data_type(type));
  }
  Tensor_attributes heads(Uid uid, int64_t heads, int64_t rows, const Tensor& begin) const {
    const int64_t width = heads * s_.head_dim;
    return Tensor_attributes()
        .set_uid(uid)
        .set_data_type(fe::DataType_t::BFLOAT16)
        .set_dim({s_.sequences, heads, rows, s_.head_dim})
        .set_stride({rows * width, s_.head_dim, width, 1})
        .set_ragged_offset(begin);
  }
  Tensor_attributes query(Uid uid) const { return heads(uid, s_.heads, s_.rows, query_begin_); }
  Tensor_attributes key(Uid uid) const { return heads(uid, s_.kv_heads, s_.key_rows, key_begin_); }
  Tensor_attributes sums() const {
    return Tensor_attributes()
        .set_uid(kSum)
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim({s_.sequences, s_.heads, s_.rows, 1})
        .set_stride({s_.rows * s_.sum_stride, 1, s_.sum_stride, 1})
        .set_ragged_offset(sum_begin_);
  }
  Tensor input(const Tensor_attributes& attributes) { return graph_.tensor(attributes); }
  static void output(const Tensor& tensor, Tensor_attributes as) {
    tensor->set_output(true)
        .set_uid(as.get_uid())
        .set_data_type(as.get_data_type())
        .set_dim(as.get_dim())
        .set_stride(as.get_stride())
        .set_ragged_offset(as.get_ragged_offset());
  }

  fe::graph::Graph& graph_;
  const AttentionGraphShape& s_;
  Tensor queries_, keys_, query_begin_, key_begin_, sum_begin_;
};

void require(fe::error_t error) {
  if (!error.is_good()) throw std::runtime_error(error.get_message());
}

}  // namespace

struct AttentionGraph::Parts {
  fe::graph::Graph graph;
  bool backward = false;
};

template <class Begin, class Finish>
void AttentionGraph::build(const AttentionGraphShape& shape, Begin begin, Finish finish) {
  // The frontend throws, too, where a function is missing.
  try {
    fe::graph::Graph& graph = parts_->graph;
    graph.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    parts_->backward = shape.backward;
    begin(graph);
    Builder builder(graph, shape);
    shape.backward ? builder.backward() : builder.forward();
    finish(graph);
  } catch (const std::exception& error) {
    problem_ = error.what();
    if (problem_.empty()) problem_ = "it cannot be set up on this device";
  }
}

AttentionGraph::AttentionGraph(void* handle, const AttentionGraphShape& shape)
    : parts_(std::make_unique<Parts>()) {
  const auto current_device = [](fe::graph::Graph&) {};
  build(shape, current_device, [&](fe::graph::Graph& graph) {
    require(graph.validate());
    require(graph.build_operation_graph(static_cast<cudnnHandle_t>(handle)));
    require(graph.create_execution_plans({fe::HeurMode_t::A}));
    require(graph.check_support());
    require(graph.build_plans());
    require(graph.get_workspace_size(workspace_));
  });
}

AttentionGraph::AttentionGraph(const std::string& device, int architecture,
                               const AttentionGraphShape& shape)
    : parts_(std::make_unique<Parts>()) {
  const auto described = [&](fe::graph::Graph& graph) {
    const auto properties = std::make_shared<fe::DeviceProperties>();
    require(properties->deserialize(std::vector<uint8_t>(device.begin(), device.end())));
    graph.set_device_properties(properties).set_sm_version(architecture);
  };
  build(shape, described, [&](fe::graph::Graph& graph) {
    require(graph.validate());
    require(graph.build_operation_graph());
    require(graph.create_execution_plans({fe::HeurMode_t::A}));
    require(graph.check_support());
  });
}

AttentionGraph::~AttentionGraph() = default;

void AttentionGraph::run(void* handle, const AttentionGraphData& data) const {
  std::unordered_map<int64_t, void*> memory = {
      {kQ, const_cast<void*>(data.q)},
      {kK, const_cast<void*>(data.k)},
      {kV, const_cast<void*>(data.v)},
      {kOut, data.out},
      {kSum, data.log_sum},
      {kQueries, data.packing.queries},
      {kKeys, data.packing.keys},
      {kQueryBegin, data.packing.query_begin},
      {kKeyBegin, data.packing.key_begin},
      {kSumBegin, data.packing.sum_begin},
  };
  if (parts_->backward) {
    memory[kDout] = const_cast<void*>(data.dout);
    memory[kDq] = data.dq;
    memory[kDk] = data.dk;
    memory[kDv] = data.dv;
  }
  auto error = parts_->graph.execute(static_cast<cudnnHandle_t>(handle), memory, data.workspace);
  if (!error.is_good()) throw device_error("cuDNN: attention failed: " + error.get_message());
}

}  // namespace hearth::HEARTH_GPU
