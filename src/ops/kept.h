#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <typeindex>
#include <vector>

#include "quatrain/api.h"

/// What is kept beside tensors: one value of each type, found by a tensor's storage and its place in it, for
/// as long as that storage lives.
///
/// Storages are held weakly, so that their addresses are not used again while something is kept for them. The
/// lock covers look-ups alone: values synchronise themselves, and whoever uses one shares its ownership.
/// Entries whose storage has died are removed when new values are added.
namespace quatrain::ops::kept {

using Value = std::shared_ptr<void>;

Value find(const at::Tensor& t, std::type_index type);
Value find_or_add(const at::Tensor& t, std::type_index type, Value (*make)());
void put(const at::Tensor& t, std::type_index type, Value value);
std::vector<Value> all(std::type_index type);

/// The value of type T kept beside t; null if nothing is kept, or if t has no storage.
template <class T>
std::shared_ptr<T> find(const at::Tensor& t) {
  return std::static_pointer_cast<T>(find(t, typeid(T)));
}

/// The same, default-constructed if nothing is kept. t must have a storage.
template <class T>
std::shared_ptr<T> beside(const at::Tensor& t) {
  return std::static_pointer_cast<T>(find_or_add(t, typeid(T), [] { return Value(std::make_shared<T>()); }));
}

/// Replaces the value kept beside t; null removes it.
template <class T>
void put(const at::Tensor& t, std::shared_ptr<T> value) {
  put(t, typeid(T), std::move(value));
}
template <class T>
void forget(const at::Tensor& t) {
  put(t, typeid(T), nullptr);
}

/// All values of type T, after those of dead storages were removed.
template <class T>
std::vector<std::shared_ptr<T>> all() {
  std::vector<std::shared_ptr<T>> result;
  for (const Value& value : all(typeid(T))) result.push_back(std::static_pointer_cast<T>(value));
  return result;
}

/// How many values are held now, including those of dead storages that were not removed yet. For tests.
QUATRAIN_API size_t count();

}  // namespace quatrain::ops::kept
