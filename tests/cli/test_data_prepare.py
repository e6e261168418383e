from tiny_runs import weft_inside, write_pairs


def test_every_part_is_encoded_before_training(tmp_path):
    words = [f"data.{part}={write_pairs(tmp_path).with_name(part)}.tsv" for part in ("train", "test")]
    ended = weft_inside("data", "prepare", "task=translate", "data.tokens=char", *words)
    assert (ended.code, ended.err) == (0, "")
    assert "source: text as chars, 8 entries" in ended.out
    assert [line.partition(":")[0] for line in ended.out.splitlines()[2:]] == ["train", "valid", "test"]
