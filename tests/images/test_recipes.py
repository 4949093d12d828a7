"""Carrel's image recipes, and recipes of a site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from carrel.hub.errors import InvalidInput, NotFound
from carrel.images import recipes
from carrel.images.recipes import Recipe

ALL = ("base", "datascience", "grading", "jax", "torch", "spark")
LOCKS = sorted(recipes.HERE.glob("*/requirements*.txt"))
GOOD = 'title = "Ours"\nsummary = "For us."\nfrom = "base"\n'


def own(folder: Path, toml: str = GOOD, *, name: str = "ours") -> Path:
    place = folder / name
    place.mkdir()
    (place / "Dockerfile").write_text("ARG FROM\nFROM ${FROM}\n")
    (place / "image.toml").write_text(toml)
    (place / "requirements.txt").write_text("six==1.17.0 --hash=sha256:0\n")
    return place


def test_base_images_come_before_images_built_on_them() -> None:
    assert recipes.names() == ALL
    torch = recipes.chain(recipes.find("torch"))
    assert [each.name for each in torch] == ["base", "datascience", "torch"]


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_line_of_a_lock_has_hashes_and_no_address(path: Path) -> None:
    text = path.read_text()
    entries = re.findall(r"^[a-z0-9][^\n]*==[^\n]*\\\n(?:    --hash[^\n]*\n)+", text, re.MULTILINE)
    assert len(entries) == len(re.findall(r"^[a-zA-Z0-9][^\n]*==", text, re.MULTILINE))
    assert entries
    assert "://" not in text


@pytest.mark.parametrize("name", ALL)
def test_a_lock_has_the_same_versions_as_its_base(name: str) -> None:
    recipe = recipes.find(name)
    *below, _ = recipes.chain(recipe)
    found = [recipes.locked(recipe, variant) for variant in recipe.variants or ("",)]
    for each in below:
        for package, version in recipes.locked(each).items():
            assert all(versions[package] == version for versions in found), package


@pytest.mark.parametrize("name", ALL)
def test_the_packages_to_choose_it_by_are_in_its_lock(name: str) -> None:
    recipe = recipes.find(name)
    assert set(recipe.packages) <= set(recipes.locked(recipe))


def test_base_holds_what_the_lock_of_the_checkout_holds() -> None:
    """One resolution for the service and for what runs in containers.

    Only containers have what Notebook Jobs need: its pins stay out of the service.
    """
    up = (recipes.HERE.parent / "requirements" / "up.txt").read_text()
    known = dict(re.findall(r"^([a-z0-9._-]+)(?:\[[^]]*])?==([^ \\]+)", up, re.MULTILINE))
    base = recipes.locked(recipes.find("base"))
    only_here = base.keys() - known.keys()
    assert only_here == {"croniter", "fsspec", "jupyter-scheduler", "pytz"}
    assert {name: known.get(name, base[name]) for name in base} == base


def test_base_brings_nbgrader_and_nothing_that_slows_each_start() -> None:
    base = recipes.locked(recipes.find("base"))
    assert "nbgrader" in base
    # A newer jsonschema builds a grammar as it is imported: half of what a session imports.
    assert "rfc3987-syntax" not in base


def test_no_dockerfile_says_where_packages_come_from() -> None:
    for path in recipes.HERE.glob("*/Dockerfile"):
        text = path.read_text()
        assert "://" not in text
        assert "sh /run/packages/install.sh" in text
        assert text.index("USER root") < text.rindex("USER student")
    install = (recipes.HERE / "install.sh").read_text()
    assert "--require-hashes" in install
    assert "://" not in install


def test_another_lock_is_another_fingerprint(tmp_path: Path) -> None:
    recipe = Recipe.read(own(tmp_path))
    before = recipes.fingerprint(recipe)
    assert recipes.fingerprint(recipe) == before
    recipe.lock().write_text("six==1.16.0 --hash=sha256:0\n")
    assert recipes.fingerprint(recipe) != before
    torch = recipes.find("torch")
    assert recipes.fingerprint(torch, "cuda") != recipes.fingerprint(torch, "cpu")
    assert recipes.fingerprint(torch) == recipes.fingerprint(torch, "cpu")


def test_a_site_has_recipes_of_its_own(tmp_path: Path) -> None:
    recipe = recipes.find(str(own(tmp_path)))
    assert (recipe.name, recipe.title, recipe.base) == ("ours", "Ours", "base")
    assert [each.name for each in recipes.chain(recipe)] == ["base", "ours"]
    assert recipes.locked(recipe)["six"] == "1.17.0"


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ("title = ", "cannot be read"),
        ('title = "A"\nfrom = "base"\n', "does not describe an image"),
        (GOOD + "kernels = 3\n", "does not describe an image"),
        (GOOD + 'colour = "red"\n', "The texts title, summary, from; the lists"),
    ],
)
def test_a_recipe_that_says_something_else_is_refused(
    tmp_path: Path, toml: str, sentence: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        Recipe.read(own(tmp_path, toml))
    assert sentence in str(refused.value)


def test_an_unknown_recipe_is_refused_with_the_existing_ones(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="One of: base, datascience, grading, jax, spark, torch"):
        recipes.find("julia")
    with pytest.raises(InvalidInput, match="There is no folder"):
        recipes.find(str(tmp_path / "nothing"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="has no Dockerfile"):
        recipes.find(str(tmp_path / "empty"))
    with pytest.raises(InvalidInput, match="is not a valid image name"):
        recipes.find(str(own(tmp_path, name="Ours Too")))
    with pytest.raises(InvalidInput, match="One of: cpu, cuda"):
        recipes.find("torch").lock("tpu")
    with pytest.raises(InvalidInput, match="Omit it"):
        recipes.find("base").lock("cuda")
