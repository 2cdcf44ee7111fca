// What is asked for: by an argument, else by a guard of the thread, else by the environment.

#include "ops/engine/options.h"

#include <c10/util/Exception.h>

#include <cstdlib>

#include "quatrain/conv_ops.h"
#include "support/enum_names.h"

namespace quatrain::ops {

namespace {

constexpr EnumNames<Way, 4> kWays{{{Way::automatic, "auto"},
                                   {Way::factored, "factored"},
                                   {Way::mixed, "mixed"},
                                   {Way::materialised, "materialised"}}};
constexpr EnumNames<Products, 3> kProducts{
    {{Products::automatic, "auto"}, {Products::kept, "kept"}, {Products::recomputed, "recomputed"}}};
constexpr EnumNames<Winograd, 4> kWinograd{
    {{Winograd::automatic, "auto"}, {Winograd::none, "none"}, {Winograd::f2, "2x2"}, {Winograd::f4, "4x4"}}};
constexpr EnumNames<Bfloat16, 3> kBfloat16{
    {{Bfloat16::automatic, "auto"}, {Bfloat16::widened, "widened"}, {Bfloat16::packed, "packed"}}};

/// What an environment variable says, read once; automatic where it is not set.
template <class E>
E from_environment(const char* variable, E (*parse)(std::string_view)) {
  const char* text = std::getenv(variable);
  try {
    return text && *text ? parse(text) : E::automatic;
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK(false, "the environment's ", variable, ": ", error.what());
  }
}

/// What a Guard says in this thread.
template <class E>
E& guarded() {
  static thread_local E option = E::automatic;
  return option;
}

/// The first that says something: an argument, a guard, the environment.
template <class E>
E requested(E argument, E environment) {
  if (argument != E::automatic) return argument;
  return guarded<E>() != E::automatic ? guarded<E>() : environment;
}

}  // namespace

const char* name(Way way) {
  return name_of(kWays, way);
}
Way parse_way(std::string_view text) {
  return parse_name(kWays, "way", text);
}
const char* name(Products products) {
  return name_of(kProducts, products);
}
Products parse_products(std::string_view text) {
  return parse_name(kProducts, "products", text);
}
const char* name(Bfloat16 products) {
  return name_of(kBfloat16, products);
}
Bfloat16 parse_bfloat16(std::string_view text) {
  return parse_name(kBfloat16, "bfloat16", text);
}

const char* name(Winograd winograd) {
  return name_of(kWinograd, winograd);
}
Winograd parse_winograd(std::string_view text) {
  return parse_name(kWinograd, "winograd", text);
}

template <class Option>
Guard<Option>::Guard(Option option) : before_(guarded<Option>()) {
  guarded<Option>() = option;
}
template <class Option>
Guard<Option>::~Guard() {
  guarded<Option>() = before_;
}
template class Guard<Way>;
template class Guard<PlannedRows>;
template class Guard<Traffic>;
template class Guard<Products>;
template class Guard<Bfloat16>;
template class Guard<Winograd>;

Way requested_way(Way argument) {
  static const Way environment = from_environment("QUATRAIN_WAY", &parse_way);
  return requested(argument, environment);
}

PlannedRows requested_rows() {
  return guarded<PlannedRows>();
}

Traffic requested_traffic() {
  return guarded<Traffic>();
}

Winograd requested_winograd(Winograd argument) {
  static const Winograd environment = from_environment("QUATRAIN_WINOGRAD", &parse_winograd);
  return requested(argument, environment);
}

Products requested_products() {
  static const Products environment = from_environment("QUATRAIN_PRODUCTS", &parse_products);
  return requested(Products::automatic, environment);
}

Bfloat16 requested_bfloat16() {
  static const Bfloat16 environment = from_environment("QUATRAIN_BFLOAT16", &parse_bfloat16);
  return requested(Bfloat16::automatic, environment);
}

}  // namespace quatrain::ops
