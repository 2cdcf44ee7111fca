#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "ops/engine/mixing.h"
#include "ops/map/call.h"

namespace quatrain::ops {

/// What the engine needs of an algebra, each part made when it is first asked for. Any thread may ask.
class Mixtures {
 public:
  using Values = std::vector<double>;
  /// The table (n, n, n) or, where there are factors, none: it is then made of them if it is needed.
  Mixtures(int64_t n, Values table, int64_t rank, Values U, Values V, Values W);

  const engine::Mixings& factors() const;    ///< an error where there are none
  const engine::Mixing& rows() const;        ///< of the mixed way, n -> n^2: a n + i holds A[i, a, :]
  const engine::Mixing& blocks() const;      ///< of the materialised way, n -> n^2: a n + b holds A[:, a, b]
  const engine::Mixing& components() const;  ///< and back, n^2 -> n: mixture i holds A[i, :, :]

 private:
  /// A mixture of the table's entries, made when it is first asked for.
  struct OfTable {
    std::once_flag once;
    engine::Mixing mixing;
  };
  const Values& table() const;

  int64_t n_, rank_;
  mutable Values table_;
  Values U_, V_, W_;
  mutable std::once_flag factors_once_, table_once_;
  mutable std::optional<engine::Mixings> factors_;
  mutable OfTable rows_, blocks_, components_;
};

/// Those of a call: of a fixed algebra made once in a process; of a learned tensor anew for each call, save
/// where call.constant says that it stays as it is.
std::shared_ptr<const Mixtures> mixtures(const Call& call);

}  // namespace quatrain::ops
