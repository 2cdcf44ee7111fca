#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

/// What the bench commands do alike.
namespace quatrain::cli {

/// The numbers of threads asked for; none: torch's.
std::vector<int> threads_or_default(const std::vector<int>& asked);

/// Measures case after case, with a counter on a terminal. True where the user stopped it: what is there is
/// still worth printing.
bool measure_cases(size_t count, const std::function<void(size_t)>& measure);

/// The table on standard output and the JSON in its file; JSON alone where that is standard output.
void publish(const std::string& table, const nlohmann::ordered_json& json, const std::string& file);

/// Whether standard output shows colours.
bool colours();

}  // namespace quatrain::cli
