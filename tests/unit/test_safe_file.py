import os

import pytest

from rmqtools.safe_file import PRIVATE, make_private, open_new, replace_text


def test_a_planted_link_is_replaced_and_its_target_stays(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("mine")
    link.symlink_to(target)

    with open_new(link) as file:
        file.write("new")

    assert (target.read_text(), link.read_text(), link.is_symlink()) == ("mine", "new", False)


def test_text_is_replaced_through_neither_a_link_nor_a_link_in_place_of_the_part(tmp_path):
    target, path, part = tmp_path / "target", tmp_path / "file", tmp_path / "file.part"
    target.write_text("mine")
    for link in (path, part):
        link.symlink_to(target)

    replace_text(path, "new", mode=PRIVATE)

    assert (target.read_text(), path.read_text()) == ("mine", "new")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "target"]


def test_a_private_file_is_for_its_owner_alone_whatever_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o666)

    replace_text(path, "new", mode=PRIVATE)

    assert path.stat().st_mode & 0o777 == PRIVATE


def test_a_folder_of_another_user_is_refused_also_for_root(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)

    with pytest.raises(PermissionError, match="belongs to another user"):
        make_private(tmp_path / "folder")
