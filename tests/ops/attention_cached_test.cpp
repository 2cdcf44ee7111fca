#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "ops/reference.h"
#include "quatrain/layer_ops.h"

namespace quatrain {
namespace {

using test::relative_error;

struct Cache {
  at::Tensor query, keys, values, table, lengths;

  Cache(int64_t rows, int64_t slots, int64_t capacity, int64_t n, int64_t heads, int64_t m) {
    query = torch::randn({rows, n, heads, m});
    keys = torch::randn({slots, capacity, n, heads, m});
    values = torch::randn({slots, capacity, n, heads, m});
    table = torch::randint(slots, {rows, capacity}, torch::kInt);
    lengths = torch::randint(1, capacity + 1, {rows}, torch::kInt);
  }
  at::Tensor attend(const std::string& algebra, std::optional<double> scale = {}) const {
    return ops::cached_attention(query, keys, values, table, lengths, algebra, scale);
  }
  /// Row by row, in float64, with keys and values gathered.
  at::Tensor literal(const std::string& algebra, std::optional<double> scale = {}) const {
    std::vector<at::Tensor> rows;
    for (int64_t row = 0; row < query.size(0); ++row) {
      std::vector<at::Tensor> K, V;
      for (int64_t s = 0; s < lengths[row].item<int64_t>(); ++s) {
        const int64_t slot = table[row][s].item<int64_t>();
        K.push_back(keys[slot][s]), V.push_back(values[slot][s]);
      }
      const auto of = [](const std::vector<at::Tensor>& t) {
        return torch::stack(t).unsqueeze(0).to(torch::kDouble);
      };
      ops::AttentionOptions how;
      how.algebra = algebra, how.scale = scale;
      rows.push_back(
          ops::hypercomplex_attention(
              query[row].to(torch::kDouble).view({1, 1, query.size(1), query.size(2), -1}), of(K), of(V), how)
              .view({-1}));
    }
    return torch::stack(rows);
  }
};

TEST(CachedAttention, IsAttentionOverWhatTheTableNames) {
  torch::manual_seed(0);
  const torch::NoGradGuard no_grad;
  for (const auto& [algebra, n] : std::vector<std::pair<std::string, int64_t>>{
           {"real", 1}, {"real", 4}, {"complex", 2}, {"quaternion", 4}, {"octonion", 8}})
    for (const int64_t m : {1, 5, 16, 33})
      for (const int64_t capacity : {1, 7, 40}) {
        SCOPED_TRACE(algebra + ", m = " + std::to_string(m) + ", capacity " + std::to_string(capacity));
        Cache cache(6, 9, capacity, n, 3, m);
        EXPECT_LT(relative_error(cache.attend(algebra), cache.literal(algebra)), 2e-6);
        EXPECT_LT(relative_error(cache.attend(algebra, 0.3), cache.literal(algebra, 0.3)), 2e-6);
        // Behind a row's length the table may hold anything.
        cache.table.masked_fill_(torch::arange(capacity) >= cache.lengths.unsqueeze(1), -77);
        EXPECT_LT(relative_error(cache.attend(algebra), cache.literal(algebra)), 2e-6);
        for (at::Tensor* t : {&cache.query, &cache.keys, &cache.values}) *t = t->to(torch::kDouble);
        EXPECT_LT(relative_error(cache.attend(algebra), cache.literal(algebra)), 1e-12);
      }
  const Cache cache(1, 1, 1, 1, 1, 1);
  for (const double scale : {std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_THROW(cache.attend("real", scale), c10::Error);
}

TEST(CachedAttention, TakesAnyStridesAndNoRows) {
  torch::manual_seed(1);
  const torch::NoGradGuard no_grad;
  Cache cache(5, 4, 12, 4, 2, 8);
  const at::Tensor expected = cache.attend("quaternion");
  cache.query = cache.query.transpose(1, 2).contiguous().transpose(1, 2);
  cache.keys = cache.keys.transpose(0, 1).contiguous().transpose(0, 1);
  cache.values = torch::stack({cache.values, cache.values}, -1).select(-1, 0);
  EXPECT_LT(relative_error(cache.attend("quaternion"), expected), 1e-6);
  Cache none(0, 4, 12, 4, 2, 8);
  EXPECT_EQ(none.attend("quaternion").sizes(), (std::vector<int64_t>{0, 64}));
}

// Threads may share the heads of a row between them.
TEST(CachedAttention, HasTheBitsOfOneThreadWithSeveral) {
  torch::manual_seed(4);
  const torch::NoGradGuard no_grad;
  const Cache cache(5, 6, 20, 4, 6, 8);
  const int threads = at::get_num_threads();
  for (const char* algebra : {"real", "quaternion"}) {
    at::set_num_threads(1);
    const at::Tensor expected = cache.attend(algebra);
    at::set_num_threads(3);
    EXPECT_TRUE(torch::equal(cache.attend(algebra), expected));
    at::set_num_threads(threads);
  }
}

TEST(CachedAttention, KeepsWordsOfAnyTypeAndStrides) {
  torch::manual_seed(5);
  const torch::NoGradGuard no_grad;
  for (const at::ScalarType type : {torch::kFloat, torch::kDouble, torch::kBFloat16})
    for (const bool apart : {false, true}) {
      const at::Tensor cache = torch::randn({6, 5, 4, 2, 8}, type), expected = cache.clone();
      at::Tensor words = torch::randn({3, 4, 2, 8});
      if (apart) words = torch::stack({words, words}, 2).select(2, 1);
      expected.select(1, 2).narrow(0, 0, 3).copy_(words);
      ops::keep_words(cache, 2, words);
      EXPECT_TRUE(torch::equal(cache, expected));
      ops::keep_words(cache, 1, words.narrow(0, 0, 0));
      EXPECT_TRUE(torch::equal(cache, expected));
      EXPECT_THROW(ops::keep_words(cache, 5, words), c10::Error);
      EXPECT_THROW(ops::keep_words(cache, 0, words.narrow(3, 0, 7)), c10::Error);
      EXPECT_THROW(ops::keep_words(cache, 0, words.repeat({3, 1, 1, 1})), c10::Error);
    }
}

TEST(CachedAttention, DoesNotReadBehindARowsLength) {
  torch::manual_seed(2);
  const torch::NoGradGuard no_grad;
  Cache cache(3, 3, 10, 4, 2, 8);
  cache.table = torch::arange(3, torch::kInt).unsqueeze(1).expand({3, 10});
  cache.lengths = torch::tensor({1, 4, 9}, torch::kInt);
  const at::Tensor expected = cache.attend("quaternion");
  for (int64_t row = 0; row < 3; ++row)
    for (const at::Tensor& t : {cache.keys, cache.values})
      t[row].slice(0, cache.lengths[row].item<int64_t>()).fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(torch::equal(cache.attend("quaternion"), expected));
}

TEST(CachedAttention, RefusesBadArguments) {
  const auto refused = [](const Cache& cache, const std::string& algebra = "quaternion") {
    try {
      cache.attend(algebra);
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string("taken");
  };
  Cache cache(2, 3, 4, 4, 2, 8);
  EXPECT_THAT(refused(cache, "octonion"), testing::HasSubstr("'octonion' has n = 8 components, query has 4"));
  Cache other = cache;
  for (const at::ScalarType type : {torch::kFloat, torch::kDouble}) {
    other = cache;
    for (at::Tensor* t : {&other.query, &other.keys, &other.values}) *t = t->to(type);
    const at::Tensor table = other.table;
    other.table = torch::full({2, 4}, 3, torch::kInt);
    EXPECT_THAT(refused(other), testing::HasSubstr("table must name one of 3 slots, got 3"));
    other.table = table;
    for (const int length : {0, 5}) {
      other.lengths = torch::tensor({1, length}, torch::kInt);
      EXPECT_THAT(refused(other), testing::HasSubstr("lengths must be from 1 to the table's 4, got"));
    }
  }
  other = cache;
  other.lengths = torch::tensor({1, 2});
  EXPECT_THAT(refused(other), testing::HasSubstr("must be int32"));
  other = cache;
  other.values = torch::randn({3, 4, 4, 2, 9});
  EXPECT_THAT(refused(other), testing::HasSubstr("(slots, capacity, n, heads, m)"));
}

}  // namespace
}  // namespace quatrain
