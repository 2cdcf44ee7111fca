"""What CTranslate2 makes of the sentences that quatrain_write_ctranslate2 printed, for test_ctranslate2.py.

CTranslate2 brings an OpenMP of its own: it runs in a process without torch. usage: FOLDER < report > answers
"""

import json
import sys


def main() -> None:
    import ctranslate2

    report = json.load(sys.stdin)
    pieces = ["<pad>", "<unk>", "<s>", "</s>"]


    def texts(tokens):
        return [pieces[token] if token < len(pieces) else f"w{token}" for token in tokens]


    translator = ctranslate2.Translator(sys.argv[1], device="cpu", compute_type="float32", intra_threads=1)
    # The end of a source is CTranslate2's to add.
    sources = [texts(sentence["source"])[:-1] for sentence in report["sentences"]]
    targets = [texts(sentence["target"]) for sentence in report["sentences"]]
    scored = translator.score_batch(sources, targets)
    translated = translator.translate_batch(sources, beam_size=1, min_decoding_length=0, max_decoding_length=report["longest"])
    json.dump(
        {
            "tokens": [score.tokens for score in scored],
            "log_probabilities": [score.log_probs for score in scored],
            "greedy": [result.hypotheses[0] for result in translated],
            "expected": [{"target": [*target, "</s>"], "greedy": texts(sentence["greedy"])} for target, sentence in zip(targets, report["sentences"])],
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
