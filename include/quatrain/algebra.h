#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/api.h"

/// Finite-dimensional real algebras as data: a multiplication table, its low-rank factors, its properties.
/// Plain C++.
///
/// Everything here throws std::invalid_argument with one sentence (what, rule, value, way out) on bad input.
namespace quatrain::algebra {

/// A decomposition of rank R of a structure tensor: A[i, a, b] = sum_r U[i, r] W[a, r] V[b, r].
///
/// U acts on the weight's blocks, V on the inputs, W on the outputs. Each is n x R, row-major.
struct QUATRAIN_API Factors {
  int n = 0;
  int rank = 0;
  std::vector<double> U, V, W;
};

/// Properties of an algebra, all computed from its table.
struct QUATRAIN_API Properties {
  bool unital = false;       ///< e_0 is a two-sided identity
  bool commutative = false;  ///< x y = y x
  bool associative = false;  ///< (x y) z = x (y z)
  bool alternative = false;  ///< x (x y) = (x x) y and (y x) x = y (x x)
  bool division =
      false;  ///< proved to have no zero divisors; exact for alternative algebras with an identity
  bool norm_multiplicative = false;  ///< |x y| = |x| |y| for the Euclidean norm
};

/// One algebra. Instances live as long as the process; compare them by address or by name.
class QUATRAIN_API Algebra {
 public:
  /// Checks the arguments and computes the properties. Without factors the trivial ones are used, without a
  /// conjugation (1, -1, ..., -1).
  Algebra(std::string name, int n, std::vector<double> table, std::optional<Factors> factors,
          std::vector<double> conjugation);

  const std::string& name() const { return name_; }
  /// Dimension n.
  int n() const { return n_; }
  /// The structure tensor A, row-major (n, n, n): A[i, a, b] is the coefficient of e_a in e_i * e_b.
  const std::vector<double>& table() const { return table_; }
  double table(int i, int a, int b) const { return table_[(static_cast<size_t>(i) * n_ + a) * n_ + b]; }
  /// Factors of the table; of rank nnz(A) where no better ones are known.
  const Factors& factors() const { return factors_; }
  /// True where the factors are better than the trivial ones.
  bool has_fast_factors() const { return has_fast_factors_; }
  /// Signs (n values, +-1) of the conjugation x -> sum_c sign_c x_c e_c.
  const std::vector<double>& conjugation() const { return conjugation_; }
  const Properties& properties() const { return properties_; }
  /// 16 hexadecimal digits over n and the table: stored beside weights, checked when they are loaded.
  const std::string& hash() const { return hash_; }

 private:
  std::string name_;
  int n_;
  std::vector<double> table_;
  Factors factors_;
  bool has_fast_factors_;
  std::vector<double> conjugation_;
  Properties properties_;
  std::string hash_;
};

/// The algebra of a name or signature: `real`, `complex`, `quaternion`, `octonion`, `sedenion`,
/// `split_complex`, `dual`, `split_quaternion`, `tessarine`, `bicomplex`, `dual_quaternion`, ...,
/// `clifford(p,q)`, `clifford(p,q,r)`, `cyclic(n)`, `negacyclic(n)`, `group_z2(m)`, or one that was added; n
/// up to 64. docs/algebras.md lists them with their bases. Built on first use. An unknown name's error names
/// a known one that is near. Thread-safe; the reference stays valid.
QUATRAIN_API const Algebra& get(std::string_view name);

/// Adds a user's algebra. `table` is A row-major (n, n, n), n up to 64. Adding the same table twice under one
/// name is allowed; another table under a name that is taken is an error. Factors that are given are checked
/// against the table; without them those of a listed algebra with the same table are used. Without a
/// conjugation (1, -1, ..., -1) is used.
QUATRAIN_API const Algebra& add(std::string name, int n, std::vector<double> table,
                                std::optional<Factors> factors = std::nullopt,
                                std::vector<double> conjugation = {});

/// Reads an algebra from a `.json` or `.toml` file and adds it: keys `name`, `n`, `table` (entries
/// `[i, b, a, value]`: e_i e_b has `value` on e_a) and optionally `U`, `V`, `W` (n rows each) and
/// `conjugation` (n signs).
QUATRAIN_API const Algebra& add_from_file(const std::string& path);

/// The names of all algebras that are listed: the built-in ones and the added ones, sorted by n and name.
QUATRAIN_API std::vector<std::string> names();

/// Largest |A[i, a, b] - sum_r U[i, r] W[a, r] V[b, r]| over the entries of a table (row-major (n, n, n)).
QUATRAIN_API double factor_error(const Factors& factors, const std::vector<double>& table);

/// What a layer multiplies with; written as one string.
///
///   quaternion              a fixed algebra, by name or signature
///   phm(4)                  A learned, from a random start (PHM, n = 4)
///   phm(quaternion)         A learned, from a named algebra's table
///   phm(identity(4))        A learned, from A_0 = I and the others zero
///   wkp(4), wkp(NAME) ...   the same with a learned weight for each summand (PHYDI's weighted Kronecker
///                           product)
///   phm(4, trained_rank=6)  A as a sum of 6 products U[i, r] W[a, r] V[b, r], whose factors are learned
///
/// `phm(1)` and the other learned forms at n = 1 are the real layer, and parse to `real`.
struct QUATRAIN_API Spec {
  enum class Start { random, table, identity };

  int n = 1;
  bool learned = false;        ///< A is a parameter
  bool weighted = false;       ///< summands carry learned weights (WKP)
  Start start = Start::table;  ///< where a learned A starts
  std::string name =
      "real";  ///< the fixed algebra, or the one a learned A starts from; empty for random, identity
  int trained_rank = 0;  ///< R of the factors that are learned in A's place; 0: A itself is learned

  /// Parses the notation above.
  static Spec parse(std::string_view text);
  /// The same notation again.
  std::string text() const;
};

}  // namespace quatrain::algebra
