// Products of experts as a library takes them: the tables made on the device, what is declined, and
// that what a library does not take is left to our kernels.
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "cuda_emulator/emulated_grouped.h"
#include "gpu_kernels/kernels/grouped_problems.h"
#include "gpu_kernels/ops/products.h"
#include "support/test_stream.h"

using namespace hearth;
using namespace hearth::HEARTH_GPU;

namespace {

// Three groups, of 5, no and 2 rows; nothing is read through the pointers.
struct Tables {
  alignas(16) uint16_t a[8 * 24], b[8 * 16], weights[3][24 * 16];
  alignas(16) float c[8 * 32], gradients[3][24 * 16];
  std::vector<int32_t> offsets = {0, 5, 5, 7};
  std::vector<ProductGroup> groups = std::vector<ProductGroup>(3);
  GroupedProduct product;
  GroupedProblems problems;
  hearth::test::TestStream host{1, {grouped_problem_bytes(3), 0}};
  GpuStream stream{host};

  explicit Tables(Form form) {
    for (size_t g = 0; g < 3; ++g) {
      ProductGroup& group = groups[g];
      if (form == Form::wgrad) {
        group.rows = 24;
        group.columns = 16;
        group.c = gradients[g];
        group.c_stride = 16;
      } else {
        group.weight[0] = weights[g];
        group.weight_stride[0] = form == Form::forward ? 24 : 16;
        group.stored[0] = Stored::bf16;
        group.depth[0] = 24;
        group.columns = 16;
      }
    }
    product.form = form;
    product.a = {a, 24, Stored::bf16};
    product.b = {b, 16, Stored::bf16};
    product.groups = groups;
    product.offsets = offsets.data();
    product.rows = 7;
    product.c = c;
    product.c_stride = 32;
  }
  void make() {
    problems = take_grouped_problems(stream.scratch(), 3);
    grouped_problems_on(stream.handle(), grouped_problem_args(product, groups.data(), problems));
  }
};

}  // namespace

TEST_CASE("grouped problems: rows of forward and dgrad, a group without rows") {
  for (const Form form : {Form::forward, Form::dgrad}) {
    Tables t(form);
    t.make();
    CHECK(t.problems.shape[0] == GroupedShape{5, 16, 24});
    CHECK(t.problems.shape[1] == GroupedShape{0, 0, 0});
    CHECK(t.problems.shape[2] == GroupedShape{2, 16, 24});
    CHECK(t.problems.a[0] == t.a);
    CHECK(t.problems.a[2] == t.a + 5 * 24);
    CHECK(t.problems.a_stride[2] == 24);
    CHECK(t.problems.b[2] == t.weights[2]);
    CHECK(t.problems.b_stride[2] == (form == Form::forward ? 24 : 16));
    CHECK(t.problems.c[2] == t.c + 5 * 32);
    CHECK(t.problems.c_stride[2] == 32);
  }
}

TEST_CASE(
    "grouped problems: wgrad sums over the rows; groups without rows or gradient are left out") {
  Tables t(Form::wgrad);
  t.groups[2] = {};
  t.make();
  CHECK(t.problems.shape[0] == GroupedShape{24, 16, 5});
  CHECK(t.problems.shape[1] == GroupedShape{0, 0, 0});
  CHECK(t.problems.shape[2] == GroupedShape{0, 0, 0});
  CHECK(t.problems.a[0] == t.a);
  CHECK(t.problems.b[0] == t.b);
  CHECK(t.problems.b_stride[0] == 16);
  CHECK(t.problems.c[0] == t.gradients[0]);
  CHECK(t.problems.c_stride[0] == 16);
}

TEST_CASE("grouped problems: the second segment") {
  Tables t(Form::dgrad);
  for (size_t g : {size_t{0}, size_t{2}}) {
    t.groups[g].weight[1] = t.weights[g] + 8;
    t.groups[g].weight_stride[1] = 40;
    t.groups[g].depth[1] = g == 0 ? 8 : 0;  // the last has none
  }
  t.product.segment = 1;
  t.make();
  CHECK(t.problems.shape[0] == GroupedShape{5, 16, 8});
  CHECK(t.problems.shape[2] == GroupedShape{0, 0, 0});
  CHECK(t.problems.b[0] == t.weights[0] + 8);
  CHECK(t.problems.b_stride[0] == 40);
}

TEST_CASE("grouped products: what no library takes") {
  for (const Form form : {Form::forward, Form::dgrad, Form::wgrad}) {
    Tables t(form);
    CHECK(grouped_misfit(t.product).empty());
    t.groups[1].columns = 12;
    CHECK(grouped_misfit(t.product) == "sizes that are not multiples of 8");
    t.groups[1].columns = 0;  // not computed at all
    CHECK(grouped_misfit(t.product).empty());
    t.product.a.stride = 28;
    CHECK(grouped_misfit(t.product) == "activations not in whole bf16 chunks");
    t.product.a = {t.a, 24, Stored::f32};
    CHECK(grouped_misfit(t.product) == "operands that are not bf16");
  }
  Tables forward(Form::forward);
  forward.groups[2].stored[0] = Stored::f16;
  CHECK(grouped_misfit(forward.product) == "weights not in whole bf16 chunks");
  forward.groups[2] = forward.groups[1];
  forward.product.c_stride = 30;
  CHECK(grouped_misfit(forward.product) == "results not aligned to 16 bytes");
  Tables wgrad(Form::wgrad);
  wgrad.groups[2].c += 2;
  CHECK(grouped_misfit(wgrad.product) == "gradients not aligned to 16 bytes");
  Tables short_of_depth(Form::forward);
  short_of_depth.groups[0].depth[0] = 0;  // c must become 0, which nobody would do
  CHECK(grouped_misfit(short_of_depth.product) == "a sum of no terms");
  short_of_depth.product.accumulate = true;
  CHECK(grouped_misfit(short_of_depth.product).empty());
}
