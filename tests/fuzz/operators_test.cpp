// Every registered operator with arguments of any kind: shapes that fit and shapes that do not, all types,
// strides and layouts, numbers at the ends of their range, names that exist and names that do not. An answer
// or an exception is right; a crash, an internal assertion, or an honest call that is answered otherwise
// afterwards is a finding.
//
// Under `make test` some thousands of calls; QUATRAIN_FUZZ_SECONDS=N goes on for N seconds, from
// QUATRAIN_FUZZ_SEED on. The seed of the last call stands in the file that is named at the start: with it as
// QUATRAIN_FUZZ_SEED a crash comes again at once.

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "quatrain/ops.h"

namespace quatrain {
namespace {

using Random = std::mt19937_64;

int64_t below(Random& random, int64_t count) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
}
template <class List>
auto one_of(Random& random, const List& list) {
  return list[static_cast<size_t>(below(random, static_cast<int64_t>(std::size(list))))];
}
bool one_in(Random& random, int64_t count) {
  return below(random, count) == 0;
}

/// The sizes that the arguments of one call share, when they fit.
struct Sizes {
  int64_t n, m, p, rows, heads, batch, keys, rank;
  explicit Sizes(Random& random)
      : n(one_of(random, std::array<int64_t, 7>{1, 2, 3, 4, 4, 8, 16})),
        m(1 + below(random, 20)),
        p(1 + below(random, 20)),
        rows(below(random, 40)),
        heads(1 + below(random, 3)),
        batch(below(random, 4)),
        keys(below(random, 20)),
        rank(1 + below(random, 12)) {}
};

std::vector<int64_t> shape_for(Random& random, const std::string& argument, const Sizes& s) {
  const auto is = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), argument) != names.end();
  };
  if (!one_in(random, 8)) {
    if (is({"x", "input"})) return {s.rows, s.n * s.p};
    if (is({"S"})) return {s.n, s.m, s.p};
    if (is({"A", "table", "made_for"})) return {s.n, s.n, s.n};
    if (is({"bias", "weight"})) return {s.n * (one_in(random, 2) ? s.m : s.p)};
    if (is({"grad"}))
      return one_in(random, 2) ? std::vector{s.rows, s.n * s.m}
                               : std::vector{s.batch, s.rows, s.n * s.heads * s.m};
    if (is({"factors"})) return {s.n, s.rank};
    if (is({"query"})) return {s.batch, s.rows, s.n, s.heads, s.m};
    if (is({"key", "value"})) return {s.batch, s.keys, s.n, s.heads, s.m};
    if (is({"padding"})) return {s.batch, s.keys};
    if (is({"a", "b"})) return {s.rows, s.n * s.m};
    if (is({"seed"})) return {1};
  }
  std::vector<int64_t> shape(static_cast<size_t>(below(random, 6)));
  int64_t room = 4096;
  for (int64_t& size : shape) {
    size = below(random, std::min<int64_t>(room, one_in(random, 6) ? 300 : 10) + 1);
    room /= std::max<int64_t>(size, 1);
  }
  return shape;
}

constexpr at::ScalarType kTypes[] = {at::kFloat,    at::kFloat, at::kFloat,         at::kDouble,
                                     at::kBFloat16, at::kHalf,  at::kBool,          at::kLong,
                                     at::kInt,      at::kByte,  at::kComplexDouble, at::kChar};

at::Tensor tensor_for(Random& random, const std::string& argument, const Sizes& s, at::ScalarType common) {
  const std::vector<int64_t> shape = shape_for(random, argument, s);
  at::ScalarType type = argument == "padding" ? at::kBool : argument == "seed" ? at::kLong : common;
  if (one_in(random, 12)) type = one_of(random, kTypes);
  at::Tensor t = torch::randn(shape, at::kDouble);
  if (one_in(random, 20)) t.mul_(one_of(random, std::array{0.0, 1e30, 1e300, double(INFINITY), double(NAN)}));
  t = t.to(type);
  switch (below(random, 30)) {  // other strides
    case 0:
      if (t.dim() >= 2) t = t.transpose(0, -1).contiguous().transpose(0, -1);
      break;
    case 1:
      if (t.dim() >= 1) t = torch::stack({t, t}, -1).select(-1, 0);
      break;
    case 2:
      if (t.dim() >= 1 && t.size(0) > 0) t = t.narrow(0, 0, 1).expand(t.sizes());
      break;
    case 3:
      if (t.dim() >= 1) t = torch::cat({t, t}, 0).narrow(0, t.size(0), t.size(0));
      break;
    case 4:
      if (t.numel() > 0) t = torch::as_strided(t, t.sizes(), std::vector<int64_t>(t.sizes().size(), 0));
      break;
    case 5:
      if (t.dim() >= 1) t = t.flip(0);
      break;
    default:
      break;
  }
  switch (below(random, 60)) {  // other layouts, and tensors without values
    case 0:
      return t.to_sparse();
    case 1:
      return t.dim() == 2 ? t.to_sparse_csr() : t;
    case 2:
      return type == at::kFloat && t.dim() > 0 ? t.contiguous().to_mkldnn() : t;
    case 3:
      return t.to(at::kMeta);
    case 4:
      return type == at::kFloat ? at::quantize_per_tensor(t.nan_to_num(0, 0, 0), 0.1, 0, at::kQInt8) : t;
    case 5:
      return t.is_complex() ? t.conj() : at::_neg_view(t.to(at::kFloat));
    case 6:
      return at::Tensor();
    default:
      break;
  }
  if (one_in(random, 3) && (t.is_floating_point() || t.is_complex())) t = t.detach().requires_grad_();
  return t;
}

std::string text_for(Random& random, const std::string& argument, const Sizes& s) {
  static const std::vector<std::string> of_n[] = {{"real"},
                                                  {"complex", "split_complex", "dual"},
                                                  {"quaternion", "clifford(2,0)", "cyclic(4)", "tessarine"},
                                                  {"octonion", "clifford(2,1)"},
                                                  {"sedenion"}};
  if (argument == "way" && !one_in(random, 20))
    return one_of(random, std::array{"auto", "factored", "mixed", "materialised"});
  if (argument == "initialiser" && !one_in(random, 20)) return one_of(random, std::array{"glorot", "he"});
  if (one_in(random, 15))
    return one_of(random,
                  std::array<std::string, 9>{"", "learned", "factored", "phm(4)", "relu", "cyclic(999999)",
                                             "clifford(99,99)", std::string(300, 'a'), "phm(0)"});
  if (argument == "name" && one_in(random, 2))
    return one_of(random, std::array{"relu", "gelu", "tanh", "silu"});
  const size_t at = s.n == 1 ? 0 : s.n == 2 ? 1 : s.n == 4 ? 2 : s.n == 8 ? 3 : s.n == 16 ? 4 : 2;
  return one_of(random, of_n[at]);
}

int64_t number_for(Random& random, const std::string& argument, const Sizes& s) {
  if (one_in(random, 6))
    return one_of(random, std::array<int64_t, 10>{0, -1, INT64_MIN, INT64_MAX, int64_t{1} << 32, -7, 3, 64,
                                                  65, int64_t{1} << 62});
  if (argument == "heads") return s.heads;
  if (argument == "components" || argument == "n" || argument == "maps") return s.n;
  return below(random, 5);
}

c10::IValue value_for(Random& random, const c10::Argument& argument, const Sizes& s, bool learned,
                      at::ScalarType common) {
  const std::string& name = argument.name();
  c10::TypePtr type = argument.type();
  if (const auto optional = type->cast<c10::OptionalType>()) {
    const bool absent = name == "A" ? !learned != one_in(random, 12) : one_in(random, 2);
    if (absent) return {};
    type = optional->getElementType();
  }
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
      return tensor_for(random, name, s, common);
    case c10::TypeKind::StringType:
      if (name == "algebra" && learned && !one_in(random, 15)) return std::string("learned");
      return text_for(random, name, s);
    case c10::TypeKind::BoolType:
      return one_in(random, 2);
    case c10::TypeKind::FloatType:
      return one_of(random, std::array{0.0, 0.5, 1.0, 0.1, -1.0, 1e300, double(NAN), double(INFINITY)});
    case c10::TypeKind::IntType:
      if (name == "dtype") return static_cast<int64_t>(one_of(random, kTypes));
      return number_for(random, name, s);
    case c10::TypeKind::SymIntType:
      return number_for(random, name, s);
    case c10::TypeKind::ListType: {
      const auto element = type->castRaw<c10::ListType>()->getElementType();
      if (element->kind() == c10::TypeKind::TensorType) {
        const int64_t count = one_in(random, 8) ? below(random, 5) : learned && one_in(random, 2) ? 3 : 0;
        std::vector<at::Tensor> list;
        for (int64_t i = 0; i < count; ++i) list.push_back(tensor_for(random, name, s, at::kDouble));
        return list;
      }
      if (element->kind() == c10::TypeKind::BoolType) {
        c10::List<bool> mask;
        for (int i = 0; i < 3; ++i) mask.push_back(!one_in(random, 3));
        return mask;
      }
      if (element->kind() == c10::TypeKind::StringType)
        return std::vector<std::string>{text_for(random, name, s)};
      if (element->kind() == c10::TypeKind::FloatType)
        return std::vector<double>(static_cast<size_t>(s.n), 1);
      return std::vector<int64_t>{number_for(random, name, s)};
    }
    default:
      return argument.default_value() ? *argument.default_value() : c10::IValue();
  }
}

/// Operators on tensors. Those that write files, add algebras for good, or search for as long as they are
/// asked to are left out.
std::vector<c10::OperatorHandle> operators() {
  std::vector<c10::OperatorHandle> result;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name.rfind("quatrain::", 0) != 0) continue;
    const std::string own = name.name.substr(10);
    if (own == "decompose" || own == "sinusoidal_positions" || own.find("safetensors") != own.npos ||
        own.rfind("algebra_add", 0) == 0 || own == "add_algebras")
      continue;
    if (const auto found = c10::Dispatcher::singleton().findSchema(name)) result.push_back(*found);
  }
  std::sort(result.begin(), result.end(),
            [](const auto& a, const auto& b) { return a.operator_name().name < b.operator_name().name; });
  return result;
}

/// Makes one call; what it was, for a message.
std::string call_at(const std::vector<c10::OperatorHandle>& all, uint64_t seed) {
  Random random(seed * 0x9e3779b97f4a7c15U + 1);
  torch::manual_seed(seed);
  const c10::OperatorHandle& op = one_of(random, all);
  const Sizes sizes(random);
  const bool learned = one_in(random, 3);
  const at::ScalarType common = one_of(random, kTypes);
  torch::jit::Stack stack;
  std::string text = op.operator_name().name + "(";
  for (const c10::Argument& argument : op.schema().arguments()) {
    c10::IValue value;
    try {
      value = value_for(random, argument, sizes, learned, common);
    } catch (const c10::Error&) {  // a layout that this tensor cannot have
    }
    text += argument.name() + " = ";
    if (value.isTensor() && value.toTensor().defined())
      text += c10::str(value.toTensor().scalar_type(), value.toTensor().sizes(), value.toTensor().layout());
    else if (!value.isTensor() && !value.isList())
      text += c10::str(value);
    text += ", ";
    stack.push_back(std::move(value));
  }
  text += ")";
  try {
    const bool graded = one_in(random, 2);
    torch::AutoGradMode mode(graded);
    op.callBoxed(&stack);
    if (!graded) return text;
    for (const c10::IValue& result : stack)
      if (result.isTensor() && result.toTensor().defined() && result.toTensor().requires_grad() &&
          result.toTensor().layout() == at::kStrided && !result.toTensor().is_meta())
        result.toTensor().sum().to(at::kFloat).backward();
  } catch (const c10::Error& error) {
    const std::string what = error.what_without_backtrace();
    if (what.find("INTERNAL ASSERT") != what.npos && what.find("quatrain") != what.npos)
      ADD_FAILURE() << "seed " << seed << ": " << text << ": " << what;
  } catch (const std::exception&) {
  }
  return text;
}

/// An honest layer in eval mode and in training, whose answers nothing may change.
class Honest {
 public:
  Honest() : first_(answers()) {}
  void expect_unchanged(uint64_t seed, const std::string& text) const {
    const auto now = answers();
    for (size_t i = 0; i < now.size(); ++i)
      ASSERT_TRUE(now[i].equal(first_[i])) << "after seed " << seed << ": " << text << ", answer " << i;
  }

 private:
  std::vector<at::Tensor> answers() const {
    std::vector<at::Tensor> result;
    const torch::NoGradGuard no_grad;
    for (const ops::Way way : {ops::Way::factored, ops::Way::mixed, ops::Way::materialised}) {
      result.push_back(ops::linear(x_, S_, {}, {"quaternion", {}, {}}, way, {}, true));
      result.push_back(std::get<0>(
          ops::linear_backward(g_, x_, T_, {"quaternion", {}, {}}, way, {}, {true, true, false})));
    }
    return result;
  }

  at::Tensor x_ = torch::randn({24, 32}), S_ = torch::randn({4, 8, 8}), T_ = torch::randn({4, 8, 8}),
             g_ = torch::randn({24, 32});
  std::vector<at::Tensor> first_;
};

TEST(Operators, StandArgumentsOfAnyKind) {
  const auto from_environment = [](const char* name, uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
  };
  const uint64_t seconds = from_environment("QUATRAIN_FUZZ_SECONDS", 0),
                 first = from_environment("QUATRAIN_FUZZ_SEED", 1), count = seconds ? UINT64_MAX : 6000;
  const auto all = operators();
  ASSERT_GT(all.size(), 20U);
  const std::string file =
      (std::filesystem::temp_directory_path() / ("operators." + std::to_string(getpid()) + ".seed")).string();
  const int descriptor = open(file.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  std::printf("the last call's seed is in %s\n", file.c_str());
  std::fflush(stdout);
  torch::manual_seed(1);
  const Honest honest;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  uint64_t seed = first, calls = 0;
  for (; calls < count && !HasFailure(); ++calls, ++seed) {
    if (seconds && std::chrono::steady_clock::now() > end) break;
    const std::string text = std::to_string(seed) + "\n";
    if (pwrite(descriptor, text.data(), text.size(), 0) < 0) break;
    const std::string call = call_at(all, seed);
    if (seed % 16 == 0) honest.expect_unchanged(seed, call);
  }
  close(descriptor);
  if (!HasFailure()) unlink(file.c_str());
  std::printf("%llu calls\n", static_cast<unsigned long long>(calls));
}

}  // namespace
}  // namespace quatrain
