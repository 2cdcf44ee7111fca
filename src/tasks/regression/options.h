#pragma once

#include <memory>
#include <string>

#include "quatrain/nn/linear.h"
#include "quatrain/tasks/recipe.h"

namespace quatrain::tasks {

/// What is learned.
///   product   pairs (q, p) -> q * p in an algebra of dimension n, both standard normal: 2 n numbers in,
///             n out
///   rotation  x -> W x with one rotation W of the 3-D space: 3 numbers in, 3 out
enum class Rule { product, rotation };

const char* name(Rule rule);

/// What a recipe of kind regression sets.
struct RegressionOptions : Options {
  RegressionOptions() { map.algebra("phm(4)").bias(false); }

  Rule rule = Rule::product;
  std::string algebra = "quaternion";  ///< whose product it is
  int64_t train = 1000, dev = 200, test = 200;
  uint64_t seed = 0;            ///< of the examples
  nn::LinearOptions map{0, 0};  ///< the layer; its sizes come with the rule

  std::unique_ptr<Options> clone() const override { return std::make_unique<RegressionOptions>(*this); }
  void describe(train::Keys& keys) override;
  void check(const Recipe& recipe) const override;

  /// n of the product, 3 of the rotation: what the layer gives.
  int64_t outputs() const;
  /// What the layer is given: the products of all pairs of components of p and q, or the vector.
  int64_t features() const { return rule == Rule::product ? outputs() * outputs() : outputs(); }
  /// Numbers of an example.
  int64_t inputs() const { return rule == Rule::product ? 2 * outputs() : outputs(); }
};

}  // namespace quatrain::tasks
