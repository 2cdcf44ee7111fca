#include "ops/map/prepared.h"

#include <c10/util/hash.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <mutex>
#include <utility>

#include "ops/engine/options.h"
#include "ops/kept.h"
#include "ops/memory/huge_pages.h"
#include "ops/memory/step_memory.h"

namespace quatrain::ops {

namespace {

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

constexpr size_t kMostForms = 5;          // of a weight; the oldest makes room
constexpr int64_t kOwnCache = 1 << 20;    // bytes; of a core
constexpr int64_t kWorthAPage = 1 << 18;  // bytes; an eighth of one

/// A few of a tensor's values, since not every write changes its version: those of collectives do not, nor
/// those by another tensor or process that holds this memory. 0 of what cannot be looked at, or not at once.
uint64_t sample_of(const at::Tensor& t) {
  constexpr int64_t kValues = 8;
  if (!t.device().is_cpu() || t.numel() == 0 || !t.is_contiguous()) return 0;
  const auto size = static_cast<int64_t>(t.element_size());
  const auto* const bytes = static_cast<const char*>(t.const_data_ptr());
  uint64_t sample = 0;
  for (int64_t i = 0; i < kValues; ++i) {
    uint64_t value = 0;
    std::memcpy(&value, bytes + (t.numel() - 1) * i / (kValues - 1) * size,
                std::min<size_t>(sizeof(value), static_cast<size_t>(size)));
    sample = c10::hash_combine(sample, value);
  }
  return sample;
}

/// What must be equal for a tensor to hold the values it held. The storage is held weakly, lest its address
/// be another's.
struct Identity {
  WeakStorage storage;
  const void* data;
  at::ScalarType dtype;
  uint32_t version;
  uint64_t sample;
  at::DimVector sizes, strides;

  explicit Identity(const at::Tensor& t)
      : storage(t.storage().getWeakStorageImpl()),
        data(t.const_data_ptr()),
        dtype(t.scalar_type()),
        version(static_cast<uint32_t>(t._version())),
        sample(sample_of(t)),
        sizes(t.sizes()),
        strides(t.strides()) {}
  bool is(const at::Tensor& t) const {
    return data == t.const_data_ptr() && dtype == t.scalar_type() &&
           version == static_cast<uint32_t>(t._version()) && t.sizes() == sizes && t.strides() == strides &&
           !storage.expired() && storage._unsafe_get_target() == t.storage().unsafeGetStorageImpl() &&
           sample == sample_of(t);
  }
};

/// Inference tensors have none.
uint32_t version_of(const at::Tensor& t) {
  return t.is_inference() ? 0 : static_cast<uint32_t>(t._version());
}

struct Prepared {
  Form form;
  std::string algebra;
  std::vector<Identity> made_from;  // S; of a learned algebra A and its factors
  at::Tensor tensor;
  uint32_t version = 0;  // of the tensor: one that its reader wrote into is not found again

  Prepared(const at::Tensor& S, const Call& call, const Form& form) : form(form), algebra(call.algebra) {
    made_from.emplace_back(S);
    if (call.learned()) made_from.emplace_back(*call.A);
    for (const at::Tensor& factor : call.factors) made_from.emplace_back(factor);
  }

  bool reads_as(const Form& other) const {
    return form.reader == other.reader && form.way == other.way && form.dtype == other.dtype &&
           form.read_in == other.read_in && form.geometry == other.geometry;
  }
  bool is(const at::Tensor& S, const Call& call, const Form& other) const {
    if (!reads_as(other) || form.followed != other.followed || algebra != call.algebra) return false;
    if (version != version_of(tensor)) return false;
    const size_t learned = call.learned() ? 1 : 0;
    if (made_from.size() != 1 + learned + call.factors.size() || !made_from[0].is(S)) return false;
    if (call.learned() && !made_from[1].is(*call.A)) return false;
    for (size_t i = 0; i < call.factors.size(); ++i)
      if (!made_from[1 + learned + i].is(call.factors[i])) return false;
    return true;
  }
  /// True where a tensor that it was made from is gone, so that it will never be found again.
  bool is_orphaned() const {
    return std::any_of(made_from.begin(), made_from.end(),
                       [](const Identity& source) { return source.storage.expired(); });
  }
};

/// What is kept beside a weight.
struct Weight {
  std::mutex mutex;
  bool in_training = false;
  std::vector<Prepared> forms;
};

std::atomic<uint64_t> forgotten = 0;

/// Kept beside a weight whose own memory is in huge pages.
struct InHugePages {};

/// True for what does not stay in a core's own cache from call to call: small pages slow down reading it. A
/// huge one for a few values would be mostly empty.
bool needs_huge_pages(const at::Tensor& form) {
  const auto bytes = static_cast<int64_t>(form.nbytes());
  return bytes >= kWorthAPage && std::max(bytes, static_cast<int64_t>(requested_traffic())) >= kOwnCache;
}

/// Inference tensors have no version, so a write to them cannot be seen.
bool trackable(const at::Tensor& t) {
  return t.has_storage() && !t.is_inference() && !t.is_meta();
}

}  // namespace

Versions::Versions(const at::Tensor& S, const Call& call) {
  if (!call.constant) return;
  const auto add = [&](const at::Tensor& t) {
    if (trackable(t)) sum_ += static_cast<uint32_t>(t._version());
  };
  add(S);
  if (call.learned()) add(*call.A);
  for (const at::Tensor& factor : call.factors) add(factor);
}

at::Tensor prepared(const at::Tensor& S, const Call& call, const Versions& read, const Form& form,
                    const std::function<at::Tensor()>& build) {
  if (!call.constant || !trackable(S) || (call.learned() && !trackable(*call.A)) ||
      !std::all_of(call.factors.begin(), call.factors.end(), trackable))
    return build();
  const auto weight = kept::beside<Weight>(S);
  {
    const std::lock_guard lock(weight->mutex);
    for (const Prepared& known : weight->forms)
      if (known.is(S, call, form)) return known.tensor;
  }
  Prepared fresh(S, call, form);  // as things stand before it is built
  const bool unwritten = read == Versions(S, call);
  const at::Tensor result = fresh.tensor = [&] {
    const StepMemory::Pause outlives_steps;
    return build();
  }();
  fresh.version = version_of(result);
  if (needs_huge_pages(result)) use_huge_pages(result);
  std::vector<Prepared> gone;  // freed without the lock
  const std::lock_guard lock(weight->mutex);
  if (weight->in_training || !unwritten) return result;
  auto& forms = weight->forms;
  const auto orphans = std::stable_partition(forms.begin(), forms.end(),
                                             [](const Prepared& known) { return !known.is_orphaned(); });
  std::move(orphans, forms.end(), std::back_inserter(gone));
  forms.erase(orphans, forms.end());
  // A form that reads as this one is out of date, or of another algebra over the same weight.
  const auto same =
      std::find_if(forms.begin(), forms.end(), [&](const Prepared& known) { return known.reads_as(form); });
  if (same != forms.end() || forms.size() >= kMostForms) {
    const auto leaving = same != forms.end() ? same : forms.begin();
    gone.push_back(std::move(*leaving));
    forms.erase(leaving);
  }
  forms.push_back(std::move(fresh));
  return result;
}

void prepare_in_place(const at::Tensor& S, const Call& call) {
  if (!call.constant || !trackable(S) || !S.is_contiguous() || !needs_huge_pages(S) ||
      kept::find<InHugePages>(S))
    return;
  use_huge_pages(S);
  kept::put(S, std::make_shared<InHugePages>());
}

bool may_keep(const at::Tensor& S) {
  if (!trackable(S)) return false;
  const auto weight = kept::find<Weight>(S);
  if (!weight) return true;
  const std::lock_guard lock(weight->mutex);
  return !weight->in_training;
}

uint64_t times_forgotten() {
  return forgotten.load();
}

void mark_in_training(const at::Tensor& S) {
  ++forgotten;
  if (!trackable(S)) return;
  const auto weight = kept::beside<Weight>(S);
  std::vector<Prepared> gone;
  const std::lock_guard lock(weight->mutex);
  weight->in_training = true;
  gone.swap(weight->forms);
}

void drop_prepared(const at::Tensor& S) {
  ++forgotten;
  if (S.defined()) kept::forget<Weight>(S);
}

PreparedSize prepared_size() {
  PreparedSize size;
  for (const auto& weight : kept::all<Weight>()) {
    const std::lock_guard lock(weight->mutex);
    size.weights += !weight->forms.empty();
    for (const Prepared& form : weight->forms) size.bytes += static_cast<int64_t>(form.tensor.nbytes());
  }
  return size;
}

}  // namespace quatrain::ops
