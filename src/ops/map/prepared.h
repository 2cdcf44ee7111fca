#pragma once

#include <ATen/core/DimVector.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "ops/map/call.h"

/// Prepared weights: of a constant weight its combined blocks or its H.
///
/// A form is kept beside its weight, and counts only while all that it was made from is what it was: the
/// weight's data pointer, type, version and sizes, those of A and of its factors, the number of the factors
/// that are followed beside A, and on a CPU, of memory that others hold too, a few of the values. A weight
/// may have several: batches alternate between ways. Writes that leave pointer and version alone (`.data`,
/// some fused optimizers) are met by a second rule: a weight whose gradient was computed is in training, and
/// nothing is kept for it until drop_prepared, which layers call in train(), eval() and after loading.
namespace quatrain::ops {

/// Which form: who reads it, and in which type. The same type may be made of a weight that was read in
/// another: bfloat16 that is multiplied in float32 is rounded before.
struct Form {
  enum Reader {
    composed,
    engine,
    engine_unmixed,
    engine_transposed,
    direct,
    winograd2,
    winograd4,
    summands  ///< those of WKP, which other forms are made from
  } reader = composed;
  Way way = Way::automatic;
  at::ScalarType dtype = at::kFloat, read_in = dtype;
  uint64_t followed = 0;        ///< engine::Mixings::number of factors that neither call nor algebra names
  at::DimVector geometry = {};  ///< what else of a convolution it depends on: one kernel may serve several
};

/// How often S, A and its factors had been written: taken before any of them is read.
class QUATRAIN_API Versions {
 public:
  Versions(const at::Tensor& S, const Call& call);
  bool operator==(const Versions&) const = default;

 private:
  uint64_t sum_ = 0;  // versions only grow; 0 where the call keeps nothing
};

/// The prepared form of S, kept or built now; kept where call.constant allows it, and where another thread
/// has written nothing since `read`. No lock is held while it is built.
QUATRAIN_API at::Tensor prepared(const at::Tensor& S, const Call& call, const Versions& read,
                                 const Form& form, const std::function<at::Tensor()>& build);

/// The same where the form is S as it lies: its memory is made fast to read, once.
void prepare_in_place(const at::Tensor& S, const Call& call);

/// True where a form of S could be kept: a write to it would be seen, and it is not in training.
bool may_keep(const at::Tensor& S);

/// How often forms of any weight were told to be forgotten, by a gradient or by drop_prepared: who holds
/// resolved maps makes them again where it is another.
QUATRAIN_API uint64_t times_forgotten();

/// Says that a gradient of S was computed: forget its forms, keep none until drop_prepared(S).
void mark_in_training(const at::Tensor& S);

}  // namespace quatrain::ops
