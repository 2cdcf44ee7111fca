#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "kernels/cpu/targets.h"

namespace quatrain::kernels::cpu {

namespace {

const Table* find(std::string_view name) {
  for (const Table* const* table = available(); *table; ++table)
    if (name == (*table)->name) return *table;
  return nullptr;
}

const Table* initial() {
  const char* name = std::getenv("QUATRAIN_CPU_ISA");
  if (!name || !*name) return available()[0];
  if (const Table* table = find(name)) return table;
  std::string known;
  for (const Table* const* table = available(); *table; ++table)
    known += std::string(known.empty() ? "" : ", ") + (*table)->name;
  throw std::invalid_argument("QUATRAIN_CPU_ISA: this machine has " + known + ", got '" + name + "'");
}

std::atomic<const Table*>& chosen() {
  static std::atomic<const Table*> table = initial();
  return table;
}

}  // namespace

const Table* const* available() {
  static const struct List {
    const Table* tables[8] = {};
    List() {
      size_t count = 0;
      for (const Target* target = targets(); target->table; ++target)
        if (target->runs_here()) tables[count++] = target->table;
    }
  } list;
  return list.tables;
}

const Table& active() {
  return *chosen().load(std::memory_order_relaxed);
}

bool force(const char* name) {
  const Table* table = name ? find(name) : available()[0];
  if (table) chosen() = table;
  return table != nullptr;
}

}  // namespace quatrain::kernels::cpu
