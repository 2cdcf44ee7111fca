#pragma once

/// What stands below the help of each command: examples.
namespace quatrain::cli {

inline constexpr const char* kFooter = R"(Examples:
  quatrain compare agreement                     a Transformer beside its quaternion and PHM twins
  quatrain train sentiment --data ~/data/sst
  echo "a fine film" | quatrain predict runs/sentiment-2026-01-31-120000

'quatrain COMMAND --help' says more. Exit codes: 0 done, 1 failed, 2 wrong usage or recipe, 130 interrupted.)";

inline constexpr const char* kTrainFooter = R"(Examples:
  quatrain train agreement --set model.algebra=octonion --set train.steps=500
  quatrain train sentiment --twin phm4 --data ~/data/sst --out runs/mine
  quatrain train runs/mine --resume              goes on where the run stopped
  quatrain train runs/mine --resume --from step-000120    from an older checkpoint

Ctrl-C saves and stops after the step; a second one ends at once.)";

inline constexpr const char* kAverageFooter =
    R"(Takes 'last' and the step-N folders of RUN, which train.keep makes more of, and scores their mean as training would.
--best takes those of them with the best figures of the dev set, by which the recipe selects.
The mean of weights is that of models only where these are close to each other, as late in training: the table has
the run's own figure beside the mean's.

Examples:
  quatrain train translation --data ~/data/mt --keep 5 --out runs/mine
  quatrain average runs/mine --last 5 --out runs/mine-mean)";

inline constexpr const char* kEvaluateFooter = R"(Examples:
  quatrain evaluate runs/mine
  quatrain evaluate runs/mine --split dev --json -
  quatrain evaluate runs/mine --data new --out answers    and the answers, where the kind keeps them
  quatrain evaluate runs/translation --set decode.beam=1    figures of greedy translations)";

inline constexpr const char* kPredictFooter =
    R"(Prints one line for each line that it reads, in order, with tabs between. What is in it depends on the kind of run:
where texts are classified, the label, then the probability of every label in the order of the run's labels.txt; of a
picture (a file) the likeliest class and its probability; of a recording (a file) what was said; where lines become lines,
the best target, or several with their scores (decode.best, decode.scores); of a language model, what follows the line, as
the keys of [generate] say (tokens, temperature, top_k, top_p, seed), or how likely the line is (generate.score). Where
lines become lines, decode.reads lets a line have the beginning of its target, or a target to be scored, behind a tab. The
kind regression reads the input's numbers with spaces between (two quaternions are 8), copy_memory the symbols as digits
without spaces (10 of them).

--with answers together with other runs of the same pieces: each token by the mean of their probabilities.

--set takes the keys that say how a trained run answers, such as those of [decode] and [generate]; the error of another
key lists them. The recipe that is stored stays as it is.

Examples:
  echo "a fine film" | quatrain predict runs/mine
  quatrain predict runs/mine < texts.txt | cut -f1 > labels.txt
  quatrain predict runs/digits first.wav second.flac
  quatrain predict runs/pets cat.jpg dog.png
  arecord -t raw -f S16_LE -c 1 -r 8000 | quatrain predict runs/digits --live
  quatrain predict runs/translation --set decode.beam=8 --set decode.best=4 --set decode.scores=true < lines.txt
  echo "It was a dark" | quatrain predict runs/book --set generate.temperature=0
  quatrain predict runs/seed1 --with runs/seed2 --with runs/seed3 < lines.txt
  quatrain predict runs/translation --set decode.reads=pair < sources-and-targets.tsv)";

inline constexpr const char* kShortlistFooter =
    R"(Reads the training set and writes RUN/shortlist: by IBM model 1, the target tokens that are likely for each source
token. Predictions with decode.shortlist = true score these alone, which is faster with a large vocabulary. The table says
how much of the dev set's targets can still be written.

Examples:
  quatrain shortlist runs/mine
  quatrain shortlist runs/mine --best 100 --frequent 500
  quatrain predict runs/mine --set decode.shortlist=true < lines.txt)";

inline constexpr const char* kScoreFooter =
    R"(Line by line, HYPOTHESES and REFERENCES belong together. Several files of references give each line as many: BLEU
counts a word where one of them has it, chrF2 takes the closest. The scores are sacrebleu's; the signatures say how
they were computed.

--metric wer and cer count the errors of recognised speech, as Kaldi prints them. Two files of the ending .trn are
matched by their utterances, others line by line.

Examples:
  quatrain score translations.txt references.txt
  quatrain score translations.txt first.txt second.txt
  quatrain predict runs/mine < test.en | quatrain score - test.de
  quatrain score tokenised.txt tokenised-references.txt --tokenize none
  quatrain score test.hyp.trn test.ref.trn --metric wer)";

inline constexpr const char* kCheckFooter =
    R"(Reads checkpoints (sizes, checksums, weights, optimizer), metrics, result and predictions, and says of each
whether it is sound; 1 is the exit code where one is not.

Examples:
  quatrain check runs/mine
  quatrain check runs/mine --accept              after weights were written into it from Python)";

inline constexpr const char* kPlotFooter = R"(Examples:
  quatrain plot runs/mine
  quatrain plot runs/sentiment/*-seed1 --out sentiment.png --figure accuracy)";

inline constexpr const char* kConvertFooter =
    R"(IN and OUT are safetensors files, or folders of runs: a run becomes one that 'quatrain train' can fine-tune.
Patterns are as for file names (* ? [..]) and match the whole dotted name; * matches dots too.

Examples:
  quatrain convert runs/mine runs/mine-phm4 --algebra 'phm(4)'
  quatrain train runs/mine-phm4 --out runs/tuned --set train.steps=0 --set train.epochs=1 --set train.warmup_share=0.1
  quatrain convert model.safetensors small.safetensors --algebra quaternion --where 'encoder.*'
  quatrain convert runs/translation out --to ctranslate2    a run that translates, any algebra, real attention
  quatrain convert runs/frames out --to kaldi --data new --split test    scores of recordings, for a decoder)";

inline constexpr const char* kCompareFooter = R"(Examples:
  quatrain compare agreement --twins real,quaternion,phm4     generated sentences
  quatrain compare agreement --data ~/data/sva --set train.steps=500 --set model.dropout=0.1     real ones
  quatrain compare sentiment --data ~/data/sst --seeds 5 --json sentiment.json
  quatrain compare runs/sentiment-2026-01-31-120000     goes on where it stopped)";

inline constexpr const char* kRunsFooter = R"(Examples:
  quatrain runs                                  all below runs/
  quatrain runs runs/sentiment --json -)";

inline constexpr const char* kBenchFooter = R"(Examples:
  quatrain bench linear --sizes 1024 --batch 1,32,1024 --threads 1,2
  quatrain bench encoder --algebra quaternion 'phm(4)'
  quatrain bench model agreement --json -)";

inline constexpr const char* kBenchLinearFooter = R"(Examples:
  quatrain bench linear --sizes 1024 --batch 1,32,1024 --threads 1,2
  quatrain bench linear --algebra octonion 'phm(4)' --sizes 512x2048 --pass training)";

inline constexpr const char* kBenchEncoderFooter = R"(Examples:
  quatrain bench encoder --algebra quaternion 'phm(4)'
  quatrain bench encoder --width 256 --heads 4 --feed-forward 1024 --sequence 128 --batch 8)";

inline constexpr const char* kBenchRecurrentFooter = R"(Examples:
  quatrain bench recurrent --sizes 512 --batch 1,16 --threads 1
  quatrain bench recurrent --steps 1 --batch 1 --pass inference --caches warm,emptied
  quatrain bench recurrent --algebra 'phm(4)' --gates packed,separate
  quatrain bench recurrent --cell gru --lengths mixed --algebra quaternion 'phm(4)')";

inline constexpr const char* kBenchConvolutionFooter = R"(Examples:
  quatrain bench convolution --threads 1
  quatrain bench convolution --channels 128 --image 28 --batch 8 --winograd none,2x2,4x4
  quatrain bench convolution --kernel 3 --stride 2 --algebra quaternion 'phm(4)'
  quatrain bench convolution --channels 64 --in-channels 4 --image 32
  quatrain bench convolution --axes 1 --channels 256 --image 50000 --batch 1)";

inline constexpr const char* kBenchPairsFooter = R"(Examples:
  quatrain bench pairs --threads 1
  quatrain bench pairs --model encoder --sizes 300 --algebra 'phm(5)' --gates packed)";

inline constexpr const char* kBenchDecodingFooter = R"(Examples:
  quatrain bench decoding --algebra quaternion 'phm(4)' --threads 1
  quatrain bench decoding --output algebra --batch 1 --beam 4 --json -
  quatrain bench decoding --write /tmp/models && scripts/bench_ctranslate2 /tmp/models/real --source /tmp/models/sources.txt)";

inline constexpr const char* kBenchModelFooter = R"(Examples:
  quatrain bench model agreement --twins real,quaternion
  quatrain bench model sentiment --data ~/data/sst --json -)";

inline constexpr const char* kInfoFooter = R"(Examples:
  quatrain info                                  for a bug report
  quatrain info algebras                         what --set model.algebra= may name)";

inline constexpr const char* kRecipesFooter = R"(Examples:
  quatrain recipes
  quatrain recipes show sentiment > mine.toml    to begin one of your own
  quatrain recipes show runs/mine                what a run was made from)";

}  // namespace quatrain::cli
