import pytest
import torch
from small_models import FAMILIES, TEXT, ids, translation

from weft.core.sequences import Sequences
from weft.data import BOS, EOS
from weft.decoding import DecodingConfig, beam, greedy, score
from weft.models import PromptStepper, TranslationStepper, build_causal, parse_model

PAIRS = [("rnn", "lstm"), ("lstm", "gru"), ("gru", "tcn"), ("tcn", "transformer"), ("transformer", "rnn")]
MOST = torch.tensor([6, 6, 6, 6])
SOURCE_LENGTHS = (5, 2, 1, 4)


def source() -> Sequences:
    torch.manual_seed(4)
    return ids(*SOURCE_LENGTHS, size=30)


def test_a_step_gives_log_probabilities():
    model = translation("gru")
    stepper = TranslationStepper(model)
    log_p, state = stepper.step(torch.full((4,), BOS), stepper.start(source()))
    want = torch.log_softmax(
        model.head(model(source(), Sequences.full(torch.full((4, 1), BOS))).data[:, 0]), -1
    )
    assert torch.allclose(log_p, want, atol=1e-9)
    assert torch.allclose(log_p.exp().sum(1), torch.ones(4).double())
    assert state.memory.summary.shape[0] == 4


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rows", [
    [0, 0, 1, 1, 2, 2, 3, 3],  # two lanes a row
    [3, 1, 2, 0],  # rows reordered
    [2, 2, 2, 0, 0, 0],  # rows dropped, reordered, with lanes
    [1],
])  # fmt: skip
def test_selected_lanes_go_on_as_their_rows(family, rows):
    stepper, first, then = TranslationStepper(translation(family)), ids(4).data[0], ids(len(rows)).data[0]
    _, state = stepper.step(first, stepper.start(source()))
    got, after = stepper.step(then, stepper.select(state, torch.tensor(rows)))
    for lane, row in enumerate(rows):
        alone = stepper.start(source().rows(torch.tensor([row])))
        _, alone = stepper.step(first[row : row + 1], alone)
        assert torch.allclose(stepper.step(then[lane : lane + 1], alone)[0][0], got[lane], atol=1e-9)
    assert after.memory.summary.shape[0] == len(set(rows))


def test_lanes_are_selected_within_and_across_blocks():
    """Two lanes a row; lanes crossed within blocks, blocks reordered, one dropped."""
    stepper = TranslationStepper(translation("lstm"))
    state = stepper.select(stepper.start(source()), torch.arange(4).repeat_interleave(2))
    tokens = ids(8).data[0]
    _, state = stepper.step(tokens, state)
    rows = [5, 4, 1, 1, 6, 7]
    got, _ = stepper.step(torch.full((6,), 9), stepper.select(state, torch.tensor(rows)))
    for lane, row in enumerate(rows):
        alone = stepper.start(source().rows(torch.tensor([row // 2])))
        _, alone = stepper.step(tokens[row : row + 1], alone)
        assert torch.allclose(stepper.step(torch.tensor([9]), alone)[0][0], got[lane], atol=1e-9)


@pytest.mark.parametrize(("encoder", "decoder"), PAIRS)
def test_greedy_is_the_argmax_of_the_model_on_its_own_output(encoder, decoder):
    model = translation(encoder, decoder)
    found = greedy(TranslationStepper(model), source(), 4, DecodingConfig(), BOS, EOS, MOST)
    for row, [hypothesis] in enumerate(found):
        said = torch.tensor([[BOS, *hypothesis.tokens]])
        logits = model.head(model(source().rows(torch.tensor([row])), Sequences.full(said)).data)[0]
        wanted = [*hypothesis.tokens, EOS] if hypothesis.finished else hypothesis.tokens
        assert logits.argmax(-1).tolist()[: len(wanted)] == wanted
        assert hypothesis.finished or len(hypothesis.tokens) == 6


@pytest.mark.parametrize(("encoder", "decoder"), PAIRS)
def test_beam_of_many_is_one_by_one(encoder, decoder):
    stepper, config = (
        TranslationStepper(translation(encoder, decoder)),
        DecodingConfig(method="beam", beam=3, nbest=3),
    )
    together = beam(stepper, source(), 4, config, BOS, EOS, MOST)
    for row, found in enumerate(together):
        rows = source().rows(torch.tensor([row]))
        rows = Sequences.full(rows.data[:, : rows.lengths[0]])
        [alone] = beam(stepper, rows, 1, config, BOS, EOS, MOST[:1])
        assert [h.tokens for h in alone] == [h.tokens for h in found]
        assert [h.score for h in alone] == pytest.approx([h.score for h in found], abs=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
def test_the_score_of_an_output_is_the_models_loss(family):
    model, targets = translation(family), ids(3, 0, 4, 1)
    got = score(TranslationStepper(model), source(), targets, BOS, EOS)
    for row, target in enumerate(targets.unpad()):
        said = Sequences.full(torch.tensor([[BOS, *target.tolist()]]))
        log_p = torch.log_softmax(model.head(model(source().rows(torch.tensor([row])), said).data)[0], -1)
        want = [float(log_p[t, token]) for t, token in enumerate([*target.tolist(), EOS])]
        assert got.data[row, : len(want)].tolist() == pytest.approx(want, abs=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_language_model_continues_itself(family):
    torch.manual_seed(0)
    model = (
        build_causal(TEXT, TEXT.size, parse_model({"width": 8, "family": family}, ("decoder",)))
        .double()
        .eval()
    )
    stepper = PromptStepper(model, BOS)
    [[found]] = greedy(stepper, ids(0), 1, DecodingConfig(max_length=5), BOS, EOS)
    logits = model.head(model(Sequences.full(torch.tensor([[BOS, *found.tokens]])))[0].data)[0]
    assert logits.argmax(-1).tolist()[: len(found.tokens)] == found.tokens
    _, state = stepper.step(torch.tensor([BOS, BOS]), stepper.start(ids(2, 1)))
    alone = stepper.step(torch.tensor([7]), stepper.select(state, torch.tensor([1])))[0]
    assert torch.allclose(alone[0], stepper.step(torch.tensor([6, 7]), state)[0][1], atol=1e-9)
