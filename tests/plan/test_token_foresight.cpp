// What is known of a layer's tokens before its router has run.
#include <catch2/catch_test_macros.hpp>

#include "plan/decisions/token_foresight.h"

namespace hearth::test {
namespace {

using Tokens = std::vector<double>;

void count(TokenForesight& of, size_t layer, const Tokens& tokens) {
  of.counted(layer, tokens, {}, {}, {});
}

TEST_CASE("token foresight: the step before, then what has passed of this step with it") {
  TokenForesight of(2, 3, 1, 2);
  CHECK(of.next(0).empty());
  count(of, 0, {6, 2, 0});
  CHECK(of.next(0) == Tokens{6, 2, 0});
  CHECK(of.next(1).empty());
  count(of, 0, {2, 2, 4});
  CHECK(of.next(0) == Tokens{4, 2, 2});  // a group of the two
  of.end_step();
  CHECK(Tokens(of.history(0).begin(), of.history(0).end()) == Tokens{8, 4, 4});
  CHECK(of.next(0) == Tokens{4, 2, 2});
  count(of, 0, {1, 2, 5});
  CHECK(of.next(0) == Tokens{3, 2, 3});  // three groups
  of.end_step();                         // the step before alone counts then
  CHECK(of.next(0) == Tokens{0.5, 1, 2.5});
}

TEST_CASE("token foresight: an abandoned step has never been") {
  TokenForesight of(1, 2, 1, 1);
  of.set_history(0, Tokens{3, 1});
  count(of, 0, {0, 4});
  CHECK(of.next(0) == Tokens{1.5, 2.5});
  of.forget_step();
  CHECK(of.next(0) == Tokens{3, 1});
  of.end_step();  // nothing was counted
  CHECK(of.next(0) == Tokens{3, 1});
}

TEST_CASE("token foresight: what was foretold is compared with what came") {
  TokenForesight of(1, 8, 2, 1);
  CHECK_FALSE(of.score().token_hit());
  count(of, 0, {9, 0, 0, 0, 0, 0, 0, 1});  // nobody foretold it
  CHECK_FALSE(of.score().token_hit());
  const Tokens foretold = {4, 3, 2, 1, 1, 1, 0, 0}, real = {3, 0, 4, 0, 1, 0, 1, 1};
  of.counted(0, real, foretold, std::vector{0, 1}, std::vector{0, 2});
  CHECK(of.score().token_hit() == 0.3);      // of the two foretold as most popular
  CHECK(of.score().least_quarter() == 0.5);  // 1 and 3 are the least; of the least three only 3
  CHECK(of.score().byte_hit() == 0.5);
  of.forget_step();
  CHECK_FALSE(of.score().byte_hit());
}

}  // namespace
}  // namespace hearth::test
