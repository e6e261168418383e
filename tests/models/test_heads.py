import torch

from weft.models import Head


def test_a_head_is_a_linear_map():
    head, y = Head(4, 7, 0.0), torch.randn(2, 3, 4)
    head.bias.data.normal_()
    assert torch.allclose(head(y), y @ head.weight.T + head.bias, atol=1e-6)


def test_its_loss_is_that_of_its_logits():
    head, y, target = Head(4, 7, 0.0), torch.randn(3, 4), torch.tensor([1, -1, 6])
    total, count = head.loss(y, target, 0.1)
    want = torch.nn.functional.cross_entropy(
        head(y), target, ignore_index=-1, reduction="sum", label_smoothing=0.1
    )
    assert torch.allclose(total, want, atol=1e-5)
    assert count.item() == 2
    assert torch.allclose(head.loss(y, target, 0.1, per_token=True)[0].sum(), total)


def test_a_given_table_is_the_matrix():
    table = torch.nn.Parameter(torch.randn(7, 4))
    assert Head(4, 7, 0.0, table).weight is table
