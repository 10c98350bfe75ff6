"""`qrmem serve --tokens FILE`: what the holder of each token can and cannot do."""

import re
from hashlib import sha256
from json import dumps
from pathlib import Path

import httpx
import pytest
from integrations.conftest import Served

from qrmem import sync
from qrmem.cli import main
from qrmem.errors import UsageError
from qrmem.web.guard import grants


def row(token: str, **more: str | bool) -> str:
    said = [f'sha256 = "{sha256(token.encode()).hexdigest()}"']
    said += [
        f"{k} = {str(v).lower() if isinstance(v, bool) else dumps(v, ensure_ascii=False)}"
        for k, v in more.items()
    ]
    return "\n".join(["[[token]]", *said, ""])


def client(url: str, token: str) -> httpx.Client:
    return httpx.Client(base_url=url, timeout=60, headers={"authorization": f"Bearer {token}"})


def ids(of: httpx.Client) -> list[str]:
    return [info["id"] for info in of.get("/documents").json()]


def test_each_token_is_for_its_namespace_its_user_and_its_rights(
    served: Served, tmp_path: Path
) -> None:
    table = tmp_path / "tokens.toml"
    table.write_text(
        row("reader")
        + row("team", namespace="team", write=True)
        + row("of-ann", namespace="team", user="ann", write=True)
        + row("of-bob", namespace="team", user="bob")
    )
    with (
        served("serve", "--tokens", str(table), text="Ada met Babbage in London.") as url,
        client(url, "reader") as reader,
        client(url, "team") as team,
        client(url, "of-ann") as ann,
        client(url, "of-bob") as bob,
    ):
        for given, what in (
            ("", "the token is missing"),
            ("Bearer", "the token is missing"),
            ("Basic reader", "the token is missing"),
            ("Bearer nobody", "this token is unknown"),
        ):
            refused = httpx.get(f"{url}/documents", headers={"authorization": given})
            assert refused.status_code == 401, given
            assert refused.json() == {"error": f"{what}; send Authorization: Bearer TOKEN"}

        # A namespace each, and only who may write writes.
        assert (ids(reader), ids(team)) == (["note"], [])
        document = {"id": "plan", "text": "The launch of Osprey is in Lisbon."}
        assert reader.post("/documents", json=document).status_code == 405
        assert team.post("/documents", json=document).is_success
        assert (ids(reader), ids(team)) == (["note"], ["plan"])

        # A user's token: what is the user's alone, for reading, writing and deleting.
        secret = {"id": "diary", "text": "Ann hides the key of the Osprey in Oslo."}
        assert ann.post("/documents", json=secret).is_success
        turn = {"role": "user", "text": "I moved to Bergen.", "session": "one"}
        assert ann.post("/turns", json=turn).is_success
        assert "ann/diary" in ids(ann)
        assert "plan" not in ids(ann)
        assert ids(bob) == []
        (hit,) = ann.post("/search", json={"query": "Where is the Osprey's key?", "k": 1}).json()
        assert "Oslo" in hit["text"]
        found = ann.post("/search", json={"query": "Osprey launch Lisbon"}).json()
        assert not any("Lisbon" in one["text"] for one in found)
        assert "Bergen" in ann.post("/recall", json={"prompt": "When did I move to Bergen?"}).text
        assert (
            "Bergen" not in bob.post("/recall", json={"prompt": "When did I move to Bergen?"}).text
        )
        assert bob.post("/search", json={"query": "Oslo"}).status_code == 404
        for path in ("/documents/ann/diary", "/documents/plan", "/documents/none"):
            assert bob.get(path).status_code == 404
        said = {bob.get(f"/documents/{id}").json()["error"] for id in ("plan", "ploy")}
        assert said == {"no document 'plan' of bob", "no document 'ploy' of bob"}
        assert ann.delete("/documents/plan").status_code == 404
        for name in ("Osprey", "Ospre", "Nobody"):  # no reply says whether others' texts name it
            assert bob.get(f"/facts?entity={name}").json() == []
        assert ann.get("/turns").json()[0]["text"] == "I moved to Bergen."
        assert bob.get("/turns").json() == []

        # Nothing widens it: neither other metadata, nor ids, nor a user's name, nor other routes.
        for path, body in (
            ("/search", {"query": "Lisbon", "documents": ["plan"]}),
            ("/search", {"query": "Lisbon", "where": {"user": "bob"}}),
            ("/ask", {"question": "Where?", "documents": ["plan"]}),
            ("/recall", {"prompt": "Where?", "user": "bob"}),
            ("/documents", {"id": "x", "text": "X.", "metadata": {"user": "bob"}}),
            ("/documents", {"id": "x", "text": "X.", "metadata": {"\ufeffchat": "one"}}),
        ):
            assert ann.post(path, json=body).status_code == 400, (path, body)
        for path in ("/turns?user=bob", "/facts?user=bob"):
            assert ann.get(path).status_code == 400, path
        assert ann.get("/turns?user=ann").json() == ann.get("/turns").json()
        assert ann.get("/document?id=ann/diary").json()["id"] == "ann/diary"
        for path in ("/entities", "/entities/Osprey", "/trails", "/trails/last", "/merges"):
            assert ann.get(path).status_code == 404, path
        for path in ("/status", "/usage", "/segments?document=plan", "/trees", "/document?id=plan"):
            assert ann.get(path).status_code == 404, path
        for user, of in (("ann", ann), ("bob", bob)):
            told = (
                f"/docs lists all routes; this token opens only {user}'s documents, turns and facts"
            )
            assert of.get("/entities").json()["error"] == f"there is no GET /entities: {told}"
        assert "only reads" not in reader.get("/nowhere").text
        assert "only reads" in reader.post("/documents", json=document).text
        assert ann.delete("/users/bob").status_code == 404
        assert ann.post("/merges", json={"first": "A", "second": "B"}).status_code == 404
        other = {"id": "diary", "text": "Bob's."}
        assert bob.post("/documents", json=other).status_code == 405

        # With `update`, and only with it, another text replaces the user's own document.
        again = {"id": "diary", "text": "Ann lost the key in Rome."}
        assert ann.post("/documents", json=again).status_code == 400
        assert ann.post("/documents", json={**again, "update": True}).is_success
        assert "Rome" in ann.get("/documents/ann/diary").json()["text"]
        assert ann.delete("/documents/ann/diary").is_success
        assert "ann/diary" not in ids(ann)
        described = httpx.get(f"{url}/openapi.json").json()  # a token's, no memory's
        assert "/entities" in described["paths"]


def test_the_page_shows_what_the_token_with_most_rights_can_do(
    served: Served, tmp_path: Path
) -> None:
    table = tmp_path / "tokens.toml"
    table.write_text(row("of-ann", user="ann") + row("reader") + row("all", write=True))
    with served("serve", "--tokens", str(table), text="Ada met Babbage in London.") as url:
        described = httpx.get(f"{url}/openapi.json", timeout=60).json()
    assert {"/entities", "/jobs", "/users/{user}"} <= set(described["paths"])
    assert "table" in described["components"]["securitySchemes"]["HTTPBearer"]["description"]


def test_a_token_that_nobody_uses_takes_no_room(served: Served, tmp_path: Path) -> None:
    """The routes of one token take 1 to 3 MB and 0.1 s of the processor."""
    table = tmp_path / "tokens.toml"
    users = [row(f"t{n}", user=f"u{n}") for n in range(300)]
    table.write_text("".join([*users, row("watch", metrics=True)]))
    with (
        served("serve", "--tokens", str(table), text="Ada met Babbage.") as url,
        client(url, "t299") as last,
        client(url, "watch") as watch,
    ):
        assert last.get("/documents").json() == []
        (held,) = re.findall(
            r"(?m)^process_resident_memory_bytes (\S+)$", watch.get("/metrics").text
        )
    assert float(held) < 150e6


def test_a_user_cannot_replace_what_lies_under_the_users_id(served: Served, tmp_path: Path) -> None:
    table = tmp_path / "tokens.toml"
    table.write_text(row("of-ann", user="ann", write=True))
    with (
        served("serve", "--tokens", str(table), text="Ada met Babbage.") as url,
        client(url, "of-ann") as ann,
    ):
        (file,) = tmp_path.rglob("*.db")
        with sync.open(str(file)) as memory:
            memory.add({"id": "ann/notes", "text": "Kept by the team."})
        mine = {"id": "notes", "text": "Ann's.", "update": True}
        assert ann.post("/documents", json=mine).status_code == 400
        with sync.open(str(file)) as memory:
            assert memory.document("ann/notes").text == "Kept by the team."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no table of tokens"),
        ("token = 3", "valid list"),
        ("[[token]]\nsha256 = 'abc'", "token 1: sha256 is 64 characters"),
        ("[[token]]\nwrite = true", "0.sha256 is missing"),
        (row("a") + row("a"), "token 2: its sha256 occurs twice"),
        (row(""), "token 1: sha256 is that of an empty token"),
        (row("a", user="a\u200bb"), "a character that is not shown"),
        (row("a", rights="all"), "rights"),
        ("[[token]]\nsha256 = 'x'\nwrite = 'yes'", "write should be a valid boolean"),
        ("[[token", "not TOML"),
    ],
)
def test_a_wrong_table_is_refused_on_one_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said) as raised:
        grants(path, "default")
    assert str(raised.value).startswith(f"--tokens {path}: ")
    assert "\n" not in str(raised.value)


def test_a_table_beside_one_token_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "tokens.toml"
    table.write_text(row("a"))
    serve = ["serve", "--memory", str(tmp_path / "m.db"), "--tokens", str(table)]
    assert main([*serve, "--write"]) == 2
    assert "--write is for one token" in capsys.readouterr().err
    monkeypatch.setenv("QRMEM_TOKEN", "s3cret")
    assert main(serve) == 2
    assert "QRMEM_TOKEN is for one token" in capsys.readouterr().err
