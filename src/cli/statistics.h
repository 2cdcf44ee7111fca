#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace quatrain::cli {

/// Mean and standard deviation (of a sample; 0 for one value).
struct Spread {
  double mean = 0;
  double deviation = 0;
};
Spread spread(const std::vector<double>& values);

/// One model trained with several seeds: for each seed, how right each test example was (0 to 1), or what it
/// adds to another figure (contributions()).
using Answers = std::vector<std::vector<double>>;

/// What each example adds to a figure that is computed from sums of counts over all of them, such as BLEU.
/// `counts` has a row for each example. The figure is computed again without each example i (the jackknife):
/// v_i = F + (N - 1) (mean of all F_-j - F_-i). The mean of these is F itself; of a share of right answers
/// they are 1 and 0.
std::vector<double> contributions(const std::vector<std::vector<int64_t>>& counts,
                                  const std::function<double(const std::vector<int64_t>&)>& figure);

/// A mean with an interval that holds it; both ends are NaN where the chance is not known.
struct Interval {
  double mean = 0;
  double low = 0;
  double high = 0;
};

/// How much more often one model is right than another, or how much higher its figure is, over all seeds and
/// all examples that there could be, of which these are samples.
///
/// The variance has two levels, Var = v_a / S + v_b / S + v_d / N - v_i / (S N): v_a and v_b are the
/// variances of a model's accuracy over its S seeds, v_d that over the N examples of the mean difference (the
/// examples are the same for both models), and v_i that of one answer, which each of the others holds
/// already. The interval is Student's, with Welch and Satterthwaite's degrees of freedom. `comparisons`
/// intervals hold together in 95% of cases (Bonferroni).
///
/// A bootstrap of both levels aims at the same, but counts v_i three times (A. Owen, The pigeonhole
/// bootstrap, 2007), and with five seeds misses Student's tails. One of examples alone leaves out v_a and
/// v_b.
///
/// With one seed, or one example, the ends are NaN. Throws std::invalid_argument where the sizes differ.
Interval difference(const Answers& model, const Answers& other, int64_t comparisons = 1);

/// What an interval says at a margin, below which a difference does not matter.
enum class Verdict { ahead, behind, level, open };
/// ahead, behind: the interval excludes zero, and the figure is better or worse. level: it lies within the
/// margin. open: none of these.
Verdict verdict(const Interval& difference, double margin, bool higher_is_better);

/// The value that Student's t of so many degrees of freedom (1 or more, whole or not) exceeds with this
/// chance, between 1e-9 and .5.
double student_t(double chance, double degrees);

}  // namespace quatrain::cli
