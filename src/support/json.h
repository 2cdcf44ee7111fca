#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "support/text.h"

namespace quatrain {

/// Looks at JSON before anything is made of it. (Json::parse has a callback for this, but with it the time
/// grows with the square of an object's members.)
template <typename Json>
class JsonWatch : public Json::json_sax_t {
 public:
  using Seen = std::function<void(int depth, const std::string& key)>;
  JsonWatch(std::string_view text, int deepest, Seen seen)
      : text_(text), deepest_(deepest), seen_(std::move(seen)) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(typename Json::number_integer_t) override { return true; }
  bool number_unsigned(typename Json::number_unsigned_t) override { return true; }
  bool number_float(typename Json::number_float_t, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(typename Json::binary_t&) override { return true; }
  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }
  bool end_object() override { return --depth_, true; }
  bool end_array() override { return --depth_, true; }
  bool key(std::string& name) override {
    if (seen_) seen_(depth_, name);
    return true;
  }
  bool parse_error(size_t byte, const std::string&, const typename Json::exception& error) override {
    constexpr int kOutOfRange = 406;
    if (error.id == kOutOfRange)
      throw TextError(line_at(text_, byte), "it contains a number that is out of range");
    throw TextError(line_at(text_, byte > 0 ? byte - 1 : 0), "it is not complete JSON");
  }

 private:
  bool open() {
    if (++depth_ > deepest_)
      throw TextError(1, "its lists and objects may be nested at most " + std::to_string(deepest_) + " deep");
    return true;
  }

  std::string_view text_;
  int deepest_;
  Seen seen_;
  int depth_ = 0;
};

/// Parses JSON of any origin, of at most `deepest` lists and objects in each other (what prints or copies a
/// value takes the stack for each); throws TextError, with the line. `seen` is told each key, and in how many
/// objects and lists.
template <typename Json>
Json parse_json(std::string_view text, int deepest, typename JsonWatch<Json>::Seen seen = nullptr) {
  JsonWatch<Json> watch(text, deepest, std::move(seen));
  Json::sax_parse(text, &watch);
  return Json::parse(text);
}

}  // namespace quatrain
