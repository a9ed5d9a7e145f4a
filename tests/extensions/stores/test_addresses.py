"""Addresses as paths: what is shown, what is secret, and patterns."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from boxscore._utils.given_paths import Several, is_address, path_of, together
from boxscore.errors import InputError
from boxscore.extensions.stores.addresses import Address, address_of, without_secrets


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("s3://bucket/run/found.parquet", "s3://bucket/run/found.parquet"),
        ("s3://KEYNAME:topsecret@bucket/a b.json?region=eu-1", "s3://bucket/a b.json"),
        ("https://ann:topsecret@host:80/a/x.json?X-Amz-Signature=topsecret", "https://host:80/a/x.json"),
        ("abfs://box@account.dfs.core.windows.net/x", "abfs://box@account.dfs.core.windows.net/x"),
        ("abfs://account:topsecret@box/x", "abfs://account@box/x"),
        ("gs://bucket", "gs://bucket"),
    ],
)
def test_an_address_is_shown_without_secrets_and_travels_with_them(given: str, shown: str) -> None:
    address = path_of(given)
    assert isinstance(address, Address)
    assert str(address) == f"{address}" == shown
    assert "topsecret" not in repr(address)
    again = pickle.loads(pickle.dumps(address))
    assert isinstance(again, Address)
    assert again.given == given
    assert again == address
    assert hash(again) == hash(address)
    assert path_of(address) is address
    inner = address / "part.parquet"
    assert (inner.name, inner.suffix) == ("part.parquet", ".parquet")
    assert inner.given.partition("?")[2] == given.partition("?")[2]
    assert isinstance(address.parent, Path)
    assert "topsecret" not in without_secrets(f"AWS says: {given}")


def test_secrets_of_the_environment_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wordword")
    assert without_secrets("denied for wordword") == "denied for ..."


def test_options_that_are_no_secrets_may_be_repeated() -> None:
    Address("s3://bucket/x?region=eu-west-9&endpoint_override=store.example:9000&session_token=abcdefgh")
    said = "no region eu-west-9 at store.example:9000 for abcdefgh"
    assert without_secrets(said) == "no region eu-west-9 at store.example:9000 for ..."


def test_a_path_that_lost_a_slash_is_an_address_and_a_file_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert str(path_of(Path("s3://bucket/key"))) == "s3://bucket/key"
    assert address_of("s3:/bucket/key").given == "s3://bucket/key"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:" / "bucket").mkdir(parents=True)
    assert not is_address("s3://bucket")
    assert type(path_of("s3://bucket")) is type(Path())
    assert not is_address("C:/data/x.json")
    assert not is_address("c:\\data")


def test_patterns_are_all_files_that_match_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "c.txt", "odd[1].json"):
        (tmp_path / name).write_text("[]")
    found = path_of(f"{tmp_path}/[ab].json")
    assert isinstance(found, Several)
    assert [file.name for file in found.iterdir()] == ["a.json", "b.json"]
    assert (found.exists(), found.is_dir(), found.is_file(), found.stat().st_size) == (True, True, False, 4)
    assert path_of(str(tmp_path / "odd[1].json")) == tmp_path / "odd[1].json"  # a file has that name
    nothing = path_of(f"{tmp_path}/*.xml")
    assert not nothing.exists()
    assert str(nothing) == f"{tmp_path}/*.xml"
    pattern = Several("s3://bucket/*.json", [tmp_path / "a.json"])
    assert str(pattern) == f"{pattern}" == str(pickle.loads(pickle.dumps(pattern))) == "s3://bucket/*.json"
    both = together(together(tmp_path / "b.json", tmp_path / "a.json"), tmp_path / "c.txt")
    assert [file.name for file in both.files] == ["b.json", "a.json", "c.txt"]
    again = pickle.loads(pickle.dumps(both))
    assert (again.files, str(again)) == (both.files, str(both))
    assert [file.name for file in both.rglob("*")] == ["b.json", "a.json", "c.txt"]


def test_nothing_is_written_to_a_store() -> None:
    with pytest.raises(
        InputError,
        match="s3://bucket/x: cannot be written: boxscore reads from object stores but writes only local files",
    ):
        Address("s3://bucket/x").open("wb")


def test_pyarrow_is_given_the_key_of_an_azure_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes none from an address, and says nothing."""
    fs = pytest.importorskip("pyarrow.fs")
    if not hasattr(fs, "AzureFileSystem"):
        pytest.skip("needs a pyarrow with Azure's store")

    def options(given: str) -> dict[str, str]:
        system, place = Address(given)._store._place
        assert place == "box/a b/x.json"
        known: dict[str, str] = system.__reduce__()[1][0]
        return known

    for name in ("AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    ways = "blob_storage_authority=127.0.0.1:10000&enable_tls=false"
    assert options(f"abfs://account@box/a b/x.json?{ways}")["account_key"] == ""
    given = options(f"abfs://account:dG9w%2FA==@box/a b/x.json?{ways}")
    assert (given["account_name"], given["account_key"]) == ("account", "dG9w/A==")
    assert (given["blob_storage_authority"], given["blob_storage_scheme"]) == ("127.0.0.1:10000", "http")
    monkeypatch.setenv("AZURE_STORAGE_KEY", "c2VjcmV0")
    assert options("abfs://box@account.dfs.core.windows.net/a b/x.json")["account_key"] == "c2VjcmV0"
    assert options("abfs://other:a2V5@box/a b/x.json")["account_key"] == "a2V5"
