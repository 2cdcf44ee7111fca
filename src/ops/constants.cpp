#include "ops/constants.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <map>
#include <mutex>
#include <tuple>

namespace quatrain::ops {

at::Tensor constant_tensor(const std::vector<double>& values, at::IntArrayRef sizes, at::ScalarType dtype,
                           at::Device device) {
  const c10::InferenceMode no_inference(false);
  const c10::impl::ExcludeDispatchKeyGuard no_transform(c10::DispatchKeySet{
      c10::DispatchKey::FuncTorchDynamicLayerFrontMode, c10::DispatchKey::FuncTorchDynamicLayerBackMode,
      c10::DispatchKey::FuncTorchVmapMode});
  const at::AutoDispatchBelowADInplaceOrView guard;
  return at::from_blob(const_cast<double*>(values.data()), sizes, at::kDouble).to(device, dtype, false, true);
}

namespace {

enum class Part { table, U, V, W };

at::Tensor constant(const algebra::Algebra& algebra, Part part, at::ScalarType dtype, at::Device device) {
  using Key = std::tuple<const algebra::Algebra*, Part, at::ScalarType, at::DeviceType, int>;
  static std::mutex mutex;
  static auto* made = new std::map<Key, at::Tensor>;  // never destroyed: tensors may outlive static objects
  const std::lock_guard lock(mutex);
  at::Tensor& tensor = (*made)[{&algebra, part, dtype, device.type(), device.index()}];
  if (!tensor.defined()) {
    const int64_t n = algebra.n(), rank = algebra.factors().rank;
    const auto& f = algebra.factors();
    tensor = part == Part::table ? constant_tensor(algebra.table(), {n, n, n}, dtype, device)
                                 : constant_tensor(part == Part::U   ? f.U
                                                   : part == Part::V ? f.V
                                                                     : f.W,
                                                   {n, rank}, dtype, device);
  }
  return tensor;
}

}  // namespace

at::Tensor table_tensor(const algebra::Algebra& algebra, at::ScalarType dtype, at::Device device) {
  return constant(algebra, Part::table, dtype, device);
}

FactorTensors factor_tensors(const algebra::Algebra& algebra, at::ScalarType dtype, at::Device device) {
  return {constant(algebra, Part::U, dtype, device), constant(algebra, Part::V, dtype, device),
          constant(algebra, Part::W, dtype, device)};
}

FactorTensors factor_tensors(const Call& call, at::ScalarType dtype, at::Device device) {
  if (const algebra::Algebra* fixed = call.fixed()) return factor_tensors(*fixed, dtype, device);
  return {call.factor(0).to(dtype), call.factor(1).to(dtype), call.factor(2).to(dtype)};
}

}  // namespace quatrain::ops
