// Which library computes a problem, and what is said of those that decline.
#include <array>
#include <catch2/catch_test_macros.hpp>

#include "gpu_kernels/libraries/product_libraries.h"
#include "support/raises.h"
#include "support/test_stream.h"

using namespace hearth;
using namespace hearth::HEARTH_GPU;

namespace {

// Takes products of at least so many rows.
class FromRows final : public ProductLibrary {
 public:
  FromRows(std::string_view name, int64_t least) : name_(name), least_(least) {}
  std::string_view name() const override { return name_; }
  std::string declines(GpuStream&, const DenseProduct& p) const override {
    return p.rows < least_ ? "fewer than " + std::to_string(least_) + " rows" : "";
  }
  void run(GpuStream&, const DenseProduct&) const override {}
  size_t scratch_bytes() const override { return 0; }

 private:
  std::string_view name_;
  int64_t least_;
};

}  // namespace

TEST_CASE("choices: the first that takes a problem, none where all decline") {
  hearth::test::TestStream host;
  GpuStream stream(host);
  const FromRows first("many", 100), second("some", 10);
  const std::array<const ProductLibrary*, 2> choices = {&first, &second};
  std::vector<std::string> said;
  const auto chosen = [&](int64_t rows) {
    DenseProduct product;
    product.rows = rows;
    return choose(
        LibraryList<ProductLibrary>(choices),
        [&](const std::string& line) { said.push_back(line); }, stream, product);
  };
  CHECK(chosen(100) == &first);
  CHECK(said.empty());
  CHECK(chosen(99) == &second);
  CHECK(chosen(9) == nullptr);
  CHECK(said == std::vector<std::string>{"many not used: fewer than 100 rows",
                                         "some not used: fewer than 10 rows"});
  CHECK(chosen(9) == nullptr);
  CHECK(said.size() == 2);  // each reason once

  refuse_library("many");
  CHECK(chosen(100) == &second);
  CHECK(said.size() == 2);
  CHECK_FALSE(is_refused("some"));
  refuse_library("many", false);
  CHECK(chosen(100) == &first);
}

TEST_CASE("choices: what HEARTH_WITHOUT leaves out is named as the libraries are") {
  CHECK(left_out("").empty());
  CHECK(left_out("cuBLASLt") == std::vector<std::string_view>{"cuBLASLt"});
  CHECK(left_out("cuDNN,CUTLASS") == std::vector<std::string_view>{"cuDNN", "CUTLASS"});
  for (const char* wrong : {"cudnn", "cuDNN, CUTLASS", "foo", ","}) {
    const auto raised = hearth::test::raised_by([&] { left_out(wrong); });
    INFO(wrong);
    CHECK(raised.code == ExitCode::usage);
    CHECK(raised.says("HEARTH_WITHOUT: "));
  }
}

TEST_CASE("product choices: without cuBLASLt the reason is said and no workspace is taken") {
  hearth::test::TestStream host;
  GpuStream stream(host);
  REQUIRE(product_libraries().size() == 1);
  CHECK(product_libraries()[0]->name() == "cuBLASLt");
  CHECK(product_libraries()[0]->declines(stream, {}) != "");
  CHECK(most_scratch_bytes(product_libraries()) == 0);
}
