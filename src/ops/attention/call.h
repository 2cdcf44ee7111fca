#pragma once

#include <string_view>
#include <tuple>

#include "ops/attention/attention.h"

/// The arguments of the schemas of attention, which are spelled here and in call.cpp alone.
namespace quatrain::ops {

using OptionalTensor = std::optional<at::Tensor>;

/// In a schema, behind the tensors.
constexpr const char* kAttentionArguments =
    "str algebra=\"real\", Tensor? padding=None, float dropout=0.0, Tensor? mask=None, bool causal=False, "
    "SymInt offset=0, float? scale=None, str order=\"query_key\"";

/// Reads them; an unknown name is an error.
AttentionCall unseeded_attention_call(std::string_view algebra, const OptionalTensor& padding, double dropout,
                                      const OptionalTensor& mask, bool causal, c10::SymInt offset,
                                      std::optional<double> scale, std::string_view order);
/// The same with "Tensor? seed=None" at the end.
AttentionCall seeded_attention_call(std::string_view algebra, const OptionalTensor& padding, double dropout,
                                    const OptionalTensor& mask, bool causal, c10::SymInt offset,
                                    std::optional<double> scale, std::string_view order,
                                    const OptionalTensor& seed);
QUATRAIN_API AttentionCall attention_call(const AttentionOptions& options);
/// The arguments of a call with a seed.
std::tuple<std::string_view, OptionalTensor, double, OptionalTensor, bool, c10::SymInt, std::optional<double>,
           std::string_view, OptionalTensor>
arguments_of(const AttentionCall& call);

/// `run` is `function` of a call and tensors as the dispatcher calls it: with the tensors, then with what
/// `read` makes the call of.
template <auto read, auto function>
struct Unpacked;
template <class... Arguments, AttentionCall (*read)(Arguments...), class Result, class... Tensors,
          Result (*function)(const AttentionCall&, Tensors...)>
struct Unpacked<read, function> {
  static Result run(Tensors... tensors, Arguments... arguments) {
    return function(read(arguments...), tensors...);
  }
};
template <auto function>
using Unseeded = Unpacked<&unseeded_attention_call, function>;
template <auto function>
using Seeded = Unpacked<&seeded_attention_call, function>;

}  // namespace quatrain::ops
