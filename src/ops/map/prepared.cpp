#include "ops/map/prepared.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace quatrain::ops {

namespace {

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

c10::StorageImpl* storage_of(const at::Tensor& t) {
  return t.storage().unsafeGetStorageImpl();
}

/// What must be equal for a tensor to hold the values it held.
struct Identity {
  const c10::StorageImpl* storage = nullptr;
  const void* data = nullptr;
  uint32_t version = 0;
  std::vector<int64_t> sizes, strides;

  Identity() = default;
  explicit Identity(const at::Tensor& t)
      : storage(storage_of(t)),
        data(t.const_data_ptr()),
        version(static_cast<uint32_t>(t._version())),
        sizes(t.sizes().vec()),
        strides(t.strides().vec()) {}
  bool operator==(const Identity&) const = default;
};

struct Form {
  Way way = Way::automatic;
  at::ScalarType dtype = at::kFloat;
  std::string algebra;
  std::vector<Identity> made_from;  // S; for a learned algebra also A and its factors
  std::vector<WeakStorage> alive;   // of all but S
  at::Tensor tensor;
};

bool expired(const std::vector<WeakStorage>& storages) {
  for (const auto& storage : storages)
    if (storage.expired()) return true;
  return false;
}

struct Entry {
  WeakStorage alive;
  bool in_training = false;
  std::optional<Form> form;
};

class Cache {
 public:
  static Cache& instance() {
    static Cache* cache = new Cache;  // never destroyed: tensors may outlive static objects
    return *cache;
  }

  /// The kept form that fits; undefined where there is none. `keep` says whether a new one may be kept.
  at::Tensor find(const at::Tensor& S, const Form& wanted, bool& keep) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key(S));
    if (found == entries_.end()) return {};
    const Entry& entry = found->second;
    if (entry.in_training && !entry.alive.expired()) keep = false;
    if (!entry.form || entry.alive.expired()) return {};
    const Form& form = *entry.form;
    const bool fits = form.way == wanted.way && form.dtype == wanted.dtype &&
                      form.algebra == wanted.algebra && form.made_from == wanted.made_from &&
                      !expired(form.alive);
    return fits ? form.tensor : at::Tensor();
  }

  void keep(const at::Tensor& S, Form form) {
    const std::lock_guard lock(mutex_);
    sweep();
    Entry& entry = entry_of(S);
    if (!entry.in_training) entry.form = std::move(form);
  }

  void mark(const at::Tensor& S) {
    const std::lock_guard lock(mutex_);
    Entry& entry = entry_of(S);
    entry.in_training = true;
    entry.form.reset();
  }

  void drop(const at::Tensor& S) {
    const std::lock_guard lock(mutex_);
    entries_.erase(key(S));
    sweep();
  }

  PreparedSize size() {
    const std::lock_guard lock(mutex_);
    sweep();
    PreparedSize size;
    for (const auto& [key, entry] : entries_)
      if (entry.form) {
        size.weights += 1;
        size.bytes += static_cast<int64_t>(entry.form->tensor.nbytes());
      }
    return size;
  }

 private:
  using Key = std::pair<const c10::StorageImpl*, int64_t>;
  static Key key(const at::Tensor& S) { return {storage_of(S), S.storage_offset()}; }

  Entry& entry_of(const at::Tensor& S) {
    const auto found = entries_.find(key(S));
    if (found != entries_.end()) return found->second;
    return entries_.emplace(key(S), Entry{WeakStorage(S.storage().getWeakStorageImpl()), false, {}})
        .first->second;
  }

  void sweep() {
    std::erase_if(entries_, [](const auto& item) { return item.second.alive.expired(); });
  }

  std::mutex mutex_;
  std::map<Key, Entry> entries_;
};

/// Inference tensors have no version, so a write to them cannot be seen.
bool trackable(const at::Tensor& t) {
  return t.has_storage() && !t.is_inference() && !t.is_meta();
}

}  // namespace

at::Tensor prepared(const at::Tensor& S, const Call& call, Way way, at::ScalarType dtype,
                    const std::function<at::Tensor()>& build) {
  if (!call.constant || !trackable(S) || (call.learned() && !trackable(*call.A)) ||
      !std::all_of(call.factors.begin(), call.factors.end(), trackable))
    return build();
  Form form;
  form.way = way;
  form.dtype = dtype;
  form.algebra = call.algebra;
  form.made_from.emplace_back(S);
  const auto add = [&form](const at::Tensor& t) {
    form.made_from.emplace_back(t);
    form.alive.push_back(t.storage().getWeakStorageImpl());
  };
  if (call.learned()) add(*call.A);
  for (const at::Tensor& factor : call.factors) add(factor);
  bool keep = true;
  if (at::Tensor kept = Cache::instance().find(S, form, keep); kept.defined()) return kept;
  form.tensor = build();
  at::Tensor result = form.tensor;
  if (keep) Cache::instance().keep(S, std::move(form));
  return result;
}

void mark_in_training(const at::Tensor& S) {
  if (trackable(S)) Cache::instance().mark(S);
}

void drop_prepared(const at::Tensor& S) {
  if (S.defined() && S.has_storage()) Cache::instance().drop(S);
}

PreparedSize prepared_size() {
  return Cache::instance().size();
}

}  // namespace quatrain::ops
