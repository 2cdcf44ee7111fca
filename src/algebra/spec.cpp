#include <stdexcept>

#include "algebra/nearest.h"
#include "algebra/signature.h"
#include "quatrain/algebra.h"

namespace quatrain::algebra {
namespace {

int learned_dimension(std::string_view text, int n) {
  if (n < 1 || n > kMaxDimension) {
    throw std::invalid_argument("algebra: a learned algebra's n must be from 1 to " +
                                std::to_string(kMaxDimension) + ", got " + std::string(text));
  }
  return n;
}

}  // namespace

Spec Spec::parse(std::string_view text) {
  const Call call = parse_call(text);
  Spec spec;
  spec.learned = call.head == "phm" || call.head == "wkp";
  spec.weighted = call.head == "wkp";
  if (!spec.learned) {
    if (call.head.empty()) {
      throw std::invalid_argument(
          "algebra: no algebra is given; write a name like quaternion, or phm(4) for a learned one");
    }
    if (call.head == "identity") {
      throw std::invalid_argument("algebra: identity(n) is where a learned algebra starts; write phm(" +
                                  canonical_name(text) + ")");
    }
    if (call.inner && parse_int(*call.inner)) {
      if (const auto hint = nearest(call.head, {"phm", "wkp"}); !hint.empty()) {
        throw std::invalid_argument("algebra: unknown algebra \"" + canonical_name(text) +
                                    "\" (did you mean " + hint + "(" + *call.inner + ")?)");
      }
    }
    const Algebra& algebra = get(text);
    spec.n = algebra.n();
    spec.name = algebra.name();
    return spec;
  }
  if (!call.inner || call.inner->empty()) {
    throw std::invalid_argument("algebra: " + call.head + " needs a dimension, a name or identity(n), like " +
                                call.head + "(4), " + call.head + "(quaternion) or " + call.head +
                                "(identity(4)); got " + std::string(text));
  }
  const Call start = parse_call(*call.inner);
  if (const auto n = parse_int(*call.inner)) {
    spec.n = learned_dimension(text, *n);
    spec.start = Start::random;
    spec.name.clear();
  } else if (start.head == "identity") {
    const auto size = start.inner ? parse_int(*start.inner) : std::nullopt;
    if (!size) {
      throw std::invalid_argument("algebra: identity needs a dimension, like " + call.head +
                                  "(identity(4)), got " + std::string(text));
    }
    spec.n = learned_dimension(text, *size);
    spec.start = Start::identity;
    spec.name.clear();
  } else {
    const Algebra& algebra = get(*call.inner);
    spec.n = algebra.n();
    spec.name = algebra.name();
  }
  return spec.n == 1 ? Spec{} : spec;  // a scalar A is dropped
}

std::string Spec::text() const {
  if (!learned) return name;
  const std::string head = weighted ? "wkp(" : "phm(";
  switch (start) {
    case Start::random:
      return head + std::to_string(n) + ")";
    case Start::identity:
      return head + "identity(" + std::to_string(n) + "))";
    case Start::table:
      break;
  }
  return head + name + ")";
}

}  // namespace quatrain::algebra
