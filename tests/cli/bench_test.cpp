#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/program.h"

namespace quatrain::cli {
namespace {

using nlohmann::json;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kQuick = " --seconds 0.01 --threads 1";

// The cases that a call writes to standard output, which holds nothing else.
json cases_of(const Workplace& place, const std::string& words) {
  const Outcome outcome = place.run(words + " --json -");
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.error, IsEmpty());
  return json::parse(outcome.out);
}

TEST(BenchLinear, prints_a_line_a_case) {
  const Workplace place;
  const Outcome outcome = place.run("bench linear --sizes 16,32x64 --batch 1,5 --json cases.json" + kQuick);
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, Not(HasSubstr("\033"))) << "colours are for terminals";
  for (const char* words : {"algebra ", "to real", "limit", "fastest way", "16x16", "32x64", "training"})
    EXPECT_THAT(outcome.out, HasSubstr(words));
  const json cases = json::parse(place.read("cases.json"));
  ASSERT_EQ(cases.size(), 2 * 2 * 2);
  for (const auto& one : cases) {
    EXPECT_EQ(one["algebra"], "quaternion");
    EXPECT_EQ(one["dtype"], "float32");
    EXPECT_EQ(one["threads"], 1);
    EXPECT_EQ(one["limit"], 0.5);
    EXPECT_THAT(one["way"], testing::AnyOf("factored", "mixed", "materialised"));
    EXPECT_EQ(one["ways_us"].size(), 3);
    EXPECT_THAT(one["ways_us"], Each(testing::Gt(0)));
    EXPECT_TRUE(one["ways_us"].contains(one["best_way"].get<std::string>()));
    EXPECT_EQ(*std::min_element(one["ways_us"].begin(), one["ways_us"].end()),
              one["ways_us"][one["best_way"].get<std::string>()]);
    for (const char* figure : {"ratio_real", "ratio_materialised", "us"})
      EXPECT_GT(one[figure].get<double>(), 0) << figure;
    EXPECT_GE(one["spread"].get<double>(), 0);
    EXPECT_NEAR(one["ratio_real"].get<double>(), one["us"].get<double>() / one["real_us"].get<double>(),
                1e-9);
  }
  // Inputs first; a quarter of the weights, all of the bias.
  const auto& wide = cases[2];
  EXPECT_EQ(wide["in"], 32);
  EXPECT_EQ(wide["out"], 64);
  EXPECT_EQ(wide["batch"], 1);
  EXPECT_EQ(wide["pass"], "inference");
  EXPECT_EQ(wide["parameters"], 32 * 64 / 4 + 64);
  EXPECT_EQ(wide["real_parameters"], 32 * 64 + 64);
  EXPECT_EQ(cases.back()["pass"], "training");
}

TEST(BenchConvolution, prints_a_line_a_case) {
  const Workplace place;
  const json cases = cases_of(place,
                              "bench convolution --channels 32,64 --image 8,4 --batch 2 --winograd none,2x2 "
                              "--algebra quaternion 'phm(4)'" +
                                  kQuick);
  ASSERT_EQ(cases.size(), 2 * 2 * 2 * 2);
  for (const auto& one : cases) {
    EXPECT_EQ(one["parameters"], one["channels"].get<int64_t>() * one["channels"].get<int64_t>() * 9 / 4);
    EXPECT_GT(one["ratio_real"].get<double>(), 0);
    EXPECT_EQ(one.contains("ratio_reordered"), one["pass"] == "inference");
  }
  EXPECT_EQ(cases[0]["image"], 8);
  EXPECT_EQ(cases[2]["channels"], 64);
  const json others = cases_of(
      place, "bench convolution --channels 64 --image 4 --batch 2 --depth 3 --dtype float64" + kQuick);
  ASSERT_EQ(others.size(), 2);
  for (const auto& one : others) {
    EXPECT_EQ(one["parameters"], 64 * 64 * 27 / 4);
    EXPECT_EQ(one["depth"], 3);
    EXPECT_EQ(one["dtype"], "float64");
    EXPECT_FALSE(one.contains("ratio_reordered"));
  }
  // Without --image 2048 values in a row of all channels together.
  EXPECT_EQ(cases_of(place, "bench convolution --channels 512 --batch 1" + kQuick)[0]["image"], 4);
  const Outcome outcome = place.run("bench convolution --channels 32,64 --image 8,4,2" + kQuick);
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.error,
              HasSubstr("--image must be one size, or one for each of --channels, got 3 for 2"));
}

TEST(BenchConvolution, takes_first_layers_signals_dilations_and_groups) {
  const Workplace place;
  const std::string small = "bench convolution --channels 32 --image 8 --batch 2" + kQuick;
  const Outcome first = place.run(small + " --in-channels 4 --dilation 2 --json first.json");
  ASSERT_EQ(first.code, 0) << first.error;
  for (const char* words : {" 4 to 32 ", "two axes, float32", "dilation"})
    EXPECT_THAT(first.out, HasSubstr(words));
  const auto check = [](const json& cases, int64_t parameters, const json& wanted) {
    ASSERT_EQ(cases.size(), 2);
    for (const auto& one : cases) {
      EXPECT_EQ(one["parameters"], parameters);
      for (const auto& [key, value] : wanted.items()) EXPECT_EQ(one[key], value) << key;
      const bool reordered = one["pass"] == "inference" && one["axes"] == 2 && one["dtype"] == "float32";
      EXPECT_EQ(one.contains("ratio_reordered"), reordered);
    }
  };
  check(json::parse(place.read("first.json")), 4 * 32 * 9 / 4,
        {{"in_channels", 4}, {"channels", 32}, {"axes", 2}, {"dilation", 2}, {"groups", 1}});
  check(cases_of(place, small + " --axes 1 --order first"), 32 * 32 * 3 / 4, {{"axes", 1}, {"depth", 0}});
  check(cases_of(place, small + " --axes 3 --groups 2"), 32 * 32 * 27 / 4 / 2,
        {{"axes", 3}, {"depth", 8}, {"groups", 2}});
  check(cases_of(place, small + " --groups 4 --algebra 'phm(2)'"), 32 * 32 * 9 / 2 / 4, {{"groups", 4}});
  check(cases_of(place, small + " --dtype bfloat16"), 32 * 32 * 9 / 4, {{"dtype", "bfloat16"}});
  for (const auto& [more, words] : std::vector<std::pair<std::string, std::string>>{
           {" --groups 3", "--channels must be divisible by n * groups = 12, got 32"},
           {" --in-channels 3", "--in-channels must be divisible by n = 4, got 3"},
           {" --axes 1 --depth 3", "--depth is of images of three axes, not of --axes 1"}}) {
    const Outcome outcome = place.run(small + more);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.error, HasSubstr(words));
  }
}

TEST(BenchConvolution, times_learned_algebras_by_their_factors) {
  const json cases = cases_of(Workplace(),
                              "bench convolution --channels 64 --image 32 --batch 4 --pass inference "
                              "--algebra 'phm(4)'" +
                                  kQuick);
  ASSERT_EQ(cases.size(), 1);
  EXPECT_LT(cases[0]["prepared_bytes"], 64 * 64 * 9 * sizeof(float)) << "less than H takes";
}

TEST(BenchConvolution, names_no_transform_that_there_is_not) {
  for (const std::string of : {"--kernel 5", "--stride 2", "--dilation 2", "--axes 1"}) {
    const Outcome outcome =
        Workplace().run("bench convolution --channels 32 --image 8 --batch 1 --winograd 4x4 " + of + kQuick);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.error, testing::HasSubstr("--winograd 4x4 is of --kernel 3 and --stride 1 alone"));
  }
}

TEST(BenchLinear, takes_learned_algebras_and_other_types) {
  const Workplace place;
  const json learned =
      cases_of(place, "bench linear --algebra 'phm(2)' octonion --sizes 16 --batch 4" + kQuick);
  ASSERT_EQ(learned.size(), 4);
  EXPECT_EQ(learned[0]["algebra"], "phm(2)");
  EXPECT_EQ(learned[0]["limit"], 0.75);
  EXPECT_EQ(learned[0]["parameters"], 16 * 16 / 2 + 8 + 16);
  EXPECT_EQ(learned[2]["limit"], 26.0 / 64);
  const json types = cases_of(
      place, "bench linear --sizes 32 --batch 4 --pass inference --dtype float64,bfloat16,float16" + kQuick);
  ASSERT_EQ(types.size(), 3);
  EXPECT_EQ(types[0]["dtype"], "float64");
  EXPECT_EQ(types[1]["dtype"], "bfloat16");
  EXPECT_EQ(types[2]["dtype"], "float16");
}

// A way that is forced on the whole process is the one that is timed, and named.
TEST(BenchLinear, follows_a_forced_way) {
  const Workplace place;
  ::setenv("QUATRAIN_WAY", "mixed", 1);
  const json cases = cases_of(place, "bench linear --sizes 64 --batch 64 --pass inference" + kQuick);
  ::unsetenv("QUATRAIN_WAY");
  EXPECT_EQ(cases[0]["way"], "mixed");
  EXPECT_EQ(cases[0]["prepared_bytes"], 0);
  ::setenv("QUATRAIN_WAY", "materialised", 1);
  const json other = cases_of(place, "bench linear --sizes 64 --batch 64 --pass inference" + kQuick);
  ::unsetenv("QUATRAIN_WAY");
  EXPECT_EQ(other[0]["way"], "materialised");
  EXPECT_EQ(other[0]["prepared_bytes"], 64 * 64 * 4);
}

TEST(BenchLinear, a_signal_leaves_what_was_measured) {
  const Workplace place;
  const Background program(
      "bench linear --sizes 16 --batch 1,2 --pass inference --threads 1 --seconds 10000" +
          std::string(" --json ") + place.path("cases.json").string(),
      place.path("error"));
  program.wait_until_it_catches(SIGINT);
  program.signal(SIGINT);
  EXPECT_EQ(program.wait(), 130);
  EXPECT_EQ(json::parse(place.read("cases.json")), json::array());
}

TEST(BenchDecoding, counts_target_tokens) {
  const Workplace place;
  const std::string words =
      "bench decoding --width 32 --heads 2 --feed-forward 64 --layers 1 --vocabulary 64 --source 5 --target "
      "6" +
      kQuick;
  const json cases = cases_of(place, words + " --algebra quaternion 'phm(2)' --batch 1,3 --beam 2");
  ASSERT_EQ(cases.size(), 2 * 2);
  for (const auto& one : cases) {
    EXPECT_GT(one["us"].get<double>(), 0);
    EXPECT_EQ(one["target"], 6);
    EXPECT_EQ(one["output"], "real");
  }
  const Outcome whole = place.run(words + " --output algebra --exact --batch 2");
  ASSERT_EQ(whole.code, 0) << whole.error;
  for (const char* text : {"1 + 1 layer of width 32", "5 tokens become 6", "tok/s", "algebra"})
    EXPECT_THAT(whole.out, HasSubstr(text));
  const Outcome few = place.run(words + " --projection bfloat16 --shortlist 20 --batch 2 --exact");
  ASSERT_EQ(few.code, 0) << few.error;
  EXPECT_THAT(few.out, HasSubstr("output layer bfloat16, shortlists of 20 tokens"));
  const Outcome mixed = place.run(words + " --lengths mixed --packed --batch 3");
  ASSERT_EQ(mixed.code, 0) << mixed.error;
  EXPECT_THAT(mixed.out, HasSubstr("1 to 5 tokens become 6"));
  EXPECT_EQ(place.run(words + " --output algebra --shortlist 20").code, 2);
  EXPECT_NE(place.run("bench decoding --width 30" + kQuick).code, 0);
}

// With what another program has to find before it is timed.
TEST(BenchDecoding, writes_models_with_scores_of_pairs) {
  const Workplace place;
  const Outcome outcome = place.run(
      "bench decoding --width 32 --heads 2 --feed-forward 64 --layers 1 --vocabulary 64 --source 5 --target "
      "6 "
      "--algebra quaternion --batch 3 --write made");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(std::ranges::count(place.read("made/sources.txt"), '\n'), 3);
  std::set<double> first;
  for (const std::string algebra : {"real", "quaternion"}) {
    EXPECT_FALSE(place.read("made/" + algebra + "/model.bin").empty());
    const json pairs = json::parse(place.read("made/" + algebra + "/scores.json"));
    ASSERT_EQ(pairs.size(), 4U);
    for (const auto& pair : pairs) {
      EXPECT_EQ(pair["target"].size(), 5U);
      EXPECT_EQ(pair["log_probabilities"].size(), 6U);  // the end mark's too
      for (const json& piece : pair["source"]) EXPECT_EQ(piece.get<std::string>().front(), 'w');
      for (const json& score : pair["log_probabilities"]) EXPECT_LT(score.get<double>(), 0);
    }
    EXPECT_EQ(pairs[3]["source"].size(), 5U);
    first.insert(pairs[0]["log_probabilities"][0].get<double>());
  }
  EXPECT_EQ(first.size(), 2U) << "each model has its own";
}

TEST(BenchEncoder, splits_a_layer_into_its_parts) {
  const Workplace place;
  const std::string words =
      "bench encoder --width 32 --heads 2 --feed-forward 64 --sequence 6 --batch 3" + kQuick;
  const Outcome outcome = place.run(words);
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  for (const char* text : {"width 32, 2 heads", "to real", "feed-fwd", "3x6", "1x1", "peak", "training"})
    EXPECT_THAT(outcome.out, HasSubstr(text));
  const json cases = cases_of(place, words + " --algebra quaternion 'phm(2)'");
  ASSERT_EQ(cases.size(), 2 * 3);
  for (const auto& one : cases) {
    EXPECT_GT(one["us"].get<double>(), 0);
    for (const char* part : {"maps", "between", "feed_forward", "rest"}) {
      EXPECT_TRUE(one["parts_us"].contains(part));
      EXPECT_TRUE(one["real_parts_us"].contains(part));
    }
    EXPECT_LT(one["parts_us"]["feed_forward"].get<double>(), 2 * one["us"].get<double>());
  }
  // 4 maps of 32 x 32, 2 of 32 x 64: the quaternions hold a quarter of them.
  EXPECT_EQ(cases[0]["real_parameters"].get<int>() - cases[0]["parameters"].get<int>(),
            (4 * 32 * 32 + 2 * 32 * 64) * 3 / 4);
  EXPECT_EQ(cases[1]["sequence"], 1);
  EXPECT_EQ(cases[2]["pass"], "training");
  EXPECT_EQ(cases[2]["prepared_bytes"], 0);
}

TEST(BenchRecurrent, stands_beside_torchs_layers) {
  const Workplace place;
  const std::string words = "bench recurrent --sizes 8 --batch 2 --steps 3 --cell lstm,gru,rnn" + kQuick;
  const Outcome outcome = place.run(words + " --lengths mixed");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  for (const char* text : {"Recurrent layers", "gru", "2x3", "mixed", "to real"})
    EXPECT_THAT(outcome.out, HasSubstr(text));
  const json cases = cases_of(place, words + " --pass inference --algebra quaternion 'phm(2)'");
  ASSERT_EQ(cases.size(), 2 * 3);
  for (const auto& one : cases) EXPECT_GT(one["us"].get<double>(), 0);
  EXPECT_EQ(cases[0]["real_parameters"].get<int>(), 4 * (2 * 8 * 8 + 2 * 8));
  EXPECT_EQ(cases[0]["parameters"].get<int>(), 4 * (2 * 8 * 8 / 4 + 2 * 8));
  EXPECT_GT(cases_of(place, "bench recurrent --sizes 8 --batch 1 --steps 1 --pass inference" +
                                kQuick)[0]["ratio_cell"]
                .get<double>(),
            0);
  // A map for each gate has an A of its own; torch's layer is the same.
  const json gates =
      cases_of(place,
               "bench recurrent --sizes 8 --batch 1 --steps 1 --algebra 'phm(2)' --pass inference"
               " --gates packed,separate --caches warm,emptied" +
                   kQuick);
  ASSERT_EQ(gates.size(), 4);
  EXPECT_EQ(gates[0]["gates"], "packed");
  EXPECT_EQ(gates[3]["gates"], "separate");
  EXPECT_EQ(gates[2]["parameters"].get<int>() - gates[0]["parameters"].get<int>(), (8 - 2) * 2 * 2 * 2);
  EXPECT_EQ(gates[2]["real_parameters"], gates[0]["real_parameters"]);
  EXPECT_EQ(gates[2]["caches"], "warm");
  EXPECT_EQ(gates[3]["caches"], "emptied");
  EXPECT_EQ(place.run("bench recurrent --sizes 30").code, 2);
  // torch warns that its layer is not oneDNN's then.
  const Outcome projecting =
      place.run("bench recurrent --sizes 8 --proj-size 4 --batch 2 --steps 3 --json -" + kQuick);
  ASSERT_EQ(projecting.code, 0) << projecting.error;
  const json projected = json::parse(projecting.out);
  EXPECT_EQ(projected[0]["real_parameters"].get<int>(), 4 * (8 * 8 + 4 * 8 + 2 * 8) + 4 * 8);
  EXPECT_EQ(projected[0]["parameters"].get<int>(), 4 * ((8 * 8 + 4 * 8) / 4 + 2 * 8) + 4 * 8 / 4);
  for (const char* wrong :
       {"--sizes 8 --proj-size 8", "--sizes 8 --proj-size 4 --cell gru", "--sizes 8 --proj-size 3"})
    EXPECT_EQ(place.run(std::string("bench recurrent ") + wrong + kQuick).code, 2) << wrong;
}

TEST(BenchPairs, stands_beside_the_real_twin) {
  const Workplace place;
  const std::string words = "bench pairs --sizes 8 --word-width 12 --batch 2 --words 3" + kQuick;
  const Outcome outcome = place.run(words);
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  for (const char* text : {"Models of pairs", "attention", "2x3", "to real", "training"})
    EXPECT_THAT(outcome.out, HasSubstr(text));
  const json cases = cases_of(place, words + " --algebra quaternion 'phm(2)'");
  ASSERT_EQ(cases.size(), 2 * 2);
  for (const auto& one : cases) {
    EXPECT_GT(one["us"].get<double>(), 0);
    EXPECT_GT(one["peak_bytes"].get<double>(), 0);
    EXPECT_FALSE(one.contains("ratio_torch"));
  }
  const int projection = 12 * 8 + 8, networks = 2 * (32 * 8 + 8 * 8), biases = 2 * (8 + 8), head = 8 * 3 + 3;
  EXPECT_EQ(cases[0]["real_parameters"].get<int>(), projection + networks + biases + head);
  EXPECT_EQ(cases[0]["parameters"].get<int>(), projection + networks / 4 + biases + head);

  const json encoders = cases_of(place, words + " --model encoder --gates packed");
  ASSERT_EQ(encoders.size(), 2);
  for (const auto& one : encoders) EXPECT_GT(one["ratio_torch"].get<double>(), 0);
  EXPECT_EQ(encoders[0]["real_parameters"].get<int>() - encoders[0]["parameters"].get<int>(),
            4 * (12 * 8 + 8 * 8) * 3 / 4);
  EXPECT_EQ(place.run("bench pairs --sizes 30").code, 2);
  EXPECT_EQ(place.run("bench pairs --model encoder --word-width 30").code, 2);
}

TEST(BenchModel, puts_every_twin_beside_the_real_one) {
  const Workplace place;
  place.write("two.toml",
              "[task]\ndata = 'agreement'\n[[twins]]\nname = 'quaternion'\nalgebra = 'quaternion'\n"
              "[[twins]]\nname = 'plain'\nalgebra = 'real'\n");
  const std::string words = "bench model two.toml --seconds 0.01 --json cases.json" + kSmall;
  const Outcome outcome = place.run(words);
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  for (const char* text : {"two, fresh models, 1 thread", "words/s", "peak", "quaternion", "plain"})
    EXPECT_THAT(outcome.out, HasSubstr(text));
  const json cases = json::parse(place.read("cases.json"));
  ASSERT_EQ(cases.size(), 3 * 2);
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases[i]["twin"], i % 2 ? "quaternion" : "plain");
    EXPECT_EQ(cases[i]["threads"], 1);
    EXPECT_GT(cases[i]["words_per_second"].get<double>(), 0);
    EXPECT_GT(cases[i]["peak_bytes"].get<double>(), 0);
    EXPECT_EQ(cases[i]["real_peak_bytes"], cases[i - i % 2]["peak_bytes"]);
  }
  EXPECT_EQ(cases[0]["pass"], "training");
  EXPECT_EQ(cases[0]["ratio_real"], 1);
  EXPECT_EQ(cases[2]["batch"], 32);
  EXPECT_EQ(cases[4]["batch"], 1);
  EXPECT_FALSE(std::filesystem::exists(place.path("runs")));

  const Outcome asked = place.run(words + " --batch 5");
  ASSERT_EQ(asked.code, 0) << asked.error;
  const json fives = json::parse(place.read("cases.json"));
  ASSERT_EQ(fives.size(), 2 * 2);
  EXPECT_EQ(fives[2]["batch"], 5);
}

// Without a real twin one is made; without twins the recipe itself is the other.
TEST(BenchModel, makes_the_real_twin) {
  const Workplace place;
  place.write("one.toml", "[task]\ndata = 'agreement'\n[model]\nalgebra = 'phm(2)'\n");
  const json cases = cases_of(place, "bench model one.toml --seconds 0.01" + kSmall);
  ASSERT_EQ(cases.size(), 3 * 2);
  EXPECT_EQ(cases[0]["algebra"], "real");
  EXPECT_EQ(cases[1]["algebra"], "phm(2)");
}

}  // namespace
}  // namespace quatrain::cli
