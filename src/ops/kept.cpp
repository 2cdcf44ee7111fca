#include "ops/kept.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace quatrain::ops::kept {

namespace {

struct Key {
  const c10::StorageImpl* storage;
  int64_t offset;
  std::type_index type;
  bool operator==(const Key&) const = default;
};
struct Hash {
  size_t operator()(const Key& key) const {
    const auto mix = [](size_t a, size_t b) { return a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2)); };
    return mix(mix(std::hash<const void*>()(key.storage), std::hash<int64_t>()(key.offset)),
               key.type.hash_code());
  }
};
struct Entry {
  c10::weak_intrusive_ptr<c10::StorageImpl> alive;
  Value value;
};

constexpr size_t kFew = 8;  // entries that may be dead however few live

class Registry {
 public:
  static Registry& instance() {
    static auto* registry = new Registry;  // never destroyed: tensors may outlive static objects
    return *registry;
  }

  Value find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : found->second.value;
  }

  Value find_or_add(const at::Tensor& t, const Key& key, Value (*make)()) {
    std::vector<Value> dead;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(key); found != entries_.end()) return found->second.value;
    grow(dead);
    return entries_.emplace(key, Entry{t.storage().getWeakStorageImpl(), make()}).first->second.value;
  }

  void put(const at::Tensor& t, const Key& key, Value value) {
    std::vector<Value> dead;
    const std::lock_guard lock(mutex_);
    take(key, dead);
    grow(dead);
    entries_.emplace(key, Entry{t.storage().getWeakStorageImpl(), std::move(value)});
  }

  void remove(const Key& key) {
    std::vector<Value> dead;
    {
      const std::lock_guard lock(mutex_);
      take(key, dead);
    }
    dead.clear();  // which may end the life of what other values lie beside
    const std::lock_guard lock(mutex_);
    sweep(dead);
  }

  std::vector<Value> all(std::type_index type) {
    std::vector<Value> dead, result;
    const std::lock_guard lock(mutex_);
    sweep(dead);
    for (const auto& [key, entry] : entries_)
      if (key.type == type) result.push_back(entry.value);
    return result;
  }

  size_t count() {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }

 private:
  void take(const Key& key, std::vector<Value>& dead) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    dead.push_back(std::move(found->second.value));
    entries_.erase(found);
  }
  /// Removes dead entries so seldom that a new entry pays for only a few look-ups.
  void grow(std::vector<Value>& dead) {
    if (++added_ > kFew + entries_.size() / 8) sweep(dead);
  }
  void sweep(std::vector<Value>& dead) {
    added_ = 0;
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      if (!entry->second.alive.expired()) {
        ++entry;
        continue;
      }
      dead.push_back(std::move(entry->second.value));
      entry = entries_.erase(entry);
    }
  }

  std::mutex mutex_;
  std::unordered_map<Key, Entry, Hash> entries_;
  size_t added_ = 0;  // since the last sweep
};

Key key_of(const at::Tensor& t, std::type_index type) {
  return {t.storage().unsafeGetStorageImpl(), t.storage_offset(), type};
}

}  // namespace

Value find(const at::Tensor& t, std::type_index type) {
  return t.has_storage() ? Registry::instance().find(key_of(t, type)) : nullptr;
}
Value find_or_add(const at::Tensor& t, std::type_index type, Value (*make)()) {
  return Registry::instance().find_or_add(t, key_of(t, type), make);
}
void put(const at::Tensor& t, std::type_index type, Value value) {
  if (!t.has_storage()) return;
  const Key key = key_of(t, type);
  value ? Registry::instance().put(t, key, std::move(value)) : Registry::instance().remove(key);
}
std::vector<Value> all(std::type_index type) {
  return Registry::instance().all(type);
}
size_t count() {
  return Registry::instance().count();
}

}  // namespace quatrain::ops::kept
