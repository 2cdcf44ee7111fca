#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What reports print.
namespace quatrain {

/// 1234567 -> "1,234,567".
std::string grouped(int64_t number);
/// "0.123", "1.2e-07".
std::string short_number(double value);
/// The name, or what stands for the module itself.
std::string layer_name(const std::string& name);

/// Rows in aligned columns: the first to the left, the others to the right, further cells as they are.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> titles) : columns_(titles.size()) { row(std::move(titles)); }
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const;

 private:
  size_t columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace quatrain
