// The page of cost tables.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "page_checker.h"
#include "report/cost_page.h"

namespace hearth::test {
namespace {

using Catch::Approx;

TEST_CASE("cost page: where one curve begins to beat another") {
  const CostCurve host{"host", {1, 10, 100}, {1, 10, 100}};      // one second a token
  const CostCurve device{"device", {1, 10, 100}, {20, 20, 30}};  // slow to start
  CHECK(break_even(host, device) == Approx(10 + 90 * 10.0 / 80));
  CHECK(break_even(device, host) == INFINITY);
  const CostCurve fast{"fast", {1, 100}, {.1, 10}};
  CHECK(break_even(host, fast) == 0);
  // Beyond its end a curve goes on in proportion.
  const CostCurve shorter{"short", {1, 10}, {1, 10}};
  CHECK(break_even(shorter, device) == Approx(break_even(host, device)));
}

TEST_CASE("cost page: one well-formed file with all values, and nothing that is run") {
  const CostChart chart{"chart-0",
                        "experts forward, <b>f32</b>",
                        "tokens of an expert",
                        {{"host, 2 cores", {1, 10, 100}, {.5, 1, 12}},
                         {"cuda:0 <script>", {1, 10, 100}, {.25, .25, .375}}}};
  const std::string page = cost_page("Rates of \"a\" & b", {{"machine", "a < b"}}, {chart});
  checked_page(page);
  for (const char* text : {"&lt;b&gt;f32&lt;/b&gt;", "a &lt; b", "cuda:0 &lt;script&gt;",
                           "at every size", "<td>0.375</td>", "<td>266.7</td>"}) {
    INFO(text);
    CHECK(page.find(text) != std::string::npos);
  }
  CHECK(page.find("<b>") == std::string::npos);
  checked_page(cost_page("none", {}, {}));
}

}  // namespace
}  // namespace hearth::test
